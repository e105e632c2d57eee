"""Waiting inside a task: a task that waits for its children gives up its slot.

Begin with `task_host.py` (the interface between a client inside a task and its worker), then `slot_wait.py` (a thread
waits) and `slot_await.py` (an event loop waits).
May import: errors, commands, protocol, pickling.
"""
