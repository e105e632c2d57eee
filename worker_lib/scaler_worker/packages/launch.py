"""How a process of an environment is started: the Python of the environment runs a module of scaler_worker."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .interpreters import without_python_variables
from .scaler_runtime import OWN, REQUIRED

BOOTSTRAP = (
    "import sys;"
    "sys.path[:]=[folder for folder in sys.path if folder];"  # not the folder in which the agent was started
    "runtime=sys.argv.pop(1);"
    f"sys.path.insert(0,runtime+'/{OWN}');"
    f"sys.path.append(runtime+'/{REQUIRED}');"  # last, so that the environment's own packages win
    "import runpy;runpy.run_module(sys.argv.pop(1),run_name='__main__',alter_sys=True)"
)
"""A .pth file in the environment would do the same for every Python that a task starts, which must not get ours."""


@dataclass(frozen=True)
class PreparedPackages:
    """An environment that is ready on this host."""

    command: tuple[str, ...]
    """Runs its Python: the interpreter, and for a PEX file that file."""
    variables: dict[str, str]
    """Environment variables that the command needs."""
    scripts: str
    """The folder of its commands, for PATH; empty: there is none."""
    runtime: str
    """The folder with scaler_worker and what it requires (scaler_runtime.py)."""
    locks: tuple[str, ...]
    """Lock files. They must be held, shared, as long as the environment is used."""
    python: str
    """`3.11.7`"""
    installer: str
    """What has made it: `uv`, `pip` or `pex`."""
    build_seconds: float
    """How long it took; 0: it was in the cache."""

    def arguments(self, module: str, arguments: Sequence[str]) -> list[str]:
        """The command line that runs a module of scaler_worker in the environment."""
        return [*self.command, "-c", BOOTSTRAP, self.runtime, module, *arguments]

    def process_variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The environment variables of this process, without those of another Python, and with those of this one."""
        variables = {**without_python_variables(environ), **self.variables}
        if self.scripts:
            variables["PATH"] = self.scripts + os.pathsep + variables.get("PATH", os.defpath)
        return variables

    def to_plain(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def prepared_packages_from(plain: Mapping[str, Any]) -> PreparedPackages:
    """Read what `PreparedPackages.to_plain` made."""
    values = dict(plain)
    values["command"], values["locks"] = tuple(values["command"]), tuple(values["locks"])
    return PreparedPackages(**values)
