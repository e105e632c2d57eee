"""Packages for tasks: what `Client(environment=...)` takes, as plain data that a host can install from.

Begin with `package_set.py` (the data) and `sources.py` (a path becomes that data). `requirements.py`, `pylock.py`,
`uv_lock.py`, `wheels.py` and `pex_file.py` read one kind each. `installed.py` writes what this interpreter has. The
host agent uses the first two modules as well.
May import: errors, commands.
"""
