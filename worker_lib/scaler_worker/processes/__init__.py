"""Shared code of a host's processes: settings, the state page, process events, resources, the watch on the parent.

Begin with `state_page.py` (the running task of each worker, in memory that outlives the worker) and `settings.py`.
May import: nothing of this package but task_rows.
"""
