"""The interpreters of a measure: this one, and the one that runs the scheduler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass

from scaler_client.api.scheduler_commands import SCHEDULER_PYTHON_VARIABLE

_DESCRIBE = """
import json, platform, sys, zmq
print(json.dumps([
    platform.python_implementation(), ".".join(map(str, sys.implementation.version[:3])), platform.python_version(),
    zmq.__version__, zmq.zmq_version(),
]))
"""


@dataclass(frozen=True)
class Interpreter:
    path: str
    implementation: str
    """CPython or PyPy."""
    version: str
    """The version of the implementation."""
    python: str
    """The version of the language."""
    pyzmq: str
    zeromq: str

    def __str__(self) -> str:
        return f"{self.implementation} {self.version}"


def describe(path: str) -> Interpreter:
    """Return the implementation and versions of an interpreter.

    Raises:
        OSError: it cannot be run.
        CalledProcessError: it has no pyzmq.
    """
    answer = subprocess.run([path, "-c", _DESCRIBE], check=True, capture_output=True, text=True, timeout=60).stdout
    return Interpreter(path, *json.loads(answer))


def scheduler_python() -> str:
    """The interpreter that runs the scheduler, as for `SchedulerClusterCombo`."""
    return os.environ.get(SCHEDULER_PYTHON_VARIABLE) or sys.executable


def scheduler_pythons() -> list[Interpreter]:
    """Return the scheduler's interpreter, and this one if it is another implementation."""
    first = describe(scheduler_python())
    own = describe(sys.executable)
    return [first] if first.implementation == own.implementation else [first, own]
