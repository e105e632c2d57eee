"""The output of tasks: standard streams, bounded lines, the worker's log.

Begin with `task_output.py` (from writes to lines).
May import: nothing of this package.
"""
