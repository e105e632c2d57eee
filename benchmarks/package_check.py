"""`python -m benchmarks.package_check`: check each package. `make package` calls it.

Each packed scheduler runs tasks without keys and with keys. Each packed scaler_top shows a scheduler.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from scaler_client import Client, UnauthorizedError
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
        raise RuntimeError(f"{artefact.title} reports the version {version!r}")
    return version


def _check_watcher(artefact: Artefact) -> str:
    """Check a package and return a line about it.

    Raises:
        RuntimeError: the package does not work.
    """
    version = _checked_version(artefact)
    with started(artefacts()[0]) as (address, _):
        command = [*artefact.command, "--scheduler-address", address, "--once"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        if done.returncode or address not in done.stdout:
            raise RuntimeError(f"{artefact.title} shows {done.stdout!r} {done.stderr!r}")
    return version


def _check(artefact: Artefact) -> str:
    """Check a package and return a line about it.

    Raises:
        RuntimeError: the package does not work.
    """
    version = _checked_version(artefact)
    _run_task(artefact, "")
    with tempfile.TemporaryDirectory() as folder:
        keys = os.path.join(folder, "keys")
        subprocess.run([*artefact.command, "keygen", keys], check=True, capture_output=True, timeout=PATIENCE_SECONDS)
        _run_task(artefact, keys)
    return f"{version}; tasks without keys and with"


def _run_task(artefact: Artefact, keys: str) -> None:
    """Run tasks with the keys of this folder; empty means none. With keys, a peer without keys must be rejected."""
    options = ["--keys", keys] if keys else []
    with started(artefact, options) as (address, _):
        cluster = [sys.executable, "-m", "scaler_worker", "-n", "1", "--logging-level", "WARNING", *options, address]
        with running(cluster), Client(address, timeout_seconds=PATIENCE_SECONDS, keys=keys) as client:
            if client.submit(pow, 2, 10).result(PATIENCE_SECONDS) != 1024:
                raise RuntimeError(f"{artefact.title}: a wrong result")
        if keys:
            _check_denied(artefact, address)


def _check_denied(artefact: Artefact, address: str) -> None:
    try:
        with Client(address, timeout_seconds=PATIENCE_SECONDS, keys=""):
            raise RuntimeError(f"{artefact.title} has keys, but accepts a peer without one")
    except UnauthorizedError:
        pass


if __name__ == "__main__":
    sys.exit(main())
