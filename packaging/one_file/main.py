"""The main module of the one-file scheduler."""

import sys

from scaler_scheduler.cli import main

sys.exit(main())
