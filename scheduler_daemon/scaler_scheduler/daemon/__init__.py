"""The process: the loop, the event loops that drive it, the message pump, throttling, checks at the start.

Begin with `loop.py` (receive, decode, handle, encode, send) and `message_pump.py`.
May import: every other room.
"""
