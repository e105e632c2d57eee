"""Large results as files of their client, if the client runs on this machine and as this user.

The worker writes the file into the client's own directory. So the bytes pass through no socket, the client maps them,
and the result outlives worker, host agent and scheduler.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from scaler_client.commands.mapped_files import write_frames_to_memory
from scaler_client.commands.object_files import FLAGS, directory_of, is_own_directory, path_of
from scaler_client.nested import task_host
from scaler_client.pickling import cloudpickle_ext
from scaler_client.pickling.object_frames import OUT_OF_BAND_BYTES, pickle_object
from scaler_client.pickling.serializer import NONE, dumps, dumps_plain, is_plain
from scaler_client.protocol.messages import FileResult, Outcome, Payload, TaskAttempt

from .kept_results import file_of

FILE_BYTES = 256 * 1024
"""Results of at least this size become files of their client. Below it a message costs less
(`make bench ONLY=data`)."""


class LargeValue:
    """A pickle of at least FILE_BYTES with the buffers of arrays beside it. The buffers must not change."""

    __slots__ = ("_value", "frames")

    def __init__(self, value: Any, frames: list[Payload]) -> None:
        self._value = value
        self.frames = frames

    def __len__(self) -> int:
        return sum(map(len, self.frames))

    def joined(self) -> bytes:
        """Return one pickle of the value.

        Raises:
            Exception: any error of the pickling.
        """
        return dumps(self._value)


def dump_result(value: Any) -> Any:
    """Pickle the result of a task, as `serializer.dumps` does. It is repeated here: one call and one argument less for
    each task (`make bench ONLY=submit`).

    Returns:
        The pickle, or a LargeValue.

    Raises:
        Exception: any error of the pickling.
    """
    if value is None:
        return NONE
    return dumps_plain(value) if is_plain(value) else dump_large(value)


def dump_large(value: Any) -> Any:
    """Pickle a value. Large buffers stay out of the pickle if the value has FILE_BYTES.

    Returns:
        The pickle, or a LargeValue.

    Raises:
        Exception: any error of the pickling.
    """
    buffers: list[Payload] = []

    def is_in_band(buffer: Any) -> bool:
        try:
            raw = buffer.raw()
        except BufferError:  # not contiguous
            return True
        if raw.nbytes < OUT_OF_BAND_BYTES:
            return True
        buffers.append(raw)
        return False

    data = cloudpickle_ext.dumps(value, is_in_band)
    if not buffers:
        return data
    if len(data) + sum(map(len, buffers)) < FILE_BYTES:
        return dumps(value)
    return LargeValue(value, pickle_object(value).frames())


def store_large(name: TaskAttempt, payload: Payload | LargeValue, may_be_file: bool) -> tuple[int, Payload]:
    """Return the outcome and the payload of a result of at least FILE_BYTES.

    Args:
        name: the attempt.
        payload: the result.
        may_be_file: whether it may be a file of its client.
    """
    frames = payload.frames if isinstance(payload, LargeValue) else [payload]
    # A child that the task has forked must not replace the task's own file.
    if may_be_file and not task_host.is_forked_by_task and _write(name, frames):
        return Outcome.FILE.value, FileResult(file_of(name)[1], sum(map(len, frames))).pack()
    if not isinstance(payload, LargeValue):
        return Outcome.VALUE.value, payload
    try:
        return Outcome.VALUE.value, payload.joined()
    except Exception as error:  # it had been pickled without the buffers
        return Outcome.RESULT_FAILED.value, f"the result can't be pickled: {error!r}".encode(errors="replace")


def _write(name: TaskAttempt, frames: list[Payload]) -> bool:
    """Write a file into the directory of the client, if it is there. Returns whether it was written."""
    directory = directory_of(name[0])
    if not is_own_directory(directory):
        return False
    path = path_of(directory, file_of(name))
    try:
        # Without a name, nothing is left of it if this process is killed.
        descriptor = os.open(directory, os.O_TMPFILE | os.O_RDWR | FLAGS, 0o600)
        try:
            write_frames_to_memory(descriptor, frames)
            with suppress(FileNotFoundError):
                os.unlink(path)  # of an attempt with the same number, at an earlier scheduler
            os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor)  # with a directory, links are followed
        finally:
            os.close(descriptor)
    except (OSError, AttributeError):  # no space, the client has left, or the system has no such files
        return False
    return True
