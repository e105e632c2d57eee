"""Waiting inside a task: a task that waits for its child tasks gives up its slot.

Begin with `task_host.py` (what a client inside a task needs of its worker), then `slot_wait.py` (a thread
waits) and `slot_await.py` (an event loop waits).
May import: errors, commands, protocol, pickling.
"""
