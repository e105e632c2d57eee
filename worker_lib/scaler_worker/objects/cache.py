"""The values of the objects that tasks read."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Sequence
from typing import Any

from scaler_client.protocol.messages import Payload
from scaler_worker.objects.argument_templates import ArgumentTemplates
from scaler_worker.objects.files import ObjectLostError, read_object
from scaler_worker.objects.host_storage import HostStorage
from scaler_worker.objects.read_only import make_read_only
from scaler_worker.objects.table import ABSENT, KnownObject, ObjectTable

QUIET_SECONDS = 120.0
"""How long a task waits for a file while the host's agent makes no file at all.

The object comes on the agent's connection, and the task on the worker's. At 100 MB/s, an object of ten gigabytes comes
this much later.
"""

FIRST_PAUSE_SECONDS = 0.0005
MAX_PAUSE_SECONDS = 0.05
"""The pause between two checks for a file. Each pause is 1.5 times the previous one."""


class InputLostError(BaseException):
    """An object that the task reads is lost. The text says why.

    Not an Exception: code that unpickles arguments and ignores errors must not ignore this.
    """


class ObjectCache:
    """The objects of one worker, with their values."""

    def __init__(self, table: ObjectTable, directory: str) -> None:
        """`directory` has the object files of the host; empty: there is no agent."""
        self._table = table
        self._storage = HostStorage(directory)
        self._templates = ArgumentTemplates()
        self.may_have_mapped = False
        """Whether an input was read since the last `release_mapped`."""

    def release_mapped(self) -> None:
        """Unmap the files of values that no running task reads, if the host's memory is scarce.

        The agent can't move a mapped file to disk. Call it between tasks.
        """
        if self.may_have_mapped and self._storage.is_scarce:
            self.may_have_mapped = False
            self._table.release_mapped()

    def inputs(self, client: int, inputs: Sequence[int | Payload | KnownObject]) -> Inputs:
        """Find the inputs of a task that begins next. Objects that are forgotten later stay its inputs."""
        found: Sequence[KnownObject | Payload | None]
        kinds = set(map(type, inputs))
        if int not in kinds and KnownObject not in kinds:
            found = inputs  # type: ignore[assignment]  # all are bytes
        else:
            self.may_have_mapped = True
            find = self._table.find
            found = [find((client, each)) if isinstance(each, int) else each for each in inputs]
        return Inputs(found, inputs, self._storage, self._templates)


class Inputs:
    """The inputs of one task, by position."""

    def __init__(
        self,
        found: Sequence[KnownObject | Payload | None],
        inputs: Sequence[int | Payload | KnownObject],
        storage: HostStorage,
        templates: ArgumentTemplates,
    ) -> None:
        self._found = found
        self._inputs = inputs
        self._storage = storage
        self._templates = templates

    def arguments(self, payload: Payload) -> Any:
        """Return the arguments of the task, with its inputs.

        Args:
            payload: the pickled arguments.

        Raises:
            InputLostError: an object is lost.
            Exception: the unpickling failed.
        """
        return self._templates.arguments(payload, len(self._found), self._values)

    def _values(self) -> list[Any]:
        """Return the values of all inputs."""
        if self._found is self._inputs:
            return list(map(pickle.loads, self._inputs))  # type: ignore[arg-type]  # all are bytes
        return [self(position) for position in range(len(self._found))]

    def __call__(self, position: int) -> Any:
        """The value of an input. It is unpickled when a task of this process first reads it.

        Raises:
            InputLostError: the object is lost.
            Exception: the unpickling failed.
        """
        known = self._existing(position)
        if not isinstance(known, KnownObject):
            return pickle.loads(known)
        value = known.value
        if value is ABSENT:
            frames = known.frames or self._await_file(known, position)
            value = pickle.loads(frames[0], buffers=[memoryview(frame).toreadonly() for frame in frames[1:]])
            if len(frames) == 1:
                make_read_only(value)
            if known.frames is None and len(frames) > 1:
                if self._storage.is_scarce:
                    return value  # not kept: its file stays mapped only while this task reads it
                known.is_mapped = True
            known.keep(value)
        return value

    def contents(self) -> list[bytes]:
        """Return the bytes of all inputs: the frames of each, one after the other.

        Raises:
            InputLostError: an object is lost.
            TypeError: a Python function has read an object, so that its bytes are gone.
        """
        return [self._content(position) for position in range(len(self._found))]

    def _content(self, position: int) -> bytes:
        known = self._existing(position)
        if not isinstance(known, KnownObject):
            return bytes(known)
        frames, is_made = known.frames, known.value is not ABSENT
        if frames is None and is_made:
            raise TypeError(f"object {self._inputs[position]!r} was read by a Python function: its bytes are gone")
        return b"".join(frames or self._await_file(known, position))

    def _existing(self, position: int) -> KnownObject | Payload:
        known = self._found[position]
        if known is None:
            raise self._lost(position, "the scheduler has not sent it to this worker")
        return known

    def _await_file(self, known: KnownObject, position: int) -> Sequence[Payload]:
        directory = self._storage.directory
        if not directory:
            raise self._lost(position, "it is a file of a host agent, and this worker has no agent")
        pause = FIRST_PAUSE_SECONDS
        changed_at = time.monotonic()
        change: int | None = None
        while True:
            if known.is_forgotten:
                raise self._lost(position, "its last reference was deleted")
            try:
                before, change = change, os.stat(directory).st_mtime_ns  # grows with each change of files
                frames: Sequence[Payload] | None = read_object(directory, known.name) or known.frames
            except OSError as error:
                raise self._lost(position, f"the host agent has ended: {error.strerror}") from None
            except ObjectLostError as error:
                raise self._lost(position, str(error)) from None
            if frames is not None:
                return frames
            if known.has_file:
                raise self._lost(position, "a worker has written its file, and the file was removed")
            if known.is_invalid:
                raise self._lost(position, "the worker has joined again before its file came")
            now = time.monotonic()
            if change != before:
                changed_at = now
            elif now - changed_at >= QUIET_SECONDS:
                raise self._lost(position, f"the host agent has not made its file within {QUIET_SECONDS:g} s")
            time.sleep(pause)
            pause = min(pause * 1.5, MAX_PAUSE_SECONDS)

    def _lost(self, position: int, reason: str) -> InputLostError:
        each = self._inputs[position]
        number = each.name[1] if isinstance(each, KnownObject) else each
        return InputLostError(f"object {number!r}, which the task reads, is lost: {reason}")
