"""The conversation with the scheduler, without sockets, threads or a clock: messages in, messages out.

Begin with `session.py`, then `open_tasks.py` (tasks without an answer) and `backlog.py` (credit, and tasks that wait
for it). `graph_recovery.py` submits a graph again if its results were lost with a host.
May import: errors, commands, protocol, pickling, nested, futures.
"""
