"""Worker processes of Scaler, and the host agent that starts, watches and ends them."""

__version__ = "0.1.0"

import os as _os
import sys as _sys

if "SCALER_CLUSTER_PROGRAM_FOLDERS" in _os.environ:  # of a local cluster: only its workers search the program's folders
    try:
        _here = _os.getcwd()
    except OSError:  # the folder was removed
        _here = ""
    if _sys.path[0] == _here != _os.path.dirname(_os.path.dirname(_os.path.abspath(__file__))):
        del _sys.path[0]  # `-m` puts this folder first: a `resource.py` there would replace Python's
