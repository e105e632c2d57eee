"""How a task finds the objects that it reads. Does what objects/cache.py does, in small steps and without files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scaler_client.protocol.messages import Payload
from scaler_worker.objects.table import ABSENT, KnownObject, ObjectTable

if TYPE_CHECKING:
    from .clock import Clock
    from .host_files import HostFiles

QUIET_SECONDS = 20.0
"""Replaces the constant of objects/cache.py. It is short, so that a short run reaches it."""

_PAUSES = (0.001, 0.01, 0.05)


class InputLostError(Exception):
    """As the exception of objects/cache.py."""


class InputReader:
    """The inputs of one task, found before it begins."""

    def __init__(
        self, client: int, ids: Sequence[int | Payload], objects: ObjectTable, files: HostFiles, clock: Clock
    ) -> None:
        self._ids = ids
        self._objects = [objects.find((client, each)) if isinstance(each, int) else each for each in ids]
        self._files = files
        self._clock = clock
        self._polls = 0
        self._change = -1
        self._changed_at = 0.0

    def arguments(self, payload: Payload) -> Payload:
        """Return the payload: the arguments of a script are not pickled."""
        return payload

    @property
    def pause_seconds(self) -> float:
        """Seconds until the next look."""
        return _PAUSES[min(self._polls // 5, len(_PAUSES) - 1)]

    def read(self, position: int) -> Sequence[Payload] | None:
        """Return the frames of an input. None: its file is not there yet.

        Raises:
            InputLostError: there will be no file.
        """
        known = self._objects[position] if position < len(self._objects) else None
        if known is None:
            raise self._lost(position, "it was not sent to this worker")
        if not isinstance(known, KnownObject):
            return [known]  # its bytes came inside the row
        if known.value is not ABSENT:
            value: Sequence[Payload] = known.value
            return value
        frames = known.frames or self._in_file(position)
        if frames is not None:
            known.keep_value(frames, True)
            self._polls = 0
        return frames

    def _in_file(self, position: int) -> Sequence[Payload] | None:
        known, files = self._objects[position], self._files
        assert isinstance(known, KnownObject)
        if known.is_forgotten:
            raise self._lost(position, "no client refers to it any more")
        if files.is_gone:
            raise self._lost(position, "the host agent has left")
        found = files.find(known.name)
        if isinstance(found, str):
            raise self._lost(position, found)
        if found is None and known.has_file:
            raise self._lost(position, "its file, which a worker has written, was removed")
        if found is None and known.is_invalid:
            raise self._lost(position, "the worker has joined anew before it was")
        if found is None:
            now = self._clock.now
            if not self._polls or files.changes != self._change:
                self._change, self._changed_at = files.changes, now
            elif now - self._changed_at >= QUIET_SECONDS:
                raise self._lost(position, "the host agent has not made its file")
            self._polls += 1
        return found

    def _lost(self, position: int, reason: str) -> InputLostError:
        return InputLostError(f"object {self._ids[position] if position < len(self._ids) else '?'}: {reason}")


class CallInputs:
    """The inputs of one call of a row.

    Args:
        inputs: the inputs of the row.
        positions: where those of the call are among them.
    """

    def __init__(self, inputs: InputReader, positions: Sequence[int]) -> None:
        self._inputs = inputs
        self._positions = positions

    @property
    def pause_seconds(self) -> float:
        """Seconds until the next look."""
        return self._inputs.pause_seconds

    def read(self, position: int) -> Sequence[Payload] | None:
        """As `InputReader.read`."""
        return self._inputs.read(self._positions[position])
