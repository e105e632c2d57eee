"""Writes kept results to files that the host's workers share."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from scaler_client.commands.object_files import SHARED_BYTES, ObjectName, file_id
from scaler_client.nested import task_host
from scaler_client.pickling.object_frames import pickle_object
from scaler_client.pickling.serializer import dumps
from scaler_client.protocol.messages import Outcome, Payload, TaskAttempt

from .host_storage import HostStorage, NoRoomError

SIZE_BYTES = 8
"""The length of the size in an answer, little-endian."""

SMALL_BYTES = 4 * 1024
"""Kept results of at least this size may be files. In graphs only while the scheduler's memory is scarce."""

_VALUE = Outcome.VALUE.value
_STORED = Outcome.STORED.value


class KeptResults:
    """Writes large results of tasks to object files."""

    def __init__(self, directory: str) -> None:
        """`directory` has the object files of the host; empty: there is no agent."""
        self._storage = HostStorage(directory)

    def writer_for(self, name: TaskAttempt, with_small: bool = False) -> Callable[[Any], tuple[int, Payload]]:
        """The function that makes the outcome and payload of the value of this attempt. `with_small`: also a small
        value may be a file.

        It passes on errors of the pickling, and raises NoRoomError if the host's limits leave no room for a large
        value.
        """
        file = file_of(name)
        return lambda value: self._store(file, value, SMALL_BYTES if with_small else SHARED_BYTES)

    def discard(self, name: TaskAttempt) -> None:
        """Remove the file of an attempt that was stopped, perhaps after it had written its result."""
        if self._storage.directory:
            for path in self._storage.remove((file_of(name),)):
                with suppress(OSError):
                    os.unlink(path)

    def _store(self, file: ObjectName, value: Any, least_bytes: int) -> tuple[int, Payload]:
        whole = pickle_object(value)
        # A child that the task has forked must not replace the task's own file.
        if whole.size >= least_bytes and self._storage.directory and not task_host.is_forked_by_task:
            frames = whole.frames()
            try:
                if whole.size >= SHARED_BYTES:
                    self._storage.write_when_room(file, frames)
                else:
                    self._storage.write(file, frames)
            except OSError:
                pass  # the agent has just ended, or there are no limits and no space: the value goes to the scheduler
            except NoRoomError:
                if whole.size >= SHARED_BYTES:
                    raise
            else:
                return _STORED, sum(map(len, frames)).to_bytes(SIZE_BYTES, "little")
        # A value in an answer is one pickle, without buffers beside it.
        return _VALUE, dumps(value) if whole.buffers else whole.data


def file_of(name: TaskAttempt) -> ObjectName:
    """The name of the file with the result of an attempt."""
    client, task_id, attempt = name
    return client, file_id(task_id, attempt)
