"""Objects on a host: files in shared memory or on disk, mapped read-only; their limits; caches of their values; results
kept as files.

Begin with `files.py` (the files), `host_storage.py` (the limits) and `table.py` (the objects that a worker knows).
May import: nothing of this package.
"""
