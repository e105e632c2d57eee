"""The memory and cores of this machine, and the limits that cgroups set to this process.

scaler_client has a link to this file.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress

_V1_MOUNTS = {"memory": ("memory",), "cpu": ("cpu", "cpu,cpuacct", "cpuacct,cpu")}
_V2_MOUNTS = ("", "unified")


def open_standard_descriptors() -> None:
    """Open the null device in place of standard streams that the parent has closed.

    Else the next files and sockets get the numbers 0 to 2, and output goes there.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(
                os.open(os.devnull, os.O_RDWR), True
            )  # it gets the lowest free number, which is this one


def raise_file_limit() -> int:
    """Raise the process's limit of open files as far as the system allows. Each connection takes one.

    Many systems allow a thousand unless a process asks for more.

    Returns:
        The new limit.
    """
    import resource  # not on every system

    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (OSError, ValueError):
        return soft  # some systems report no limit but have one
    return most


def usable_memory(root: str = "/") -> int:
    """The usable memory in bytes.

    It is the machine's memory, or the limit of a cgroup if that is less; 0 if the system does not report it.

    Args:
        root: the folder with /proc and /sys.
    """
    limits = [_machine_memory()]
    for version, directory in cgroup_directories("memory", root):
        limit = read_kernel_file(directory, "memory.max" if version == 2 else "memory.limit_in_bytes")
        if limit.isdigit():  # else it is "max", or there is no such file
            limits.append(int(limit))
    return min(limits)


def usable_shared_memory(directory: str = "/dev/shm", root: str = "/") -> int:
    """The bytes that files in shared memory may use.

    It is the size of this file system, or half of the usable memory if that is less; 0 if the system reports neither.

    Args:
        directory: where shared memory is mounted.
        root: the folder with /proc and /sys.
    """
    sizes = [usable_memory(root) // 2]
    with suppress(OSError, AttributeError):  # Windows has no statvfs
        status = os.statvfs(directory)
        sizes.append(status.f_blocks * status.f_frsize)
    return min(filter(None, sizes), default=0)


def usable_cores(root: str = "/") -> int:
    """The number of processes that can run at once, at least 1.

    It is the number of cores that this process may use, or the quota of a cgroup (rounded up) if that is less.

    Args:
        root: the folder with /proc and /sys.
    """
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quotas = [math.ceil(quota) for quota in _cgroup_quotas(root)]
    return max(1, min([cores, *quotas]))


def _cgroup_quotas(root: str) -> Iterator[float]:
    """The quotas, in cores, of this process's cgroup and of the cgroups around it. The smallest applies."""
    for version, directory in cgroup_directories("cpu", root):
        if version == 2:
            words = read_kernel_file(directory, "cpu.max").split()
        else:
            words = [read_kernel_file(directory, f"cpu.cfs_{name}_us") for name in ("quota", "period")]
        # Quota and period are in microseconds. `max`, -1 and an unreadable file are no limit.
        if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]) > 0:
            yield int(words[0]) / int(words[1])


def _machine_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf, other systems may not know these names
        return 0


def cgroup_directories(controller: str, root: str = "/") -> Iterator[tuple[int, str]]:
    """The cgroup directories of this process for a controller, from the inside to the outside. The limits of all apply.

    Args:
        controller: "cpu" or "memory".
        root: the folder with /proc and /sys.

    Returns:
        For each the cgroup version, 1 or 2, and a directory, which may not exist.
    """
    for line in read_kernel_file(os.path.join(root, "proc/self"), "cgroup").splitlines():
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if hierarchy == "0":
            yield from _upwards(2, root, _V2_MOUNTS, path)
        elif controller in controllers.split(","):
            yield from _upwards(1, root, _V1_MOUNTS[controller], path)


def _upwards(version: int, root: str, mounts: tuple[str, ...], path: str) -> Iterator[tuple[int, str]]:
    # In a container the path is often that of the host and does not exist there. Then the top of the mount is left,
    # which is the container's own cgroup.
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for mount in mounts:
        for length in range(len(parts), -1, -1):
            yield version, os.path.join(root, "sys/fs/cgroup", mount, *parts[:length])


def read_kernel_file(directory: str, name: str) -> str:
    """The text in a file of the kernel, without white space around it; empty if it cannot be read."""
    try:
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""
