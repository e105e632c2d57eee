"""`python -m scaler_worker.autoscaler` runs `scaler_autoscaler`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
