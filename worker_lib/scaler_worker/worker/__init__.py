"""One worker process: its session, the run loop, the executor, interruption of tasks, profiling.

Begin with `runner.py` (the run loop) and `session.py` (sans-IO), then `process.py` (what a worker is made of).
May import: task_rows, processes, objects, output, fork_server.
"""
