"""The main module of the one-file scheduler."""

import sys

from scaler_scheduler.daemon.pypy import compile_nothing

compile_nothing()

from scaler_scheduler.cli import main  # noqa: E402  (the JIT does not compile what the imports run)

sys.exit(main())
