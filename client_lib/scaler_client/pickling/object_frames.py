"""Objects as frames: a pickle, and the buffers of arrays, which are neither copied nor ever writable where it is read.

Pickle itself makes buffers that go within it writable where they were: a program that changes an array which it reads
would work until the array is large, and then for other tasks as well. So none do: the small ones go together, as one.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections import ChainMap
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..protocol.messages import Payload
from .cloudpickle_ext import PROTOCOL, Pickler
from .serializer import dumps, is_plain

OUT_OF_BAND_BYTES = 64 * 1024
"""A buffer of at least this size becomes a frame of its own and is never copied; below it a copy costs less."""

MAX_FRAMES = 64
"""Of one object, by the protocol."""

_MAX_OWN = MAX_FRAMES - 3
"""Buffers with a frame of their own where others go together: those have one, as may the pickle, behind the first."""

_ALIGNMENT = 64


class PickledObject(NamedTuple):
    data: bytes
    buffers: list[pickle.PickleBuffer]
    """What is out of band, as it lies in memory: it must not change."""

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.data) + sum(map(_size, self.buffers))

    def frames(self) -> list[Payload]:
        """Of which the first is a pickle, and the others its buffers."""
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
    """The value's pickle with all its buffers out of band. Raises whatever the pickling raises."""
    if is_plain(value):
        return PickledObject(dumps(value), [])
    if not _reducers and "numpy" in sys.modules:
        _reducers[sys.modules["numpy"].ndarray] = _reduced_array
    buffers: list[pickle.PickleBuffer] = []
    with io.BytesIO() as file:
        _Pickler(file, PROTOCOL, buffer_callback=buffers.append).dump(value)
        return PickledObject(file.getvalue(), buffers)


_reducers: dict[type, Callable[[Any], Any]] = {}


class _Pickler(Pickler):
    dispatch_table = ChainMap(_reducers, *Pickler.dispatch_table.maps)


def _reduced_array(array: Any) -> Any:
    """An array, whose values numpy would write into the pickle where there are others between them in memory."""
    flags = array.flags
    if not flags.c_contiguous and not flags.f_contiguous and not array.dtype.hasobject:
        array = array.copy()
    return array.__reduce_ex__(PROTOCOL)


def _size(buffer: pickle.PickleBuffer) -> int:
    return buffer.raw().nbytes


class _JoinedBuffers:
    """Unpickled, it is what was pickled; of its buffers all but some are one."""

    # No memoryview of another one: the garbage collector of CPython 3.11 may crash where it meets them in a cycle.

    def __init__(self, whole: PickledObject, own: frozenset[int]) -> None:
        self._data = whole.data
        self._own = [buffer for place, buffer in enumerate(whole.buffers) if place in own]
        self._spans: list[tuple[int, int] | None] = []
        """Where each buffer is among those that are one; None: it has a frame of its own."""
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
