"""What this host lets a process use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

_V2_MOUNTS = ("sys/fs/cgroup", "sys/fs/cgroup/unified")
_V1_MOUNTS = ("sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/cpuacct,cpu")


def usable_cores(root: Path = Path("/")) -> int:
    """How many processes can run at once: the cores of this process' affinity, or fewer where a cgroup's quota (rounded
    up) says so; at least 1. `root` is where /proc and /sys are looked for."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quotas = [math.ceil(quota) for quota in _cgroup_quotas(root)]
    return max(1, min([cores, *quotas]))


def _cgroup_quotas(root: Path) -> Iterator[float]:
    """Every limit, in cores, of this process' cgroups and of those around them: the least of them holds."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if hierarchy == "0":
            for directory in _upwards(root, _V2_MOUNTS, path):
                yield from _quota(_read(directory / "cpu.max").split())
        elif "cpu" in controllers.split(","):
            for directory in _upwards(root, _V1_MOUNTS, path):
                yield from _quota([_read(directory / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")])


def _upwards(root: Path, mounts: tuple[str, ...], path: str) -> Iterator[Path]:
    # In a container the path is often the host's, and not there: what is left then is the mount's top, which is the
    # container's own cgroup.
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for mount in mounts:
        for length in range(len(parts), -1, -1):
            yield root.joinpath(mount, *parts[:length])


def _quota(words: list[str]) -> Iterator[float]:
    """Quota and period in microseconds; `max` or -1 is no limit, an unreadable file none either."""
    if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]) > 0:
        yield int(words[0]) / int(words[1])


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""
