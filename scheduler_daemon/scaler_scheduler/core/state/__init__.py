"""Records and tables, the transitions of a task, timers, counts, and the kept history.

Begin with `records.py` (one record a task, object, client, worker, agent) and `transitions.py` (the table of states).
May import: the modules of core itself (events, effects, ids, errors, lines, limits).
"""
