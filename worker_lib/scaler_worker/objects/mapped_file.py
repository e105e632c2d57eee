"""Maps a file into memory, read-only and shared with the other processes that map it."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import sys
import weakref


def map_file(descriptor: int, size: int, is_on_disk: bool = False) -> memoryview:
    """Map the first `size` bytes of an open file, at least one byte.

    They stay mapped while the view or a slice of it lives. The descriptor may be closed at once.

    Args:
        is_on_disk: whether to read the file now: a disk that fails later would end the process.

    Raises:
        OSError: the file can't be mapped, or its disk has failed.
    """
    if sys.platform == "win32":
        return memoryview(mmap.mmap(descriptor, size, access=mmap.ACCESS_READ))
    # Not mmap.mmap: it keeps a descriptor open for each mapping, and a process may open only about 1,000 files.
    address = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if address == _FAILED:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    if is_on_disk and _libc.madvise(address, size, _POPULATE_READ) and ctypes.get_errno() != errno.EINVAL:
        number = errno.EIO if ctypes.get_errno() == errno.EFAULT else ctypes.get_errno()
        _libc.munmap(address, size)
        raise OSError(number, os.strerror(number))
    bytes_there = (ctypes.c_char * size).from_address(address)
    unmap = weakref.finalize(bytes_there, _libc.munmap, address, size)
    unmap.atexit = False  # threads may still read while the process ends
    return memoryview(bytes_there).cast("B").toreadonly()


if sys.platform != "win32":
    _FAILED = ctypes.c_void_p(-1).value
    _POPULATE_READ = 22  # MADV_POPULATE_READ of Linux 5.14. An older kernel, or another system, answers EINVAL.
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
