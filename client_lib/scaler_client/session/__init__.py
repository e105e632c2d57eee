"""The conversation with the scheduler, sans-IO: messages in, messages out. No sockets, no threads, no clock.

Begin with `session.py`, then `open_tasks.py` (tasks without an answer), `submit_batch.py` and `backlog.py` (tasks on
their way out, limited by credit). `submit_queue.py` orders what waits for credit by priority. `graph_recovery.py`
submits a graph again if its results were lost with a host. `task_inputs.py` makes results known to
the scheduler that other tasks read.
May import: errors, commands, protocol, pickling, nested, futures.
"""
