"""`python -m scaler_scheduler`."""

import os
import sys

try:
    here = os.getcwd()
except OSError:  # the folder was removed
    here = ""
if sys.path[0] == here != os.path.dirname(os.path.dirname(os.path.abspath(__file__))):
    del sys.path[0]  # `-m` puts this folder first: a `resource.py` there would replace Python's

from .daemon.pypy import compile_nothing, restart_with_collector_parameters

restart_with_collector_parameters(sys.argv[1:])
compile_nothing()

from .cli import main  # noqa: E402  (PyPy has been started again by then, so it imports the command once)

sys.exit(main())
