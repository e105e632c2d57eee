"""Everything that imports zmq: the ROUTER socket, the monitor's socket, ZAP, limits of connections.

Begin with `router.py` (where messages come in and go out), then `zap.py` (who may connect) and `connections.py` (how
many may).
May import: commands, config.
"""
