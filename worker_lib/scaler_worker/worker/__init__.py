"""One worker process: its session, the run loop, the executor, interruption of tasks, profiling.

Begin with `runner.py` (the run loop) and `session.py` (sans-IO), then `process.py` (puts the parts of a worker
together).
May import: task_rows, objects, output, fork_server.
"""
