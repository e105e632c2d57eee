"""Packages of environments on this host: made once by uv or pip, kept in a cache, used by several agents.

Begin with `preparation.py` (what happens for one environment) and `build_process.py` (the process that does it).
`builds.py` is the agent's side, `launch.py` starts a Python of an environment. `cache.py` keeps the folders, `seal.py`
checks them, `installer.py`, `interpreters.py` and `scaler_runtime.py` make them.
May import: nothing of this distribution.
"""
