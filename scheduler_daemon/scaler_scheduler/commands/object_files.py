"""Objects as files in shared memory: their names, their form, writing and removing them.

A host agent has a directory of object files, which its workers map. A client has one too, for its large objects. Agents
of its host link them into their own directory.

A file has a header (magic number, number of frames, size of each frame), and then the frames, each at a multiple of 64
bytes. The file is written under another name, which has its writer's process id, and then renamed: a reader finds all
of it or nothing. If a file could not be written, a symbolic link stands in its place. Its target is the reason. A link
needs no space, and there may be none.
"""

from __future__ import annotations

import os
import re
import stat
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

ObjectName = tuple[int, int]
"""The name of an object's file: its client's incarnation, and an id. For results of tasks, `file_id` makes the id."""

_FILE_ID_SHIFT, _VERSIONS = 48, 1 << 15
_NAME_LENGTH = 33


def file_id(task_id: int, attempt: int) -> int:
    """Return the id of the file with the result of this attempt. With it, a file of an attempt that does not count is
    never taken for the value."""
    return task_id | attempt % _VERSIONS << _FILE_ID_SHIFT


def result_of(file_name: str) -> int | None:
    """Return the task of a file with the result of an attempt; None: it is a file of something else."""
    if not _FILE_NAME.fullmatch(file_name) or len(file_name) != _NAME_LENGTH:
        return None
    attempt, task_id = divmod(int(file_name[17:], 16), 1 << _FILE_ID_SHIFT)
    return task_id if attempt else None


SHARED_MEMORY = "/dev/shm"

SHARED_BYTES = 64 * 1024
"""Objects, results that stay, and arguments of clients on another host become files from this size on. Smaller values
go through the scheduler, which costs less (decision 94)."""

CHUNK_BYTES = 1 << 20
"""The most bytes of a file in one answer of a data address."""

ALIGNMENT = 64

MAX_REASON_LENGTH = 120  # characters; a target of 128 bytes or more takes a page of a tmpfs

DO_NOT_WAIT = getattr(os, "O_NONBLOCK", 0)  # a pipe in the place of a file must not block
FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

USAGE_FILE, LOCK_FILE, DISK_LINK, WAKE_PIPE = STORAGE_FILES = ("usage", "lock", "disk", "wake")
"""Of a host agent's directory: the bytes in memory and on disk with their limits; the file that is locked to change
them; a link to the directory on disk; the pipe that wakes the agent's spiller."""

_MAGIC = b"scalerO1"
_HEADER = struct.Struct("<8sQ")
_FILE_NAME = re.compile(r"[0-9a-f]{16}-[0-9a-f]{16}(\.[0-9]+\.part|(\.[0-9]+){3})?")
_MAX_FRAMES = 64
HEAD_BYTES = _HEADER.size + 8 * _MAX_FRAMES
"""The most bytes of a file before its frames."""


def directory_of(incarnation: int) -> str:
    """The directory of object files of this client or host agent, if it is in shared memory."""
    return os.path.join(SHARED_MEMORY, f"scaler-{incarnation:016x}")


def is_own_directory(path: str) -> bool:
    """Whether there is a directory of this user at the path. A link, or another user's directory, is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def path_of(directory: str, name: ObjectName) -> str:
    """The path of an object's file."""
    client, object_id = name
    return os.path.join(directory, f"{client:016x}-{object_id:016x}")


def new_file(path: str) -> int:
    """Create a file that does not exist yet. Returns a descriptor to read and write it.

    Raises:
        OSError: it can't be created.
    """
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | FLAGS, 0o600)


def file_bytes(frames: Sequence[Any]) -> int:
    """The size of the file with these frames, in bytes."""
    return _layout([memoryview(frame).nbytes for frame in frames])[1]


def file_parts(frames: Sequence[Any]) -> list[tuple[int, memoryview]]:
    """The offset and the bytes of the header and of each frame in the file. Between them are zeros."""
    views = [memoryview(frame).cast("B") for frame in frames]
    sizes = [len(frame) for frame in views]
    header = memoryview(_HEADER.pack(_MAGIC, len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes))
    return [(0, header), *zip(_layout(sizes)[0], views)]


def write_frames(descriptor: int, frames: Sequence[Any]) -> None:
    """Write an object with these frames into an empty file.

    Raises:
        OSError: they can't be written.
    """
    for begin, data in file_parts(frames):
        os.lseek(descriptor, begin, os.SEEK_SET)
        while data:
            data = data[os.write(descriptor, data) :]
    os.ftruncate(descriptor, file_bytes(frames))


def write_object(
    directory: str,
    name: ObjectName,
    frames: Sequence[Any],
    write: Callable[[int, Sequence[Any]], None] = write_frames,
) -> None:
    """Write the object's file. Replaces an existing one.

    Args:
        frames: bytes, or other contiguous buffers.
        write: called with a descriptor of the empty file and the frames; writes them.

    Raises:
        OSError: it can't be written. Nothing is left of it.
    """
    path = path_of(directory, name)
    unfinished = path + unfinished_suffix(os.getpid())
    descriptor = new_file(unfinished)
    try:
        try:
            write(descriptor, frames)
        finally:
            os.close(descriptor)
        os.replace(unfinished, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(unfinished)
        raise


def part_path(directory: str, name: ObjectName) -> str:
    """The path of an object's file that this process has not finished, in another place than `write_object` uses."""
    return path_of(directory, name) + ".0.part"


def finish_part(directory: str, name: ObjectName, descriptor: int) -> None:
    """Check an unfinished file, and give it its name. Removes it if it is damaged.

    Raises:
        OSError: it can't be read or renamed.
        ValueError: it is damaged.
    """
    path = part_path(directory, name)
    try:
        head = os.pread(descriptor, HEAD_BYTES, 0)
        frame_places(head, os.fstat(descriptor).st_size)
        os.replace(path, path_of(directory, name))
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(path)
        raise


def link_object(source: str, directory: str, name: ObjectName) -> None:
    """Let the object's file in the directory `source` be in this directory as well. Replaces an existing one.

    Raises:
        OSError: it can't be linked.
    """
    path = path_of(directory, name)
    unfinished = path + unfinished_suffix(os.getpid())
    os.link(path_of(source, name), unfinished, follow_symlinks=False)
    os.replace(unfinished, path)


def mark_lost(directory: str, name: ObjectName, reason: str) -> None:
    """Put the reason in the place of the object's file, for workers that wait for the file.

    Raises:
        OSError: the link can't be made.
    """
    os.symlink(reason[:MAX_REASON_LENGTH], path_of(directory, name))


def file_size(directory: str, name: ObjectName) -> int:
    """The size of the object's file in bytes, with its header; 0: there is no such file."""
    with suppress(OSError):
        status = os.lstat(path_of(directory, name))
        if stat.S_ISREG(status.st_mode):
            return status.st_size
    return 0


def read_frames(directory: str, name: ObjectName) -> list[bytes]:
    """Read the frames of an object into memory. A file that shrinks meanwhile is an error, as mapping it is not.

    Raises:
        OSError: the file can't be read.
        ValueError: it is damaged.
    """
    descriptor = os.open(path_of(directory, name), os.O_RDONLY | DO_NOT_WAIT | FLAGS)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        head = file.read(HEAD_BYTES)
        frames = []
        for begin, size in frame_places(head, status.st_size):
            file.seek(begin)
            frames.append(file.read(size))
            if len(frames[-1]) != size:
                raise ValueError("the file has shrunk")
    return frames


def frame_places(head: Any, file_bytes: int) -> list[tuple[int, int]]:
    """The offset and size of each frame in a file.

    Args:
        head: the bytes of the file, or its first ones.
        file_bytes: the size of the file.

    Raises:
        ValueError: the file is damaged.
    """
    if len(head) < _HEADER.size:
        raise ValueError("the file is damaged")
    magic, count = _HEADER.unpack_from(head)
    if magic != _MAGIC or _HEADER.size + 8 * count > len(head):
        raise ValueError("the file is damaged")
    sizes = struct.unpack_from(f"<{count}Q", head, _HEADER.size)
    begins, end = _layout(sizes)
    if end != file_bytes:
        raise ValueError("the file is damaged")
    return list(zip(begins, sizes))


def remove_object(directory: str, name: ObjectName) -> None:
    """Remove the object's file, or the link in its place, if there is one.

    A process that has mapped the file keeps the mapping.
    """
    with suppress(OSError):
        os.unlink(path_of(directory, name))


def remove_all(directory: str) -> None:
    """Remove all objects in the directory, and then the directory, if nothing foreign is in it."""
    with suppress(OSError):
        remove_files(directory)
        _remove(directory, STORAGE_FILES)
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
        _remove(directory, [name for name in os.listdir(directory) if name.endswith(unfinished_suffix(pid))])


def objects_in(directory: str, with_unfinished: bool = False) -> list[ObjectName]:
    """The names of all objects in the directory.

    Args:
        with_unfinished: whether the objects count whose files are being written.
    """
    names = []
    with suppress(OSError):
        for found in map(_FILE_NAME.fullmatch, os.listdir(directory)):
            if found is not None and (with_unfinished or found.group(1) is None):
                client, object_id = found.string.split(".")[0].split("-")
                names.append((int(client, 16), int(object_id, 16)))
    return names


def remove_objects_of(directory: str, client: int) -> None:
    """Remove all objects of a client in the directory, with unfinished ones."""
    begin = f"{client:016x}-"
    with suppress(OSError):
        names = [name for name in os.listdir(directory) if name.startswith(begin) and _FILE_NAME.fullmatch(name)]
        _remove(directory, names)


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


def unfinished_suffix(pid: int) -> str:
    """What follows the name of a file while this process writes it."""
    return f".{pid}.part"


def _layout(sizes: Sequence[int]) -> tuple[list[int], int]:
    """The offset of each frame, and the size of the file."""
    begins = []
    end = _HEADER.size + 8 * len(sizes)
    for size in sizes:
        begin = -(-end // ALIGNMENT) * ALIGNMENT
        begins.append(begin)
        end = begin + size
    return begins, end
