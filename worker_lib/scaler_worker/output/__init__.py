"""What tasks print: streams, lines with bounds, the worker's log.

Begin with `task_output.py`.
May import: task_rows.
"""
