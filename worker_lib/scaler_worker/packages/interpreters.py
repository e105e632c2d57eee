"""The CPythons of this host."""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

PROBE_SECONDS = 20.0
MINOR_VERSIONS = range(10, 20)  # of those in which our libraries work
_PROBE = (
    "import json,sys,importlib.util as u;"
    "print(json.dumps([sys.implementation.name,'%d.%d'%sys.version_info[:2],'%d.%d.%d'%sys.version_info[:3],"
    "u.find_spec('venv') is not None]))"
)


@dataclass(frozen=True)
class Interpreter:
    """A CPython of this host."""

    path: str
    minor: str
    """`3.11`"""
    version: str
    """`3.11.7`"""


def find_interpreter(minor: str, environ: Mapping[str, str], uv: str = "") -> Interpreter | None:
    """A CPython of a minor version: the one that runs this program, on PATH, of pyenv, or of uv. None: there is none.

    Args:
        minor: `3.11`.
        environ: PATH, HOME and PYENV_ROOT are read.
        uv: the program uv, which knows those that it has installed; empty: there is no uv.
    """
    if minor == f"{sys.version_info.major}.{sys.version_info.minor}" and sys.implementation.name == "cpython":
        return Interpreter(sys.executable, minor, ".".join(map(str, sys.version_info[:3])))
    for path in _candidates(minor, environ, uv):
        found = _probe(path, environ)
        if found is not None and found.minor == minor:
            return found
    return None


def minor_versions(environ: Mapping[str, str]) -> list[str]:
    """The minor versions of CPython of this host, for error texts."""
    found = []
    for number in MINOR_VERSIONS:
        if find_interpreter(f"3.{number}", environ) is not None:
            found.append(f"3.{number}")
    return found


def without_python_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Environment variables for another Python than this one."""
    left_out = ("VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
    return {
        name: value
        for name, value in environ.items()
        if name not in left_out and not (name.startswith("PYTHON") and name != "PYTHONUTF8")
    }


def _candidates(minor: str, environ: Mapping[str, str], uv: str) -> Iterator[str]:
    found = shutil.which(f"python{minor}", path=environ.get("PATH", os.defpath))
    if found is not None:
        yield found
    home = environ.get("HOME", "")
    pyenv = environ.get("PYENV_ROOT") or (os.path.join(home, ".pyenv") if home else "")
    if pyenv:
        pattern = os.path.join(glob.escape(pyenv), "versions", f"{minor}.*", "bin", f"python{minor}")
        yield from sorted(glob.glob(pattern), key=_numbers, reverse=True)
    if uv:
        command = [uv, "python", "find", "--no-project", "--no-python-downloads", "--system", f"cpython@{minor}"]
        try:
            done = subprocess.run(command, capture_output=True, env=dict(environ), timeout=PROBE_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            return
        path = done.stdout.decode(errors="replace").strip()
        if done.returncode == 0 and path:
            yield path


def _numbers(path: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path)]


def _probe(path: str, environ: Mapping[str, str]) -> Interpreter | None:
    """Run it: a pyenv shim may not work, and a system may lack the module venv."""
    try:
        environment = without_python_variables(environ)
        done = subprocess.run([path, "-c", _PROBE], capture_output=True, env=environment, timeout=PROBE_SECONDS)
        name, minor, version, has_venv = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return Interpreter(path, minor, version) if name == "cpython" and has_venv else None
