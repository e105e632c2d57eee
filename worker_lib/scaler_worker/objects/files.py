"""Maps object files: all workers of the host read them without a copy. `commands/object_files.py` has their form."""

from __future__ import annotations

import os
import stat

from scaler_client.commands.object_files import DO_NOT_WAIT, FLAGS, ObjectName, frame_places, path_of

from .mapped_file import map_file


class ObjectLostError(Exception):
    """The object has no file and will get none. The text says why."""


def read_object(directory: str, name: ObjectName) -> list[memoryview] | None:
    """Map the frames of an object. Returns None while there is no file.

    Raises:
        ObjectLostError: the file could not be written, is damaged, or can't be read.
    """
    path = path_of(directory, name)
    try:
        descriptor = os.open(path, os.O_RDONLY | DO_NOT_WAIT | FLAGS)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or not status.st_size:
                raise ObjectLostError(f"{path} is damaged")
            mapped = map_file(descriptor, status.st_size)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ObjectLostError(_link_at(path) or f"{path} can't be read: {error.strerror}") from None
    try:
        return [mapped[begin : begin + size] for begin, size in frame_places(mapped, len(mapped))]
    except ValueError:
        raise ObjectLostError(f"{path} is damaged") from None


def _link_at(path: str) -> str:
    """The target of the symbolic link at this path; empty if it is no link."""
    try:
        return os.readlink(path)
    except OSError:
        return ""
