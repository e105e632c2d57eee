"""`python -m scaler_scheduler`."""

import sys

from .daemon.pypy import compile_nothing, restart_with_collector_parameters

restart_with_collector_parameters(sys.argv[1:])
compile_nothing()

from .cli import main  # noqa: E402  (PyPy has been started again by then, so it imports the command once)

sys.exit(main())
