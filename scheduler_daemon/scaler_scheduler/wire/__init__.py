"""Bytes <-> events and effects: the only code that knows how messages look on the wire."""

from scaler_scheduler.wire.without_compiler import import_capnpy

import_capnpy()  # before any module here does
