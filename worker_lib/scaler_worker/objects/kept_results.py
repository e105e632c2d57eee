"""Writes kept results to files that the host's workers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scaler_client.commands.object_files import SHARED_BYTES, ObjectName
from scaler_client.nested import task_host
from scaler_client.pickling.object_frames import pickle_object
from scaler_client.pickling.serializer import dumps
from scaler_client.protocol.messages import Outcome, Payload

from .host_storage import HostStorage, NoRoomError

SIZE_BYTES = 8
"""The length of the size in an answer, little-endian."""

SMALL_BYTES = 4 * 1024
"""While the scheduler's memory is scarce, results of at least this size are files too."""

_VALUE = Outcome.VALUE.value
_STORED = Outcome.STORED.value


class KeptResults:
    """Writes large results of tasks to object files."""

    def __init__(self, directory: str, written: Callable[[ObjectName], None] = lambda name: None) -> None:
        """`directory` has the object files of the host; empty: there is no agent. `written` is called with the name of
        each result that was written."""
        self._storage = HostStorage(directory)
        self._written = written

    def writer_for(self, client: int, task_id: int, with_small: bool = False) -> Callable[[Any], tuple[int, Payload]]:
        """The function that makes the outcome and payload of this task's value. `with_small`: also a small value may be
        a file.

        It passes on errors of the pickling, and raises NoRoomError if the host's limits leave no room for a large
        value.
        """
        return lambda value: self._store(client, task_id, value, SMALL_BYTES if with_small else SHARED_BYTES)

    def _store(self, client: int, task_id: int, value: Any, least_bytes: int) -> tuple[int, Payload]:
        whole = pickle_object(value)
        # A child that the task has forked must not replace the task's own file.
        if whole.size >= least_bytes and self._storage.directory and not task_host.is_forked_by_task:
            frames = whole.frames()
            try:
                if whole.size >= SHARED_BYTES:
                    self._storage.write_when_room((client, task_id), frames)
                else:
                    self._storage.write((client, task_id), frames)
            except OSError:
                pass  # the agent has just ended, or there are no limits and no space: the value goes to the scheduler
            except NoRoomError:
                if whole.size >= SHARED_BYTES:
                    raise
            else:
                self._written((client, task_id))
                return _STORED, sum(map(len, frames)).to_bytes(SIZE_BYTES, "little")
        # A value in an answer is one pickle, without buffers beside it.
        return _VALUE, dumps(value) if whole.buffers else whole.data
