"""Messages: bytes to events, effects to bytes. Decoding raises only WireError, for any bytes.

Begin with `decode.py` and `encode.py`. `columns.py` and `batch_columns.py` read batches, `one_row_codec.py` reads
batches of one row. `schema.py` is generated.
May import: of core its events, effects, ids and lines.
"""

from scaler_scheduler.wire.capnpy_import import import_capnpy

import_capnpy()  # before any module here imports it
