"""What the one-file scheduler runs."""

import sys

from scaler_scheduler.cli import main

sys.exit(main())
