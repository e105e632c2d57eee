"""scaler_top without a terminal. Runs under PyPy and CPython."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[2] / "client_lib"
if importlib.util.find_spec("scaler_client") is None:  # PyPy's environment has only the scheduler
    sys.path.append(str(LIBRARY))
