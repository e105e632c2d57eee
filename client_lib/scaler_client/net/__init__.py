"""ZeroMQ sockets that connect: CURVE keys, reconnects, names of hosts, and waking a thread that polls.

Begin with `sockets.py` and `curve.py`.
May import: errors, commands, protocol.
"""
