"""`python -m scaler_client.ui` runs `scaler_ui`."""

import sys

from .cli import main

sys.exit(main())
