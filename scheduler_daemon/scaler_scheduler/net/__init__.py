"""Everything that imports zmq: the ROUTER socket, the monitor's socket, ZAP, limits of connections.

Begin with `router.py` (messages in and out), then `zap.py` (which peers may connect) and `connections.py` (how many may
connect).
May import: commands, config.
"""
