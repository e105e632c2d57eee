"""`python -m scaler_client.top` is `scaler_top`."""

import sys

from .cli import main

sys.exit(main())
