"""Objects as files of a host: the agent or a worker writes them once, all workers of the host map them read-only.

A file has a header (magic number, number of frames, size of each frame), and then the frames, each at a multiple of 64
bytes. The file is written under another name, which has its writer's process id, and then renamed: a reader finds all
of it or nothing. If a file could not be written, a symbolic link stands in its place. Its target is the reason: this
takes no space where there is none.
"""

from __future__ import annotations

import os
import re
import stat
import struct
from collections.abc import Sequence
from contextlib import suppress

from scaler_client.protocol.messages import Payload

from ..task_rows import ObjectName
from .mapped_file import map_file

ALIGNMENT = 64

LONGEST_REASON = 120  # characters; a target of 128 bytes or more takes a page of a tmpfs

_MAGIC = b"scalerO1"
_HEADER = struct.Struct("<8sQ")
_FILE_NAME = re.compile(r"[0-9a-f]{16}-[0-9a-f]{16}(\.[0-9]+\.part)?")
_DO_NOT_WAIT = getattr(os, "O_NONBLOCK", 0)  # a pipe in the place of a file must not block
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class ObjectLostError(Exception):
    """The object has no file and will get none. The text says why."""


def write_object(directory: str, name: ObjectName, frames: Sequence[Payload]) -> None:
    """Write the object's file. Replaces an existing one.

    Raises:
        OSError: it can't be written. Nothing is left of it.
    """
    path = _path(directory, name)
    unfinished = path + _unfinished(os.getpid())
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
    try:
        try:
            _write(descriptor, [memoryview(frame).cast("B") for frame in frames])
        finally:
            os.close(descriptor)
        os.replace(unfinished, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(unfinished)
        raise


def mark_lost(directory: str, name: ObjectName, reason: str) -> None:
    """Put the reason in the place of the object's file, for workers that wait for the file.

    Raises:
        OSError: the link can't be made.
    """
    os.symlink(reason[:LONGEST_REASON], _path(directory, name))


def remove_object(directory: str, name: ObjectName) -> None:
    """Remove the object's file, or the link in its place, if there is one. A process that has it mapped keeps it."""
    with suppress(OSError):
        os.unlink(_path(directory, name))


def remove_all(directory: str) -> None:
    """Remove all objects in the directory, and then the directory, if nothing else is in it."""
    with suppress(OSError):
        remove_files(directory)
        os.rmdir(directory)


def remove_files(directory: str) -> None:
    """Remove all objects in the directory.

    Raises:
        OSError: the directory can't be read.
    """
    _remove(directory, [name for name in os.listdir(directory) if _FILE_NAME.fullmatch(name)])


def remove_unfinished(directory: str, pid: int) -> None:
    """Remove the unfinished files of a process that has ended."""
    with suppress(OSError):
        _remove(directory, [name for name in os.listdir(directory) if name.endswith(_unfinished(pid))])


def objects_in(directory: str) -> list[ObjectName]:
    """The names of all objects in the directory, without unfinished files."""
    names = []
    with suppress(OSError):
        for found in map(_FILE_NAME.fullmatch, os.listdir(directory)):
            if found is not None and found.group(1) is None:
                client, object_id = found.string.split("-")
                names.append((int(client, 16), int(object_id, 16)))
    return names


def bytes_in(directory: str) -> int:
    """The size of all files in the directory, in bytes."""
    size = 0
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):
                size += entry.stat(follow_symlinks=False).st_size
    return size


def _remove(directory: str, names: Sequence[str]) -> None:
    for name in names:
        with suppress(OSError):
            os.unlink(os.path.join(directory, name))


def _unfinished(pid: int) -> str:
    return f".{pid}.part"


def read_object(directory: str, name: ObjectName) -> list[memoryview] | None:
    """Map the frames of an object. Returns None while there is no file.

    Raises:
        ObjectLostError: the file could not be written, is damaged, or can't be read.
    """
    path = _path(directory, name)
    try:
        descriptor = os.open(path, os.O_RDONLY | _DO_NOT_WAIT | _FLAGS)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size < _HEADER.size:
                raise ObjectLostError(f"{path} is damaged")
            mapped = map_file(descriptor, status.st_size)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ObjectLostError(_link_at(path) or f"{path} can't be read: {error.strerror}") from None
    return _frames_in(mapped, path)


def _path(directory: str, name: ObjectName) -> str:
    client, object_id = name
    return os.path.join(directory, f"{client:016x}-{object_id:016x}")


def _link_at(path: str) -> str:
    """The target of the symbolic link at this path; empty if it is no link."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _write(descriptor: int, frames: Sequence[memoryview]) -> None:
    sizes = [len(frame) for frame in frames]
    begins, end = _layout(sizes)
    _write_all(descriptor, memoryview(_HEADER.pack(_MAGIC, len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes)))
    for begin, frame in zip(begins, frames):
        os.lseek(descriptor, begin, os.SEEK_SET)
        _write_all(descriptor, frame)
    os.ftruncate(descriptor, end)


def _write_all(descriptor: int, data: memoryview) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _layout(sizes: Sequence[int]) -> tuple[list[int], int]:
    """The offset of each frame, and the size of the file."""
    begins = []
    end = _HEADER.size + 8 * len(sizes)
    for size in sizes:
        begin = -(-end // ALIGNMENT) * ALIGNMENT
        begins.append(begin)
        end = begin + size
    return begins, end


def _frames_in(mapped: memoryview, path: str) -> list[memoryview]:
    magic, count = _HEADER.unpack_from(mapped)
    if magic != _MAGIC or _HEADER.size + 8 * count > len(mapped):
        raise ObjectLostError(f"{path} is damaged")
    sizes = struct.unpack_from(f"<{count}Q", mapped, _HEADER.size)
    begins, end = _layout(sizes)
    if end != len(mapped):
        raise ObjectLostError(f"{path} is damaged")
    return [mapped[begin : begin + size] for begin, size in zip(begins, sizes)]
