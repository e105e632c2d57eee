"""Bytes to events, effects to bytes. Whatever a peer sends, decoding raises only WireError.

Begin with `decode.py` and `encode.py`. `columns.py` reads batches, `one_row_codec.py` batches of one row. `schema.py`
is generated.
May import: of core its events, effects, ids and lines.
"""

from scaler_scheduler.wire.capnpy_import import import_capnpy

import_capnpy()  # before any module here imports it
