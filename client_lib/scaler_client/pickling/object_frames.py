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
from typing import Any, NamedTuple, final

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

        joined = _JoinedBuffers(self, frozenset(large[:_MAX_OWN]))

        def is_in_band(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.nbytes < OUT_OF_BAND_BYTES and not (large and raw.obj is joined.joined):
                return True
            frames.append(raw)
            return False

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


@final
class ResultFile:
    """The result of a task that its worker has written to a file of this client: the mapped frames.

    Args:
        frames: the pickle and the buffers, read-only: other tasks read what the task has returned.
        own: the same buffers for the program, which may write to them. Nobody else sees this.
    """

    __slots__ = ("_own", "frames")

    def __init__(self, frames: Sequence[Payload], own: Sequence[Payload]) -> None:
        self.frames = frames
        self._own = own

    def __len__(self) -> int:
        return sum(map(len, self.frames))

    def load(self) -> Any:
        """Return the value. Its arrays use the program's own buffers.

        Raises:
            Exception: any error of the unpickling.
        """
        return pickle.loads(self.frames[0], buffers=self._own)


Answer = Payload | ResultFile
"""The payload of an answer. A ResultFile stands for a value."""


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
        # As a frame they are a bytearray: a program that gets the value may write to its small arrays, and tasks map
        # frames read-only. Inside the pickle a task could write to a bytearray.
        is_frame = own or end >= OUT_OF_BAND_BYTES
        self.joined = bytearray().join(parts) if is_frame else b"".join(parts)

    def __reduce__(self) -> Any:
        return _unpickled, (pickle.PickleBuffer(self._data), pickle.PickleBuffer(self.joined), self._spans, *self._own)


def _unpickled(data: Payload, joined: Payload, spans: Sequence[tuple[int, int] | None], *own: Payload) -> Any:
    view = memoryview(joined)
    others = iter(own)
    return pickle.loads(data, buffers=[next(others) if span is None else view[span[0] : span[1]] for span in spans])
