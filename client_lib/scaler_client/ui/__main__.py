"""`python -m scaler_client.ui`."""

import sys

from .cli import main

sys.exit(main())
