"""Objects on a host: files in shared memory, mapped read-only; caches of their values; results kept as files.

Begin with `files.py` (the files) and `table.py` (the objects that a worker knows).
May import: task_rows.
"""
