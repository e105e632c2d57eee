"""A description of the machine, the versions and the source, and how quiet the machine was."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import psutil

from .interpreters import Interpreter, describe, scheduler_python
from .processes import ROOT

_DISTRIBUTIONS = ("scaler-scheduler", "scaler-client", "scaler-worker", "pycapnp", "capnpy", "cloudpickle", "psutil")


def describe_machine() -> dict[str, Any]:
    return {
        "cpu": _cpu_model(),
        "cores": _usable_cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": f"{platform.system()} {platform.release()}",
    }


def describe_versions() -> dict[str, Any]:
    return {
        "client_and_workers": _interpreter(describe(sys.executable)),
        "scheduler": _interpreter(describe(scheduler_python())),
        "distributions": {name: found for name in _DISTRIBUTIONS if (found := _version(name))},
    }


def describe_source() -> dict[str, Any]:
    """The git revision; empty outside a checkout."""
    return {"revision": _git("rev-parse", "HEAD"), "has_changes": bool(_git("status", "--porcelain"))}


class Disturbance:
    """How busy the machine was just before a measure, and how much time its host took away during it."""

    def __init__(self, seconds: float) -> None:
        self.busy_before_percent: float = psutil.cpu_percent(seconds)
        self._total, self._steal = _processor_seconds()

    def as_json(self) -> dict[str, float]:
        total, steal = _processor_seconds()
        share = 100 * (steal - self._steal) / max(total - self._total, 0.01)
        return {"busy_before_percent": self.busy_before_percent, "steal_percent": round(share, 2)}


def _processor_seconds() -> tuple[float, float]:
    """The time of all processors, and the part that the host gave to others (0 if the system does not tell)."""
    times = psutil.cpu_times()
    return sum(times), getattr(times, "steal", 0.0)


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _usable_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _interpreter(found: Interpreter) -> dict[str, str]:
    return {
        "implementation": found.implementation,
        "version": found.version,
        "python": found.python,
        "pyzmq": found.pyzmq,
        "zeromq": found.zeromq,
    }


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:  # used from a path
        return ""


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
