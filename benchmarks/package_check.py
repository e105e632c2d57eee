"""`python -m benchmarks.package_check`: each packed scheduler answers --version, and has a task run.

`make package` calls it.
"""

from __future__ import annotations

import os
import sys

from scaler_client import Client
from scaler_scheduler import __version__

from .artefacts import Artefact, artefacts, empty_caches, started, version_of
from .processes import PATIENCE_SECONDS, running


def main() -> int:
    os.environ.setdefault("SCALER_SCHEDULER_LOGGING_LEVEL", "WARNING")
    for artefact in artefacts():
        if artefact.file is not None:
            with empty_caches():
                print(f"[package] {artefact.file.name}: {_check(artefact)}", flush=True)
    return 0


def _check(artefact: Artefact) -> str:
    """Raises where something is wrong; returns what it says of itself."""
    version = version_of(artefact)
    if f" {__version__}, {artefact.implementation}" not in version:
        raise RuntimeError(f"{artefact.title} says that it is {version!r}")
    with started(artefact) as (address, _):
        cluster = [sys.executable, "-m", "scaler_worker", "-n", "1", "--logging-level", "WARNING", address]
        with running(cluster), Client(address, timeout_seconds=PATIENCE_SECONDS) as client:
            if client.submit(pow, 2, 10).result(PATIENCE_SECONDS) != 1024:
                raise RuntimeError(f"{artefact.title}: a wrong result")
    return version


if __name__ == "__main__":
    sys.exit(main())
