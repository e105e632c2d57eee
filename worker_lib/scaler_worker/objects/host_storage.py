"""The values of a host in memory and on disk, within a limit for each.

All processes of a host write values through this class: its agent and its workers. A value is a file in the host's
directory in memory. If it finds no room there, it is a file on disk, and the directory has a symbolic link to it.
Readers open the same path in both cases.

The file `usage` has the limits and the bytes in use. A process changes it under a lock, which the kernel releases if
the process is killed. It is a POSIX lock, which belongs to one process: a child that a task forks meanwhile does not
hold it, as it would hold a lock of flock. The lock is never held while a file is written or the disk is used. A process
that is stopped may hold it for long, so the agent's loop never waits for it (`agent/value_files.py`).

The bytes in use can be counted from the directory alone: an unfinished file has its final size from the beginning, and
the name of a file on disk ends with its size. A link exists before the file on disk that it names. So nothing on disk
is unknown to the directory, even if its writer was killed.
"""

from __future__ import annotations

import errno
import itertools
import os
import signal
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from scaler_client.commands.mapped_files import write_frames_to_memory
from scaler_client.commands.object_files import (
    DISK_LINK,
    FLAGS,
    LOCK_FILE,
    STORAGE_FILES,
    USAGE_FILE,
    WAKE_PIPE,
    ObjectName,
    bytes_in,
    file_bytes,
    link_object,
    new_file,
    objects_in,
    path_of,
    unfinished_suffix,
    write_frames,
    write_object,
)

if sys.platform != "win32":  # Windows: no limits
    import fcntl

SPILL_ABOVE = 0.8
"""The share of the limit in memory above which values are spilled."""

SPILL_DOWN_TO = 0.7
"""The share of the limit in memory at which spilling ends."""

LITTLE_ROOM = 1 / 2
"""A host has little room if less than this part of its larger limit is free, both in memory and on disk."""

LARGE_CHANGE = 1 / 16
"""A change of what a host's values take is large from this part of its larger limit on."""

RELEASE_ABOVE = 0.6
"""The share of the limit in memory above which workers unmap values that no running task reads. A mapped file can't be
spilled."""

SPILLER_PID = 1
"""Stands for the agent's spiller in the names of unfinished files: the agent itself may write the same object again."""

FETCHED = ".0.part"
"""The end of the names of files that the agent is fetching (`part_path`). They count when they are complete."""

_FORM = struct.Struct("<6q")
_numbers = itertools.count()  # distinguish the files on disk that this process writes

_threads = threading.Lock()
"""Held with the lock of the host, which does not keep the threads of one process apart. A process would lose that lock
if another thread closed a descriptor of its file."""


def _renew_lock() -> None:
    """Make the lock anew in a forked child: the thread that held it is not there."""
    global _threads
    _threads = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)

ROOM_SECONDS = 2.0
"""For so long a worker waits until other values leave room for its result. A value that its program has just dropped
counts until the scheduler has told the host."""

ROOM_CHECK_SECONDS = 0.02
"""The time between two looks."""


class NoRoomError(Exception):
    """A value fits neither into memory nor onto disk. The text names both limits."""

    is_too_large = True
    """Whether it would not fit either if the host had no other values, or the disk has failed."""


class LimitReachedError(OSError):
    """`--spill-limit` leaves no room for a value."""


@dataclass
class Usage:
    """What the values of a host use, in bytes."""

    memory_limit: int
    disk_limit: int
    memory_bytes: int = 0
    disk_bytes: int = 0
    written_bytes: int = 0
    """Written to disk since the agent's start."""
    read_bytes: int = 0
    """Mapped from disk since the agent's start."""

    def is_news(self, told: Usage, removed: int) -> bool:
        """Whether the scheduler should hear this at once: the host has little room, or much has come or was removed.

        Args:
            told: what the last heartbeat said.
            removed: the bytes of the values that were removed since then. About as many may have come.
        """
        limit = max(self.memory_limit, self.disk_limit)
        free = max(self.memory_limit - self.memory_bytes, self.disk_limit - self.disk_bytes)
        came = self.memory_bytes + self.disk_bytes - told.memory_bytes - told.disk_bytes + removed
        return free < LITTLE_ROOM * limit or removed + max(0, came) >= LARGE_CHANGE * limit


@dataclass(frozen=True)
class _Place:
    """Where a value is, or what an unfinished file is to become."""

    size: int = 0
    disk_file: str = ""
    """The name of its file on disk; empty: it is in memory."""


_NOWHERE = _Place()


class HostStorage:
    """The values of one host. Any thread of any of its processes may use it."""

    def __init__(self, directory: str) -> None:
        """`directory` has the object files in memory. Without the file `usage` in it, there are no limits and no disk.
        The directory need not exist yet."""
        self.directory = directory
        self._disk = os.path.join(directory, DISK_LINK)

    def create(self, memory_limit: int, disk_limit: int = 0, disk_directory: str = "") -> None:
        """Set the limits, for all processes of the host.

        Args:
            memory_limit: in bytes.
            disk_limit: in bytes.
            disk_directory: an existing directory, for this host alone; empty: values are not spilled.

        Raises:
            OSError: the directory can't be written to.
        """
        if sys.platform == "win32":
            return
        if disk_directory:
            os.symlink(os.path.abspath(disk_directory), self._disk)
        os.mkfifo(os.path.join(self.directory, WAKE_PIPE), 0o600)
        os.close(new_file(os.path.join(self.directory, LOCK_FILE)))
        descriptor = new_file(os.path.join(self.directory, USAGE_FILE))
        try:
            os.write(descriptor, _FORM.pack(memory_limit, disk_limit if disk_directory else 0, 0, 0, 0, 0))
        finally:
            os.close(descriptor)

    def usage(self) -> Usage | None:
        """The bytes in use, and the limits; None: there are no limits."""
        with suppress(OSError), open(os.path.join(self.directory, USAGE_FILE), "rb", buffering=0) as file:
            data = file.read(_FORM.size)
            if data is not None and len(data) == _FORM.size:
                return Usage(*_FORM.unpack(data))
        return None

    @property
    def is_scarce(self) -> bool:
        """Whether so much memory is in use that workers should unmap values that they do not need now."""
        usage = self.usage()
        return usage is not None and usage.memory_bytes > usage.memory_limit * RELEASE_ABOVE

    def has_room(self, size: int, coming: int) -> bool:
        """Whether a file of so many bytes may be fetched into memory, beside so many bytes that are being fetched.

        It need not fit below the limit while the spiller has nothing to do: else it would wait for no one.
        """
        usage = self.usage()
        if usage is None:
            return True
        used = usage.memory_bytes + coming
        return used <= usage.memory_limit * SPILL_ABOVE or used + size <= usage.memory_limit

    # --------------------------------------------------------------------------------------------------------- writing

    def write(self, name: ObjectName, frames: Sequence[Any]) -> None:
        """Write the object's file, in memory or else on disk. Replaces an existing one.

        Args:
            frames: bytes, or other contiguous buffers.

        Raises:
            NoRoomError: it fits nowhere, or the disk has failed.
            OSError: the directory is gone.
        """
        if not self.write_to_memory(name, frames):
            self.write_to_disk(name, frames)

    def write_when_room(self, name: ObjectName, frames: Sequence[Any]) -> None:
        """Write the object's file as `write` does, but wait up to ROOM_SECONDS until there is room.

        Only workers may call it: the agent makes the room.

        Raises:
            NoRoomError: there was no room in this time, it never fits, or the disk has failed.
            OSError: the directory is gone.
        """
        deadline = time.monotonic() + ROOM_SECONDS
        while True:
            try:
                return self.write(name, frames)
            except NoRoomError as error:
                if error.is_too_large or time.monotonic() > deadline:
                    raise
            time.sleep(ROOM_CHECK_SECONDS)

    def write_to_memory(self, name: ObjectName, frames: Sequence[Any]) -> bool:
        """Write the object's file in memory. Returns whether there was room.

        Raises:
            OSError: the directory is gone. Without limits: it can't be written.
        """
        if self.usage() is None:
            write_object(self.directory, name, frames, write_frames_to_memory)
            return True
        size = file_bytes(frames)
        unfinished = path_of(self.directory, name) + unfinished_suffix(os.getpid())
        try:
            descriptor = self._memory_file(unfinished, size)
            if descriptor is None:
                return False
            try:
                try:
                    write_frames_to_memory(descriptor, frames)
                finally:
                    os.close(descriptor)
                self._commit(unfinished, name)
            except BaseException:
                self._drop(unfinished, _Place(size))
                raise
        except OSError:
            if os.path.isdir(self.directory):
                return False  # the file system in memory is full
            raise
        return True

    def _memory_file(self, unfinished: str, size: int) -> int | None:
        """Reserve room in memory, and create the file with this size. Returns its descriptor; None: there is no room.

        Raises:
            OSError: it can't be created.
        """
        with self._locked() as usage:
            if usage.memory_bytes + size > usage.memory_limit:
                return None
            descriptor = new_file(unfinished)
            try:
                os.ftruncate(descriptor, size)
            except BaseException:
                os.close(descriptor)
                os.unlink(unfinished)
                raise
            usage.memory_bytes += size
        return descriptor

    def write_to_disk(self, name: ObjectName, frames: Sequence[Any]) -> None:
        """Write the object's file on disk. Replaces an existing one.

        Raises:
            NoRoomError: there is no room, or the disk has failed.
            OSError: the directory is gone.
        """
        size = file_bytes(frames)
        try:
            with self._disk_file(name, size, os.getpid()) as (descriptor, unfinished):
                write_frames(descriptor, frames)
                self._commit(unfinished, name)
        except OSError as error:
            if not os.path.isdir(self.directory):
                raise
            no_room = NoRoomError(self._no_room_text(size, error))
            usage = self.usage()
            if isinstance(error, LimitReachedError) and usage is not None:
                no_room.is_too_large = size > max(usage.memory_limit, usage.disk_limit)
            raise no_room from None

    @contextmanager
    def _disk_file(self, name: ObjectName, size: int, pid: int) -> Iterator[tuple[int, str]]:
        """Reserve room on disk, and create the file.

        Returns its descriptor, and the unfinished file: a link to it. If the body fails, both are removed.
        """
        path = path_of(self.directory, name)
        unfinished = path + unfinished_suffix(pid)
        place = _Place(size, f"{os.path.basename(path)}.{os.getpid()}.{next(_numbers)}.{size}")
        with self._locked() as usage:
            if usage.disk_bytes + size > usage.disk_limit:
                raise LimitReachedError("--spill-limit is reached")
            os.symlink(os.path.join(DISK_LINK, place.disk_file), unfinished)
            usage.disk_bytes += size
        try:
            descriptor = new_file(os.path.join(self._disk, place.disk_file))
            try:
                yield descriptor, unfinished
            finally:
                os.close(descriptor)
        except BaseException:
            self._drop(unfinished, place)
            raise
        with self._locked() as usage:
            usage.written_bytes += size

    def link(self, source: str, name: ObjectName) -> None:
        """Let the object's file in the directory `source` be in this directory as well. It counts as in memory, but
        never goes to disk: it needs no other room. Replaces an existing one.

        Raises:
            OSError: it can't be linked.
        """
        if self.usage() is None:
            link_object(source, self.directory, name)
            return
        with self._locked() as usage:
            replaced = self._place(path_of(self.directory, name))
            link_object(source, self.directory, name)
            self._release(usage, replaced)
        self.adopt(name)
        self._unlink_disk_file(replaced)

    def adopt(self, name: ObjectName) -> None:
        """Count a file in memory that was not written by this class. It may exceed the limit, until values are
        spilled."""
        with suppress(OSError):
            with self._locked() as usage:
                usage.memory_bytes += self._place(path_of(self.directory, name)).size
                is_much = usage.memory_bytes > usage.memory_limit * SPILL_ABOVE
            if is_much:
                self.wake_spiller()

    def spill(self, name: ObjectName) -> int:
        """Move a value from memory to disk. Returns its size; 0: some process maps it, or it is not in memory alone.

        Raises:
            OSError: the disk is full or has failed, or its limit is reached (LimitReachedError). The value stays in
                memory.
        """
        path = path_of(self.directory, name)
        try:
            source = os.open(path, os.O_RDONLY | FLAGS)
        except OSError:
            return 0
        try:
            status = os.fstat(source)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or _is_open_elsewhere(source):
                return 0
            with self._disk_file(name, status.st_size, SPILLER_PID) as (descriptor, unfinished):
                _copy(source, descriptor, status.st_size)
                self._commit(unfinished, name, only_if=lambda: os.path.samestat(os.lstat(path), status))
        except FileNotFoundError:  # it was removed meanwhile
            return 0
        finally:
            os.close(source)
        return status.st_size

    def _commit(self, unfinished: str, name: ObjectName, only_if: Callable[[], bool] = lambda: True) -> None:
        """Give an unfinished file the object's name.

        Raises:
            FileNotFoundError: `only_if` returned False.
        """
        path = path_of(self.directory, name)
        with self._locked() as usage:
            if not only_if():
                raise FileNotFoundError(path)
            replaced = self._place(path)
            os.replace(unfinished, path)
            self._release(usage, replaced)
            is_much = usage.memory_bytes > usage.memory_limit * SPILL_ABOVE
        self._unlink_disk_file(replaced)
        if is_much:
            self.wake_spiller()

    # -------------------------------------------------------------------------------------------------------- removing

    def remove(self, names: Iterable[ObjectName]) -> list[str]:
        """Remove values. Returns the paths of their files on disk, which the caller has to unlink: a disk may be slow.

        A process that has mapped a value keeps the mapping.
        """
        return self._remove([path_of(self.directory, name) for name in names])

    def _entries(self) -> list[str]:
        names = set(os.listdir(self.directory)).difference(STORAGE_FILES)
        return [os.path.join(self.directory, name) for name in names]

    def _remove(self, paths: Sequence[str]) -> list[str]:
        if self.usage() is None:
            unlink_files(paths)
            return []
        places = []
        with suppress(OSError), self._locked() as usage:
            for path in paths:
                with suppress(OSError):
                    place = self._place(path)
                    os.unlink(path)
                    self._release(usage, place)
                    places.append(place)
        return [os.path.join(self._disk, place.disk_file) for place in places if place.disk_file]

    def process_ended(self, pid: int) -> list[str]:
        """Remove what an ended process has left unfinished, and count all values again.

        Returns:
            The paths of its unfinished files on disk, which the caller has to unlink.
        """
        suffix = unfinished_suffix(pid)
        disk_files = []
        with suppress(OSError):
            for path in self._entries():
                if not path.endswith(suffix):
                    continue
                with suppress(OSError):
                    place = self._place(path)
                    os.unlink(path)
                    if place.disk_file:
                        disk_files.append(os.path.join(self._disk, place.disk_file))
            self._count()
        return disk_files

    def _count(self) -> None:
        with self._locked() as usage:
            usage.memory_bytes = usage.disk_bytes = 0
            for path in self._entries():
                if path.endswith(FETCHED):
                    continue
                place = self._place(path)
                if place.disk_file:
                    usage.disk_bytes += place.size
                else:
                    usage.memory_bytes += place.size

    def _drop(self, unfinished: str, place: _Place) -> None:
        """Remove an unfinished file, if it is there."""
        with suppress(OSError):
            with self._locked() as usage:
                os.unlink(unfinished)
                self._release(usage, place)
            self._unlink_disk_file(place)

    # --------------------------------------------------------------------------------------------------------- reading

    def has(self, name: ObjectName) -> bool:
        """Whether the value is in memory or on disk."""
        with suppress(OSError):
            return self._place(path_of(self.directory, name)) != _NOWHERE
        return False

    def disk_path(self, name: ObjectName) -> str:
        """The path of the value's file on disk; empty if it is not on disk."""
        with suppress(OSError):
            disk_file = self._place(path_of(self.directory, name)).disk_file
            return os.path.join(self._disk, disk_file) if disk_file else ""
        return ""

    def bytes_in_use(self) -> int:
        """The size of all values, in memory and on disk."""
        usage = self.usage()
        return bytes_in(self.directory) if usage is None else usage.memory_bytes + usage.disk_bytes

    def count_disk_read(self, size: int) -> None:
        with suppress(OSError), self._locked() as usage:
            usage.read_bytes += size

    def in_memory(self) -> list[tuple[int, int, ObjectName]]:
        """The values in memory, the least recently read first: time of the last read in ns, size in bytes, name."""
        found = []
        for name in objects_in(self.directory):
            with suppress(OSError):
                status = os.lstat(path_of(self.directory, name))
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                    found.append((status.st_mtime_ns, status.st_size, name))
        return sorted(found)

    def wake_spiller(self) -> None:
        """Tell the agent's spiller that much memory is in use."""
        with suppress(OSError):
            descriptor = os.open(os.path.join(self.directory, WAKE_PIPE), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                os.write(descriptor, b"w")
            finally:
                os.close(descriptor)

    # --------------------------------------------------------------------------------------------------------- helpers

    @contextmanager
    def _locked(self) -> Iterator[Usage]:
        """Lock and read the usage. It is written back when the body ends without an error.

        Raises:
            OSError: the directory is gone.
        """
        with _threads:
            lock = os.open(os.path.join(self.directory, LOCK_FILE), os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX)
                with self._opened_usage() as usage:
                    yield usage
            finally:
                os.close(lock)

    @contextmanager
    def _opened_usage(self) -> Iterator[Usage]:
        """Read the usage, and write it back when the body ends without an error.

        Raises:
            OSError: the directory is gone.
        """
        descriptor = os.open(os.path.join(self.directory, USAGE_FILE), os.O_RDWR | os.O_CLOEXEC)
        try:
            usage = Usage(*_FORM.unpack(os.pread(descriptor, _FORM.size, 0)))
            yield usage
            data = _FORM.pack(
                usage.memory_limit,
                usage.disk_limit,
                usage.memory_bytes,
                usage.disk_bytes,
                usage.written_bytes,
                usage.read_bytes,
            )
            os.pwrite(descriptor, data, 0)
        finally:
            os.close(descriptor)

    @staticmethod
    def _place(path: str) -> _Place:
        """Where the value at this path is. A mark of a lost object needs no room."""
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return _NOWHERE
        if stat.S_ISREG(status.st_mode):
            return _Place(status.st_size)
        if stat.S_ISLNK(status.st_mode):
            folder, _, disk_file = os.readlink(path).rpartition("/")
            if folder == DISK_LINK and disk_file.startswith(os.path.basename(path).partition(".")[0] + "."):
                return _Place(int(disk_file.rpartition(".")[2]), disk_file)
        return _NOWHERE

    @staticmethod
    def _release(usage: Usage, place: _Place) -> None:
        if place.disk_file:
            usage.disk_bytes = max(0, usage.disk_bytes - place.size)
        else:
            usage.memory_bytes = max(0, usage.memory_bytes - place.size)

    def _unlink_disk_file(self, place: _Place) -> None:
        if place.disk_file:
            with suppress(OSError):
                os.unlink(os.path.join(self._disk, place.disk_file))

    def _no_room_text(self, size: int, error: OSError) -> str:
        usage = self.usage() or Usage(0, 0)
        memory = f"--object-memory is {usage.memory_limit:,} bytes, of which {usage.memory_bytes:,} are in use"
        disk = f"--spill-limit is {usage.disk_limit:,} bytes, of which {usage.disk_bytes:,} are in use"
        try:
            place = os.readlink(self._disk)
        except OSError:
            return (
                f"{size:,} bytes fit neither into memory nor onto disk: {memory}; there is no usable --spill-directory"
            )
        reason = "" if isinstance(error, LimitReachedError) else f" ({place}: {error.strerror})"
        return f"{size:,} bytes fit neither into memory nor onto disk: {memory}; {disk}{reason}"


def unlink_files(paths: Iterable[str]) -> None:
    """Remove files that the methods above have returned."""
    for path in paths:
        with suppress(OSError):
            os.unlink(path)


def _is_open_elsewhere(descriptor: int) -> bool:
    """Whether another descriptor or a mapping of this file exists: on Linux, the kernel gives no lease then."""
    if not hasattr(fcntl, "F_SETLEASE"):
        return False
    try:
        # A process that opens the file in this moment makes the kernel send a signal. The default, SIGIO, would end
        # this process. SIGURG is ignored.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    with suppress(OSError):  # the kernel has ended the lease, as this process was stopped for long
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def _copy(source: int, target: int, size: int) -> None:
    """Copy a file.

    Raises:
        OSError: it can't be written, or it is shorter.
    """
    offset = 0
    while offset < size:
        copied = os.sendfile(target, source, offset, size - offset)
        if not copied:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        offset += copied
