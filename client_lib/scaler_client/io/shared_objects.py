"""Writes large objects as files for a scheduler on this host: one copy of the bytes, for all workers of the host."""

from __future__ import annotations

from ..commands.mapped_files import write_frames_to_memory
from ..commands.object_files import SHARED_BYTES, directory_of, is_own_directory, write_object
from ..protocol.messages import Object


def share_object(scheduler: int, client: int, message: Object) -> Object:
    """Write a large object into the scheduler's directory, if that is on this host and belongs to this user.

    Args:
        scheduler: the scheduler's incarnation, which names the directory.
        client: the incarnation of the client that sends the object.
        message: the object with its frames.

    Returns:
        The message to send: without frames if they are in the file now, else `message` itself.
    """
    size = sum(map(len, message.frames))
    directory = directory_of(scheduler)
    if size < SHARED_BYTES or not is_own_directory(directory):
        return message
    try:
        write_object(directory, (client, message.id), message.frames, write_frames_to_memory)
    except OSError:  # no space, or the scheduler has just ended
        return message
    return Object(message.id, (), message.client, message.name, size)
