"""Objects on a host: files in shared memory, mapped read-only; caches of values; kept results.

Begin with `files.py` and `table.py`.
May import: task_rows.
"""
