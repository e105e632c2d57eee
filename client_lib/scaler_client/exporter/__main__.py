"""`python -m scaler_client.exporter` runs `scaler_exporter`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
