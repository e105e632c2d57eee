"""The values of a host in memory and on disk: limits, bookkeeping, spilling, failing disks."""

from __future__ import annotations

import errno
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import wait_until

from scaler_client.commands.object_files import (
    STORAGE_FILES,
    mark_lost,
    objects_in,
    path_of,
    remove_all,
    unfinished_suffix,
    write_object,
)
from scaler_worker.objects import host_storage
from scaler_worker.objects.files import ObjectLostError, read_object
from scaler_worker.objects.host_storage import HostStorage, LimitReachedError, NoRoomError, Usage
from scaler_worker.objects.spiller import SKIP_SECONDS, Spiller, SpillerThread

CLIENT = 7
KILO = 1000
HEAD = 64
"""The bytes of a file with one frame before this frame."""


class Host:
    """A host with a directory for memory and one for the disk."""

    def __init__(self, path: Path, memory: int = 10 * KILO, disk: int = 100 * KILO) -> None:
        self.memory = path / "memory"
        self.disk = path / "disk"
        self.memory.mkdir()
        self.disk.mkdir()
        self.storage = HostStorage(str(self.memory))
        self.storage.create(memory, disk, str(self.disk) if disk else "")

    def write(self, number: int, size: int = 2 * KILO) -> None:
        """Write a value whose file has this size."""
        self.storage.write((CLIENT, number), [bytes([number]) * (size - HEAD)])

    def read(self, number: int) -> memoryview:
        frames = read_object(str(self.memory), (CLIENT, number))
        assert frames is not None and bytes(frames[0][:1]) == bytes([number])
        return frames[0]

    def set_read_at(self, number: int, seconds: int) -> None:
        os.utime(path_of(str(self.memory), (CLIENT, number)), (seconds, seconds))

    def is_spilled(self, number: int) -> bool:
        return bool(self.storage.disk_path((CLIENT, number)))

    @property
    def usage(self) -> Usage:
        usage = self.storage.usage()
        assert usage is not None
        return usage

    def check(self) -> None:
        """The bytes in use are those of the files, and each file on disk belongs to a value."""
        usage = self.usage
        found = [each for each in self.memory.iterdir() if each.name not in STORAGE_FILES]
        assert usage.memory_bytes == sum(each.lstat().st_size for each in found if not each.is_symlink())
        links = {os.path.basename(os.readlink(each)) for each in found if each.is_symlink()}
        assert links == set(os.listdir(self.disk))
        assert usage.disk_bytes == sum(each.stat().st_size for each in self.disk.iterdir())
        counted = Usage(**vars(usage))
        self.storage._count()
        assert self.usage == counted


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    return fail


# ------------------------------------------------------------------------------------------------------------- writing


def test_without_limits_nothing_is_counted(tmp_path: Path) -> None:
    storage = HostStorage(str(tmp_path))
    storage.write((CLIENT, 1), [b"x" * KILO])
    assert storage.usage() is None and not storage.is_scarce
    assert storage.remove([(CLIENT, 1)]) == [] and os.listdir(tmp_path) == []
    with pytest.raises(FileNotFoundError):
        HostStorage(str(tmp_path / "gone")).write((CLIENT, 1), [b"x"])


def test_values_beyond_the_limit_are_written_to_disk(host: Host) -> None:
    for number in range(8):
        host.write(number)
    assert [host.is_spilled(number) for number in range(8)] == [False] * 5 + [True] * 3
    assert host.usage == Usage(10 * KILO, 100 * KILO, 10 * KILO, 6 * KILO, 6 * KILO, 0)
    assert all(len(host.read(number)) == 2 * KILO - HEAD for number in range(8))
    assert host.usage.read_bytes == 6 * KILO
    assert sorted(objects_in(str(host.memory))) == [(CLIENT, number) for number in range(8)]
    host.check()


def test_little_room_and_large_changes_are_news(host: Host) -> None:
    host.write(1, 10 * KILO)
    told = host.usage
    assert not host.usage.is_news(told, 0)
    host.write(2, 6 * KILO)
    assert not host.usage.is_news(told, 0)
    host.write(3, KILO)
    assert host.usage.is_news(told, 0)
    told = host.usage
    assert not told.is_news(told, 3 * KILO) and told.is_news(told, 4 * KILO), "as much has come as was removed"
    host.write(4, 44 * KILO)
    assert host.usage.is_news(host.usage, 0), "less than half is free"
    host.storage.remove([(CLIENT, 4)])
    assert not host.usage.is_news(host.usage, 0)


def test_a_value_larger_than_the_limit_is_written_to_disk(host: Host) -> None:
    host.write(1, 20 * KILO)
    assert host.is_spilled(1) and len(host.read(1)) == 20 * KILO - HEAD
    host.check()


@pytest.mark.parametrize("sizes", [(2, 4), (4, 2), (2, 12), (12, 2), (12, 14)])
def test_a_value_is_replaced(host: Host, sizes: tuple[int, int]) -> None:
    for size in sizes:
        host.write(1, size * KILO)
        assert len(host.read(1)) == size * KILO - HEAD
        host.check()
    assert host.usage.memory_bytes + host.usage.disk_bytes == sizes[1] * KILO


def test_a_value_goes_to_disk_if_the_file_system_in_memory_is_full(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_storage, "write_frames_to_memory", failing(errno.ENOSPC))
    host.write(1)
    assert host.is_spilled(1) and host.usage.memory_bytes == 0
    host.check()


def test_a_value_that_fits_nowhere_is_an_error_with_both_limits(host: Host) -> None:
    host.write(1, 9 * KILO)
    with pytest.raises(NoRoomError) as caught:
        host.write(2, 101 * KILO)
    assert str(caught.value) == (
        "101,000 bytes fit neither into memory nor onto disk: --object-memory is 10,000 bytes, of which 9,000 are in "
        "use; --spill-limit is 100,000 bytes, of which 0 are in use"
    )
    host.check()


def test_a_result_waits_until_others_have_left(host: Host) -> None:
    host.write(1, 9 * KILO)
    host.write(2, 95 * KILO)
    frames = [bytes([3]) * (8 * KILO)]
    with pytest.raises(NoRoomError):
        host.storage.write((CLIENT, 3), frames)
    waiting = threading.Thread(target=host.storage.write_when_room, args=((CLIENT, 3), frames))
    waiting.start()
    assert host.storage.remove([(CLIENT, 1)]) == []
    waiting.join()
    assert len(host.read(3)) == 8 * KILO
    host.check()


def test_a_value_that_never_fits_is_not_waited_for(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", failing(errno.EINVAL))
    with pytest.raises(NoRoomError):
        host.storage.write_when_room((CLIENT, 1), [bytes(101 * KILO)])
    with monkeypatch.context() as patch:
        patch.setattr(host_storage, "new_file", failing(errno.EIO))
        with pytest.raises(NoRoomError):
            host.storage.write_when_room((CLIENT, 1), [bytes(20 * KILO)])
    host.check()


def test_without_a_disk_the_error_says_so(tmp_path: Path) -> None:
    host = Host(tmp_path, disk=0)
    with pytest.raises(NoRoomError, match="--object-memory is 10,000 bytes.* there is no usable --spill-directory$"):
        host.write(2, 11 * KILO)
    host.check()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("function", ["new_file", "write_frames"])
def test_a_failing_disk_is_an_error_of_one_value(
    host: Host, number: int, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(host_storage, function, failing(number))
        with pytest.raises(NoRoomError) as caught:
            host.write(1, 20 * KILO)
    assert f"({host.disk}: {os.strerror(number)})" in str(caught.value)
    host.check()
    host.write(1, 20 * KILO)
    host.check()


def test_an_agent_that_has_ended_is_another_error(host: Host) -> None:
    for size in (KILO, 20 * KILO):
        with pytest.raises(OSError):
            remove_all(str(host.memory))
            host.write(1, size)


def test_threads_keep_the_limit(host: Host) -> None:
    def write(first: int) -> None:
        for number in range(first, first + 20):
            host.write(number)

    threads = [threading.Thread(target=write, args=(first,)) for first in (0, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert host.usage.memory_bytes == 10 * KILO and host.usage.disk_bytes == 70 * KILO
    host.check()


# ------------------------------------------------------------------------------------------------------------ removing


def test_removed_values_leave_room(host: Host) -> None:
    for number in range(8):
        host.write(number)
    left = host.storage.remove([(CLIENT, 0), (CLIENT, 7), (CLIENT, 99)])
    assert len(left) == 1
    os.unlink(left[0])
    host.check()
    assert host.usage.memory_bytes == 8 * KILO and host.usage.disk_bytes == 4 * KILO
    for each in host.storage.remove([(CLIENT, number) for number in range(8)]):
        os.unlink(each)
    host.check()
    assert host.usage.memory_bytes == host.usage.disk_bytes == 0


def test_marks_of_lost_objects_need_no_room(host: Host) -> None:
    mark_lost(str(host.memory), (CLIENT, 1), "/dev/shm/No space left on device")
    with pytest.raises(ObjectLostError, match="No space"):
        read_object(str(host.memory), (CLIENT, 1))
    assert host.storage.remove([(CLIENT, 1)]) == []
    host.check()


def test_linked_files_count_and_stay_in_memory(host: Host, tmp_path: Path) -> None:
    source = tmp_path / "scheduler"
    source.mkdir()
    write_object(str(source), (CLIENT, 1), [b"\1" * (9 * KILO - HEAD)])
    host.storage.link(str(source), (CLIENT, 1))
    assert host.usage.memory_bytes == 9 * KILO
    assert host.storage.in_memory() == [] and host.storage.spill((CLIENT, 1)) == 0
    host.read(1)
    host.check()


def test_fetched_files_count_and_are_spilled(host: Host) -> None:
    thread = SpillerThread(host.storage)
    try:
        for number in range(8):
            write_object(str(host.memory), (CLIENT, number), [bytes([number]) * (2 * KILO - HEAD)])
            host.storage.adopt((CLIENT, number))
        while host.usage.memory_bytes > 8 * KILO:
            os.sched_yield()
    finally:
        thread.close()
    assert all(len(host.read(number)) == 2 * KILO - HEAD for number in range(8))
    assert host.usage.memory_bytes + host.usage.disk_bytes == 16 * KILO
    host.check()


def test_a_file_that_is_fetched_needs_room(host: Host, tmp_path: Path) -> None:
    storage = host.storage
    assert storage.has_room(9 * KILO, coming=KILO)  # nothing is spilled below 80 % of the limit
    assert not storage.has_room(2 * KILO, coming=9 * KILO)
    for number in range(4):
        host.write(number)
    assert storage.has_room(9 * KILO, coming=0)
    host.write(4, KILO)
    assert storage.has_room(KILO, coming=0) and not storage.has_room(KILO + 1, coming=0)
    assert HostStorage(str(tmp_path / "other")).has_room(1 << 40, coming=0)  # no limits


@pytest.mark.parametrize("size", [2 * KILO, 20 * KILO])
def test_a_killed_writer_leaves_nothing(host: Host, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = os.fork()
    if not pid:
        host_storage.write_frames = host_storage.write_frames_to_memory = lambda *_: os.kill(
            os.getpid(), signal.SIGKILL
        )
        host.write(1, size)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    assert host.usage.memory_bytes + host.usage.disk_bytes == size
    assert any(each.name.endswith(unfinished_suffix(pid)) for each in host.memory.iterdir())
    for each in host.storage.process_ended(pid):
        os.unlink(each)
    assert host.usage.memory_bytes == host.usage.disk_bytes == 0
    host.check()


def test_a_child_that_is_forked_meanwhile_does_not_keep_the_lock(host: Host) -> None:
    """As a task does that uses multiprocessing, while another thread of its worker stores a result."""
    reading, writing = os.pipe()
    with host.storage._locked():
        child = os.fork()
        if child == 0:
            os.close(writing)
            os.read(reading, 1)  # until the parent lets it go
            host.write(1)
            os._exit(0)
    os.close(reading)
    other = os.fork()
    if other == 0:
        host.write(2)
        os._exit(0)
    try:
        wait_until(lambda: os.waitpid(other, os.WNOHANG)[0], what="another process to write")
        host.write(3)
        os.write(writing, b"x")
        wait_until(lambda: os.waitpid(child, os.WNOHANG)[0], what="the child to write")
        child = 0
    finally:
        os.close(writing)
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    assert [len(host.read(number)) for number in (1, 2, 3)] == [2 * KILO - HEAD] * 3
    host.check()


def test_both_directories_can_be_removed(host: Host) -> None:
    host.write(1)
    host.write(2, 20 * KILO)
    remove_all(str(host.disk))
    assert not host.disk.exists()
    with pytest.raises(ObjectLostError, match="is gone"):
        host.read(2)
    remove_all(str(host.memory))
    assert not host.memory.exists()


# ------------------------------------------------------------------------------------------------------------ spilling


def test_the_least_recently_read_values_are_spilled(host: Host) -> None:
    for number in range(5):
        host.write(number)
        host.set_read_at(number, 1000 + number)
    host.read(0).release()
    assert Spiller(host.storage).spill()
    assert [host.is_spilled(number) for number in range(5)] == [False, True, True, False, False]
    assert all(len(host.read(number)) == 2 * KILO - HEAD for number in range(5))
    host.check()


def test_below_the_limit_nothing_is_spilled(host: Host) -> None:
    for number in range(4):
        host.write(number)
    assert Spiller(host.storage).spill() and host.usage.disk_bytes == 0


def test_mapped_values_stay_in_memory(host: Host) -> None:
    for number in range(5):
        host.write(number)
        host.set_read_at(number, 1000 + number)
    view = host.read(0)
    host.set_read_at(0, 1000)
    Spiller(host.storage).spill()
    assert [host.is_spilled(number) for number in range(5)] == [False, True, True, False, False]
    del view
    assert host.storage.spill((CLIENT, 0)) == 2 * KILO
    host.check()


def test_readers_may_open_a_value_while_it_is_spilled(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.write(1)
    lease = host_storage.fcntl.fcntl
    readers = []

    def read_meanwhile(descriptor: int, command: int, argument: Any) -> Any:
        result = lease(descriptor, command, argument)
        if argument == host_storage.fcntl.F_WRLCK:
            readers.append(threading.Thread(target=lambda: host.read(1)))
            readers[0].start()
            path = path_of(str(host.memory), (CLIENT, 1))
            with pytest.raises(BlockingIOError):  # as the reader's open: it makes the kernel send the signal
                os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        return result

    monkeypatch.setattr(host_storage.fcntl, "fcntl", read_meanwhile)
    assert host.storage.spill((CLIENT, 1)) == 2 * KILO
    readers[0].join()
    host.check()


def test_a_value_that_is_removed_or_replaced_while_it_is_spilled(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = host_storage._copy
    for change in (lambda: host.storage.remove([(CLIENT, 1)]), lambda: host.write(1, 3 * KILO)):
        host.write(1)

        def copy_and_change(*arguments: Any, change: Callable[[], Any] = change) -> None:
            copy(*arguments)
            change()

        monkeypatch.setattr(host_storage, "_copy", copy_and_change)
        assert host.storage.spill((CLIENT, 1)) == 0
        assert not host.is_spilled(1)
        host.check()
    assert len(host.read(1)) == 3 * KILO - HEAD


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_failed_spill_leaves_the_value_in_memory(
    host: Host, number: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 1000.0
    spiller = Spiller(host.storage, lambda: now)
    for each in range(5):
        host.write(each)
    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
        patch.setattr(os, "sendfile", failing(number))
        assert not spiller.spill() and not spiller.spill()
    assert len(caplog.records) == 1 and os.strerror(number) in caplog.text  # one line a minute
    assert host.usage.disk_bytes == 0 and host.usage.memory_bytes == 10 * KILO
    host.check()
    assert not spiller.spill()  # the values are left alone for a while
    now += SKIP_SECONDS
    assert spiller.spill()
    host.check()


def test_the_limit_on_disk_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    host = Host(tmp_path, disk=3 * KILO)
    for number in range(5):
        host.write(number)
    with caplog.at_level(logging.INFO):
        assert not Spiller(host.storage).spill()
    assert host.usage.disk_bytes == 2 * KILO and "--spill-limit is reached" in caplog.text
    assert [record.levelno for record in caplog.records] == [logging.INFO]
    with pytest.raises(LimitReachedError):
        host.storage.spill((CLIENT, 4))
    host.check()


def test_writers_wake_the_spiller(host: Host) -> None:
    thread = SpillerThread(host.storage)
    try:
        for number in range(40):
            host.write(number)
        while host.usage.memory_bytes > 8 * KILO:
            os.sched_yield()
    finally:
        thread.close()
    assert all(len(host.read(number)) == 2 * KILO - HEAD for number in range(40))
    host.check()


def test_a_disk_that_fails_while_a_value_is_read_is_an_error_of_this_value(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.write(1, 20 * KILO)
    status = os.stat_result((0o100600, 0, 0, 1, 0, 0, 1 << 20, 0, 0, 0))
    monkeypatch.setattr(os, "fstat", lambda _: status)  # reading beyond the file's end fails like a failing disk
    with pytest.raises(ObjectLostError, match=os.strerror(errno.EIO)):
        host.read(1)


@pytest.fixture
def tiny_disk(host: Host) -> Iterator[Path]:
    """The host's disk is a file system of 64 KiB."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(host.disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount")
    yield host.disk
    subprocess.run(["umount", "-l", str(host.disk)], check=True)


def test_a_full_and_a_read_only_disk(host: Host, tiny_disk: Path) -> None:
    with pytest.raises(NoRoomError, match=f"{tiny_disk}: No space left on device"):
        host.write(1, 90 * KILO)
    assert os.listdir(tiny_disk) == []
    host.write(1, 20 * KILO)
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    with pytest.raises(NoRoomError, match="Read-only file system"):
        host.write(2, 20 * KILO)
    assert len(host.read(1)) == 20 * KILO - HEAD
    for number in range(3, 8):
        host.write(number)
    assert not Spiller(host.storage).spill()
    assert not any(host.is_spilled(number) for number in range(3, 8))
    host.check()
