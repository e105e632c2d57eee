"""Maps files, and writes large files in shared memory with huge pages (decision 76).

A file in /dev/shm has pages of 4 KiB. Most of the time for a large array's file goes into getting, mapping and freeing
these pages. `MADV_COLLAPSE` makes huge pages of them, whatever the system's settings are.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import sys
import weakref
from collections.abc import Sequence
from typing import Any

from .object_files import file_bytes, file_parts, write_frames

LEAST_HUGE_PAGES = 2
"""The smallest file that gets huge pages, in huge pages. A smaller file gains less than they cost."""

PIECE_PAGES = 2
"""The number of huge pages that are made, and then written while they are still in the processor's cache."""

_SHARED = 1  # MAP_SHARED, which Windows does not have


def map_file(descriptor: int, size: int, is_on_disk: bool = False) -> memoryview:
    """Map the first `size` bytes of an open file read-only, at least one byte.

    They stay mapped while the view or a slice of it lives. The descriptor may be closed at once.

    Args:
        is_on_disk: whether the file is on a disk. It is then read now: a disk that fails later would end the process.

    Raises:
        OSError: the file can't be mapped, or its disk has failed.
    """
    if sys.platform == "win32":
        return memoryview(mmap.mmap(descriptor, size, access=mmap.ACCESS_READ))
    address = _map(descriptor, size, mmap.PROT_READ)
    view = _view(address, size)
    if is_on_disk and (failure := _advise(address, size, _POPULATE_READ)) not in (0, errno.EINVAL):
        failure = errno.EIO if failure == errno.EFAULT else failure
        raise OSError(failure, os.strerror(failure))
    return view.toreadonly()


def map_copy(descriptor: int, size: int) -> memoryview:
    """Map the first `size` bytes of an open file, at least one byte, as a copy on write: a page is copied when it is
    written to, and the file does not change.

    Raises:
        OSError: the file can't be mapped.
    """
    if sys.platform == "win32":
        return memoryview(mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY))
    return _view(_map(descriptor, size, mmap.PROT_READ | mmap.PROT_WRITE, kind=mmap.MAP_PRIVATE), size)


def write_frames_to_memory(descriptor: int, frames: Sequence[Any]) -> None:
    """Write an object into an empty file in shared memory, as `write_frames` does.

    Args:
        descriptor: allows to read and write.

    Raises:
        OSError: the frames can't be written.
    """
    size = file_bytes(frames)
    is_large = 0 < LEAST_HUGE_PAGES * HUGE_PAGE_BYTES <= size
    if not is_large or not _write_in_huge_pages(descriptor, size, file_parts(frames)):
        write_frames(descriptor, frames)


def _write_in_huge_pages(descriptor: int, size: int, parts: Sequence[tuple[int, memoryview]]) -> bool:
    """Write a file in huge pages where the system has them. Returns False if the file can't have huge pages.

    Raises:
        OSError: there is no room.
    """
    os.ftruncate(descriptor, size)
    piece: memoryview | None = None
    piece_begin = piece_end = 0
    for begin, data in parts:
        while data:
            if begin >= piece_end:
                piece_begin, piece_end = piece_end, min(size, piece_end + PIECE_PAGES * HUGE_PAGE_BYTES)
                piece = _new_pages(descriptor, piece_begin, piece_end)
            if piece is None:
                return False
            end = min(begin + len(data), piece_end)
            piece[begin - piece_begin : end - piece_begin] = data[: end - begin]
            data = data[end - begin :]
            begin = end
    return True


def _new_pages(descriptor: int, begin: int, end: int) -> memoryview | None:
    """Map a part of a new file, with pages of zeros: huge ones if there are any. Returns None if the file can't have
    huge pages.

    Raises:
        OSError: there is no room.
    """
    size = end - begin
    for offset in range(begin, end, HUGE_PAGE_BYTES):
        os.pwrite(descriptor, b"\0", offset)  # a huge page is made only where there is a page already
    address = _map(descriptor, size, mmap.PROT_READ | mmap.PROT_WRITE, begin)
    view = _view(address, size)
    if _advise(address, size, _COLLAPSE) == errno.EINVAL and not begin:  # the last part may be too small
        return None
    # Get all pages now: a write to a page for which there is no room would end the process.
    if failure := _advise(address, size, _POPULATE_WRITE):
        failure = errno.ENOSPC if failure == errno.EFAULT else failure
        raise OSError(failure, os.strerror(failure))
    return view


def _map(descriptor: int, size: int, protection: int, begin: int = 0, kind: int = _SHARED) -> int:
    """Map a part of a file. Returns the address, which is aligned to huge pages if the part has room for one.

    Raises:
        OSError: it can't be mapped.
    """
    # Not mmap.mmap: it keeps a descriptor open for each mapping, and a process may open only about 1,000 files.
    if not 0 < HUGE_PAGE_BYTES <= size:
        return _checked(_libc.mmap(None, size, protection, kind, descriptor, begin))
    size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    reserved_bytes = size + HUGE_PAGE_BYTES
    reserved = _checked(_libc.mmap(None, reserved_bytes, _PROT_NONE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0))
    address = -(-reserved // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES
    try:
        _checked(_libc.mmap(address, size, protection, kind | _MAP_FIXED, descriptor, begin))
    except OSError:
        _libc.munmap(reserved, reserved_bytes)
        raise
    if address > reserved:
        _libc.munmap(reserved, address - reserved)
    _libc.munmap(address + size, reserved + reserved_bytes - address - size)
    return address


def _checked(address: int) -> int:
    if address == _FAILED:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return address


def _view(address: int, size: int) -> memoryview:
    """Return the mapped bytes. They are unmapped when their last view is gone."""
    bytes_there = (ctypes.c_char * size).from_address(address)
    unmap = weakref.finalize(bytes_there, _libc.munmap, address, size)
    unmap.atexit = False  # threads may still read while the process ends
    return memoryview(bytes_there).cast("B")


def _advise(address: int, size: int, advice: int) -> int:
    """Advise the kernel about mapped pages. Returns 0 or an error number; EINVAL: this system has no such advice."""
    return ctypes.get_errno() if _libc.madvise(address, size, advice) else 0


def _huge_page_bytes() -> int:
    """The size of a huge page; 0: there are none."""
    try:
        with open("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


HUGE_PAGE_BYTES = _huge_page_bytes()

if sys.platform != "win32":
    _FAILED = ctypes.c_void_p(-1).value
    _PROT_NONE = 0
    _MAP_FIXED = 0x10
    _POPULATE_READ = 22  # MADV_POPULATE_READ of Linux 5.14. An older kernel, or another system, answers EINVAL.
    _POPULATE_WRITE = 23
    _COLLAPSE = 25  # MADV_COLLAPSE of Linux 6.1
    _libc = ctypes.CDLL(None, use_errno=True)
    _libc.mmap.restype = ctypes.c_void_p
    _libc.mmap.argtypes = (
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_ssize_t,
    )
    _libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    _libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
