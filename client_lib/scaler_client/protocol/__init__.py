"""Messages and bytes: the protocol of PROTOCOL.md for clients, workers, agents and monitors.

Begin with `messages.py` (one dataclass per message), then `encode.py` and `decode.py`. `columns.py` and
`one_row_codec.py` are the fast paths for batches. Monitors receive `snapshots.py` through `snapshot_decoder.py` and
`history_decoder.py`. PyPy has no pycapnp: `capnpy_compat.py` reads the schema there.
May import: commands.
"""
