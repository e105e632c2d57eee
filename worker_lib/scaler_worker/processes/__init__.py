"""What a host's processes share: settings, the state page, process events, resources, end with the parent.

Begin with `state_page.py` (what each worker runs now, in memory that outlives it) and `settings.py`.
May import: nothing of this package but task_rows.
"""
