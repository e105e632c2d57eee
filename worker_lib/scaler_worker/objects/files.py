"""Maps object files: all workers of the host read them without a copy. `commands/object_files.py` has their form."""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import suppress

from scaler_client.commands.mapped_files import map_file
from scaler_client.commands.object_files import DO_NOT_WAIT, FLAGS, ObjectName, frame_places, path_of

from .host_storage import HostStorage

LEASE_SECONDS = 0.0001
"""The agent leases a file for less than this time."""


class ObjectLostError(Exception):
    """The object has no file and will get none. The text says why."""


def read_object(directory: str, name: ObjectName, may_wait: bool = True) -> list[memoryview] | None:
    """Map the frames of an object. Returns None while there is no file.

    Args:
        directory: has the object files of the host in memory.
        name: the object's.
        may_wait: whether the caller may wait for the lock of the host, under which reads of the disk are counted.

    Raises:
        ObjectLostError: the file could not be written, is damaged, or can't be read.
    """
    path = path_of(directory, name)
    try:
        descriptor, is_on_disk = open_object(directory, name)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or not status.st_size:
                raise ObjectLostError(f"{path} is damaged")
            mapped = map_file(descriptor, status.st_size, is_on_disk)
            if not is_on_disk:
                with suppress(OSError):
                    os.utime(descriptor)  # the least recently read values are spilled first
        finally:
            os.close(descriptor)
        if is_on_disk and may_wait:
            HostStorage(directory).count_disk_read(status.st_size)
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = _link_at(path) if error.errno == errno.ELOOP else ""
        raise ObjectLostError(reason or f"{path} can't be read: {error.strerror}") from None
    try:
        return [mapped[begin : begin + size] for begin, size in frame_places(mapped, len(mapped))]
    except ValueError:
        raise ObjectLostError(f"{path} is damaged") from None


def open_object(directory: str, name: ObjectName) -> tuple[int, bool]:
    """Open the object's file. Returns the descriptor, and whether the file is on disk.

    Raises:
        ObjectLostError: its file on disk is gone.
        OSError: it can't be opened.
    """
    flags = os.O_RDONLY | DO_NOT_WAIT | FLAGS
    storage = HostStorage(directory)
    before = ""
    while True:
        try:
            return os.open(path_of(directory, name), flags), False
        except BlockingIOError:  # the agent has a lease on it for a moment, see `HostStorage.spill`
            time.sleep(LEASE_SECONDS)
            continue
        except OSError as error:
            path = storage.disk_path(name) if error.errno == errno.ELOOP else ""
            if not path:
                raise
        if path == before:
            raise ObjectLostError(f"{path} is gone")
        before = path
        with suppress(FileNotFoundError):  # it was replaced or removed meanwhile
            return os.open(path, flags), True


def _link_at(path: str) -> str:
    """The target of the symbolic link at this path; empty if it is no link."""
    try:
        return os.readlink(path)
    except OSError:
        return ""
