"""`python -m scaler_scheduler`."""

import sys

from .cli import main

sys.exit(main())
