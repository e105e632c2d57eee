"""The schema as pycapnp loads it, and the fields of the batches, for encoding and decoding."""

from __future__ import annotations

import os
from typing import Any

SCHEMA: Any
MALFORMED: tuple[type[Exception], ...]
"""The exceptions that reading raises for bytes that are not a message."""

try:
    import capnp
except ModuleNotFoundError:  # PyPy: it can only read
    from . import capnpy_compat

    SCHEMA, MALFORMED = capnpy_compat.SCHEMA, capnpy_compat.MALFORMED
else:
    capnp.remove_import_hook()
    SCHEMA = capnp.load(os.path.join(os.path.dirname(__file__), "scaler.capnp"))
    MALFORMED = (capnp.KjException, ValueError)

FORGET_FUNCTIONS, SUBMIT, DISPATCH, RESULTS, RESOLVED, STARTED, CANCEL, CANCEL_REFUSED = range(8, 16)
RETRACT, RETRACTED, STOP, SUSPENDED, RESUMED = range(19, 24)
FORGET_OBJECTS, OUTPUT, FETCH_OBJECTS, HISTORY, GRAPHS, OBJECTS, HELD_RESULTS = 28, 30, 31, 32, 33, 40, 48
"""Ordinals of the batches in the union of the schema's Message."""

_TASK_COLUMNS = (("clients", "Q"), ("ids", "Q"), ("attempts", "I"))
_PAYLOAD_COLUMNS = (("sizes", "I"), ("large", "I"), ("payload", "B"))
_SPECIAL_COLUMNS = (("flags", "B"), ("depths", "I"), ("priorities", "I"))
_INPUT_COLUMNS = (("inputs", "Q"), ("inputCounts", "I"), ("inputSources", "B"), ("inlineSizes", "I"))
_NAME_COLUMNS = (("names", "B"), ("nameSizes", "I"))
_BOOKING_COLUMNS = (("bookings", "B"), ("rowBookings", "I"))
_PROFILE_COLUMNS = (("durations", "Q"), ("cpuTimes", "Q"), ("peaks", "Q"))

BATCH_COLUMNS: dict[str, tuple[int, tuple[tuple[str, str], ...]]] = {
    "forgetFunctions": (FORGET_FUNCTIONS, (("numbers", "I"),)),
    "dispatch": (
        DISPATCH,
        (
            *(*_TASK_COLUMNS, ("functions", "I"), *_PAYLOAD_COLUMNS, *_SPECIAL_COLUMNS, *_INPUT_COLUMNS),
            *(*_NAME_COLUMNS, *_BOOKING_COLUMNS),
        ),
    ),
    "resolved": (RESOLVED, (("ids", "Q"), ("outcomes", "B"), *_PAYLOAD_COLUMNS, *_PROFILE_COLUMNS)),
    "started": (STARTED, _TASK_COLUMNS),
    "cancelRefused": (CANCEL_REFUSED, (("ids", "Q"),)),
    "retract": (RETRACT, _TASK_COLUMNS),
    "stop": (STOP, _TASK_COLUMNS),
    "forgetObjects": (FORGET_OBJECTS, (("clients", "Q"), ("ids", "Q"))),
    "output": (
        OUTPUT,
        (
            *(("clients", "Q"), ("ids", "Q"), ("streams", "B"), ("labels", "I"), ("sizes", "I"), ("text", "B")),
            ("dropped", "Q"),
        ),
    ),
    "fetchObjects": (FETCH_OBJECTS, (("clients", "Q"), ("ids", "Q"))),
    "history": (
        HISTORY,
        (
            *(("incarnation", "Q"), ("first", "Q"), ("kinds", "B"), ("times", "Q"), *_TASK_COLUMNS),
            *(("workers", "Q"), ("names", "I"), ("outcomes", "B"), ("durations", "Q"), ("text", "B"), ("sizes", "I")),
            *(("errors", "I"), ("functions", "I"), ("tracebacks", "I"), ("waitReasons", "I")),
        ),
    ),
    "graphs": (
        GRAPHS,
        (
            *(("incarnation", "Q"), ("total", "Q"), ("clients", "Q"), ("ids", "Q"), ("names", "I"), ("states", "B")),
            *(("inputs", "Q"), ("inputCounts", "I"), ("text", "B"), ("sizes", "I")),
            *(("graphs", "Q"), ("keys", "I"), ("submitMilliseconds", "Q")),
        ),
    ),
}
"""By name, the batches that peers receive: the ordinal, and the fields in order, as `write_batch` takes them."""
