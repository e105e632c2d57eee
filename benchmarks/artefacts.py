"""The packages of the scheduler and of scaler_top that `make package` builds, and how each is started."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .processes import PATIENCE_SECONDS, ROOT, free_address, running

DIST = ROOT / "packaging" / "dist"
CPYTHON = ROOT / ".venv" / "bin"
PYPY = ROOT / ".venv-pypy" / "bin"


@dataclass(frozen=True)
class Artefact:
    name: str
    """The name in the JSON."""
    title: str
    implementation: str
    """CPython or PyPy."""
    command: tuple[str, ...]
    file: Path | None = None
    """The file that is copied to a host; None for an environment."""


def artefacts() -> list[Artefact]:
    """Return the plain commands, and the packed ones that have been built."""
    every = [
        Artefact("cpython", "plain CPython", "CPython", (str(CPYTHON / "scaler_scheduler"),)),
        Artefact("pypy", "plain PyPy", "PyPy", (str(PYPY / "scaler_scheduler"),)),
        _of_file("one_file", "`scaler_scheduler`, one file", "PyPy", "scaler_scheduler"),
        _of_file("pex_pypy", "`scaler_scheduler.pex` on PyPy", "PyPy", "scaler_scheduler.pex", PYPY / "python"),
        _of_file(
            "pex_cpython", "`scaler_scheduler.pex` on CPython", "CPython", "scaler_scheduler.pex", CPYTHON / "python"
        ),
        _of_file("nuitka", "`scaler_scheduler.bin`, nuitka", "CPython", "scaler_scheduler.bin"),
    ]
    return [artefact for artefact in every if artefact.file is None or artefact.file.exists()]


def watchers() -> list[Artefact]:
    """Return the packages of scaler_top that have been built."""
    every = [
        _of_file("top_pex_pypy", "`scaler_top.pex` on PyPy", "PyPy", "scaler_top.pex", PYPY / "python"),
        _of_file("top_pex_cpython", "`scaler_top.pex` on CPython", "CPython", "scaler_top.pex", CPYTHON / "python"),
        _of_file("top_nuitka", "`scaler_top.bin`, nuitka", "CPython", "scaler_top.bin"),
    ]
    return [artefact for artefact in every if artefact.file is not None and artefact.file.exists()]


def _of_file(name: str, title: str, implementation: str, file: str, interpreter: Path | None = None) -> Artefact:
    path = DIST / file
    command = (str(path),) if interpreter is None else (str(interpreter), str(path))
    return Artefact(name, title, implementation, command, path)


@contextmanager
def empty_caches() -> Iterator[None]:
    """Within the block, packages that unpack themselves use a new, empty folder."""
    names = ("CACHE_DIRECTORY", "XDG_CACHE_HOME", "PEX_ROOT")
    before = {name: os.environ.get(name) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update({name: os.path.join(folder, name.lower()) for name in names})
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


@contextmanager
def started(artefact: Artefact, options: Sequence[str] = ()) -> Iterator[tuple[str, float]]:
    """Run a scheduler; yield its address, and the seconds until its socket was bound."""
    address = free_address()
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        path = os.path.join(folder, "notices")
        notices.bind(path)
        notices.settimeout(PATIENCE_SECONDS)
        begin = time.perf_counter()
        with running(["env", f"NOTIFY_SOCKET={path}", *artefact.command, address, *options]):
            notice = notices.recv(100)
            if notice != b"READY=1":
                raise RuntimeError(f"{artefact.title} sent {notice!r} instead of READY=1")
            yield address, time.perf_counter() - begin


def version_of(artefact: Artefact) -> str:
    """Return what `--version` prints.

    Raises:
        CalledProcessError: the command failed.
    """
    command = [*artefact.command, "--version"]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_SECONDS).stdout.strip()
