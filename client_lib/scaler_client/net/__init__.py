"""ZeroMQ sockets that connect: CURVE keys, reconnects, host names, and the wake-up of a polling thread.

Begin with `sockets.py` and `curve.py`.
May import: errors, commands, protocol.
"""
