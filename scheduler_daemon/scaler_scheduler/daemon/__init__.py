"""The process: the loop, what drives it, the message pump, throttling, memory given back when idle.

Begin with `loop.py` (receive, decode, handle, encode, send) and `message_pump.py`.
May import: every other room.
"""
