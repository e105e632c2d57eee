"""`python -m scaler_client` is `scaler_client`."""

import sys

from .inspect.cli import main

if __name__ == "__main__":
    sys.exit(main())
