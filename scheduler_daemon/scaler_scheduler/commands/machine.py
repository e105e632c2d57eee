"""What this machine, and the cgroups that this process is in, let it use.

scaler_client has a link to this file.
"""

from __future__ import annotations

import math
import os
from typing import Iterator, Tuple

_V1_MOUNTS = {"memory": ("memory",), "cpu": ("cpu", "cpu,cpuacct", "cpuacct,cpu")}
_V2_MOUNTS = ("", "unified")


def usable_memory(root: str = "/") -> int:
    """Bytes of memory: the machine's, or a cgroup's limit where that is less; 0 where the system does not tell.

    `root` is where /proc and /sys are looked for.
    """
    limits = [_machine_memory()]
    for version, directory in cgroup_directories("memory", root):
        limit = read_kernel_file(directory, "memory.max" if version == 2 else "memory.limit_in_bytes")
        if limit.isdigit():  # else it is "max", or not there
            limits.append(int(limit))
    return min(limits)


def usable_cores(root: str = "/") -> int:
    """How many processes can run at once: the cores of this process' affinity, or fewer where a cgroup's quota (rounded
    up) says so; at least 1. `root` is where /proc and /sys are looked for."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quotas = [math.ceil(quota) for quota in _cgroup_quotas(root)]
    return max(1, min([cores, *quotas]))


def _cgroup_quotas(root: str) -> Iterator[float]:
    """Every limit, in cores, of this process' cgroups and of those around them: the least of them holds."""
    for version, directory in cgroup_directories("cpu", root):
        if version == 2:
            words = read_kernel_file(directory, "cpu.max").split()
        else:
            words = [read_kernel_file(directory, f"cpu.cfs_{name}_us") for name in ("quota", "period")]
        # Quota and period in microseconds; `max` or -1 is no limit, an unreadable file none either.
        if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]) > 0:
            yield int(words[0]) / int(words[1])


def _machine_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # no sysconf on Windows, others need not know these names
        return 0


def cgroup_directories(controller: str, root: str = "/") -> Iterator[Tuple[int, str]]:
    """This process' cgroups for a controller ("cpu", "memory") and those around them, whose limits hold as well: the
    cgroup version, 1 or 2, and a directory, which need not exist."""
    for line in read_kernel_file(os.path.join(root, "proc/self"), "cgroup").splitlines():
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if hierarchy == "0":
            yield from _upwards(2, root, _V2_MOUNTS, path)
        elif controller in controllers.split(","):
            yield from _upwards(1, root, _V1_MOUNTS[controller], path)


def _upwards(version: int, root: str, mounts: Tuple[str, ...], path: str) -> Iterator[Tuple[int, str]]:
    # In a container the path is often the host's, and not there: what is left then is the mount's top, which is the
    # container's own cgroup.
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for mount in mounts:
        for length in range(len(parts), -1, -1):
            yield version, os.path.join(root, "sys/fs/cgroup", mount, *parts[:length])


def read_kernel_file(directory: str, name: str) -> str:
    """What one of the kernel's files says, without white space around it; nothing where it can't be read."""
    try:
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""
