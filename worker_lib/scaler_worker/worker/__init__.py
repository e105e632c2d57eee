"""One worker process: session, run loop, executor, interruption of tasks.

Begin with `runner.py` (the run loop) and `session.py` (the protocol, sans-IO), then `process.py` (builds a worker from
its parts). `interruption.py` keeps the stopped tasks, and `thread_interruption.py` raises the error in their threads.
May import: task_rows, objects, output, fork_server.
"""
