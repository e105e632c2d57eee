"""What this host lets a process use of its processors."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

from scaler_client.commands.machine import cgroup_directories, read_setting


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
            words = read_setting(directory, "cpu.max").split()
        else:
            words = [read_setting(directory, f"cpu.cfs_{name}_us") for name in ("quota", "period")]
        # Quota and period in microseconds; `max` or -1 is no limit, an unreadable file none either.
        if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]) > 0:
            yield int(words[0]) / int(words[1])
