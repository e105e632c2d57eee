"""`python -m benchmarks.package_check`: each packed scheduler has a task run, each packed scaler_top shows a scheduler.

`make package` calls it.
"""

from __future__ import annotations

import os
import subprocess
import sys

from scaler_client import Client
from scaler_scheduler import __version__

from .artefacts import Artefact, artefacts, empty_caches, started, version_of, watchers
from .processes import PATIENCE_SECONDS, running


def main() -> int:
    os.environ.setdefault("SCALER_SCHEDULER_LOGGING_LEVEL", "WARNING")
    for artefact in artefacts():
        if artefact.file is not None:
            with empty_caches():
                print(f"[package] {artefact.file.name}: {_check(artefact)}", flush=True)
    for artefact in watchers():
        with empty_caches():
            print(f"[package] {artefact.title}: {_check_watcher(artefact)}", flush=True)
    return 0


def _checked_version(artefact: Artefact) -> str:
    version = version_of(artefact)
    if f" {__version__}, {artefact.implementation}" not in version:
        raise RuntimeError(f"{artefact.title} says that it is {version!r}")
    return version


def _check_watcher(artefact: Artefact) -> str:
    """Raises where something is wrong; returns what it says of itself."""
    version = _checked_version(artefact)
    with started(artefacts()[0]) as (address, _):
        command = [*artefact.command, "--scheduler-address", address, "--once"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        if done.returncode or address not in done.stdout:
            raise RuntimeError(f"{artefact.title} shows {done.stdout!r} {done.stderr!r}")
    return version


def _check(artefact: Artefact) -> str:
    """Raises where something is wrong; returns what it says of itself."""
    version = _checked_version(artefact)
    with started(artefact) as (address, _):
        cluster = [sys.executable, "-m", "scaler_worker", "-n", "1", "--logging-level", "WARNING", address]
        with running(cluster), Client(address, timeout_seconds=PATIENCE_SECONDS) as client:
            if client.submit(pow, 2, 10).result(PATIENCE_SECONDS) != 1024:
                raise RuntimeError(f"{artefact.title}: a wrong result")
    return version


if __name__ == "__main__":
    sys.exit(main())
