"""`python -m scaler_client.top` runs `scaler_top`."""

import sys

from .cli import main

sys.exit(main())
