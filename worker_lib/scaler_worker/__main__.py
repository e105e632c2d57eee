"""`python -m scaler_worker`."""

import sys

from .cli import main

sys.exit(main())
