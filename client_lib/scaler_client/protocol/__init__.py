"""Messages and bytes: the protocol of PROTOCOL.md, as clients, workers, agents and monitors use it.

Begin with `messages.py` (one dataclass a message), then `encode.py` and `decode.py`. `columns.py` and
`one_row_codec.py` are the fast paths for batches. Monitors read `snapshots.py` through `snapshot_decoder.py`. PyPy has
no pycapnp: `capnpy_compat.py` reads the schema there.
May import: commands.
"""
