"""Objects as frames: a pickle, and the buffers of arrays. Buffers are not copied, and readers can't write to them.

A buffer inside a pickle would be writable if the original is. Then a task could write to a small array that it reads,
and with a large array it would change the input of other tasks. So no buffer stays in the pickle: the small ones are
joined in a buffer of their own.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..protocol.messages import Payload
from .cloudpickle_ext import PROTOCOL, Pickler
from .references import REFERENCES, STAND_INS, InputCollector
from .serializer import dumps, is_plain

OUT_OF_BAND_BYTES = 64 * 1024
"""A buffer of at least this size becomes a frame of its own and is never copied.

For a smaller buffer a copy costs less.
"""

MAX_FRAMES = 64
"""The most frames of an object, by the protocol."""

_MAX_OWN = MAX_FRAMES - 3
"""The most buffers with a frame of their own if others are joined. The outer pickle, the inner pickle and the joined
buffers take up to three frames."""

_ALIGNMENT = 64


class PickledObject(NamedTuple):
    """A pickle and its out-of-band buffers."""

    data: bytes
    buffers: list[pickle.PickleBuffer]
    """The out-of-band buffers, not copied: they must not change."""

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len(self.data) + sum(map(_size, self.buffers))

    def frames(self) -> list[Payload]:
        """Return the frames: a pickle, then its buffers."""
        large = [place for place, buffer in enumerate(self.buffers) if _size(buffer) >= OUT_OF_BAND_BYTES]
        if len(large) == len(self.buffers) < MAX_FRAMES:
            return [self.data, *(buffer.raw() for buffer in self.buffers)]
        large.sort(key=lambda place: _size(self.buffers[place]), reverse=True)
        frames: list[Payload] = [b""]

        def is_in_band(buffer: pickle.PickleBuffer) -> bool:
            if _size(buffer) < OUT_OF_BAND_BYTES:
                return True
            frames.append(buffer.raw())
            return False

        joined = _JoinedBuffers(self, frozenset(large[:_MAX_OWN]))
        frames[0] = pickle.dumps(joined, PROTOCOL, buffer_callback=is_in_band)
        return frames


def pickle_object(value: Any) -> PickledObject:
    """Pickle a value with all buffers out of band.

    Raises:
        Exception: any error of the pickling.
    """
    if is_plain(value):
        return PickledObject(dumps(value), [])
    if not _reducers and "numpy" in sys.modules:
        _reducers[sys.modules["numpy"].ndarray] = _reduced_array
    buffers: list[pickle.PickleBuffer] = []
    with io.BytesIO() as file:
        _Pickler(file, PROTOCOL, buffer_callback=buffers.append).dump(value)
        return PickledObject(file.getvalue(), buffers)


class _Found(Exception):
    """A reference or a future was found."""


class _Search(InputCollector):
    """Ends the pickling of a value at the first reference or future."""

    __slots__ = ()

    def place(self, value: Any) -> int | bytes:
        raise _Found


def holds_references(value: Any) -> bool:
    """Return whether a value is a reference or a future, or contains one, at any depth.

    This pickles the value, but copies no large buffers. If a value can't be pickled, the answer is False.
    """
    if type(value) in REFERENCES or type(value) in STAND_INS:
        return True
    if is_plain(value):
        return False
    try:
        with _Search(None):
            pickle_object(value)
    except _Found:
        return True
    except Exception:
        return False
    return False


_reducers: dict[type, Callable[[Any], Any]] = {}


class _Pickler(Pickler):
    dispatch_table = Pickler.dispatch_table.new_child(_reducers)


def _reduced_array(array: Any) -> Any:
    """Reduce an array.

    An array with gaps between its values is copied first, because numpy would write its values into the pickle.
    """
    flags = array.flags
    if not flags.c_contiguous and not flags.f_contiguous and not array.dtype.hasobject:
        array = array.copy()
    return array.__reduce_ex__(PROTOCOL)


def _size(buffer: pickle.PickleBuffer) -> int:
    return buffer.raw().nbytes


class _JoinedBuffers:
    """A pickled object with its small buffers joined in one. Unpickling it gives the object itself."""

    # No memoryview of a memoryview: the garbage collector of CPython 3.11 may crash on them in a cycle.

    def __init__(self, whole: PickledObject, own: frozenset[int]) -> None:
        self._data = whole.data
        self._own = [buffer for place, buffer in enumerate(whole.buffers) if place in own]
        self._spans: list[tuple[int, int] | None] = []
        """Begin and end of each buffer in the joined buffer; None: it has a frame of its own."""
        parts: list[Payload] = []
        end = 0
        for place, buffer in enumerate(whole.buffers):
            if place in own:
                self._spans.append(None)
                continue
            begin = -(-end // _ALIGNMENT) * _ALIGNMENT
            parts += bytes(begin - end), buffer.raw()
            end = begin + _size(buffer)
            self._spans.append((begin, end))
        self._joined = b"".join(parts)

    def __reduce__(self) -> Any:
        return _unpickled, (*map(pickle.PickleBuffer, (self._data, self._joined)), self._spans, *self._own)


def _unpickled(data: Payload, joined: Payload, spans: Sequence[tuple[int, int] | None], *own: Payload) -> Any:
    view = memoryview(joined)
    others = iter(own)
    return pickle.loads(data, buffers=[next(others) if span is None else view[span[0] : span[1]] for span in spans])
