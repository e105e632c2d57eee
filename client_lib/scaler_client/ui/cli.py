"""The command `scaler_ui`: parses the arguments, then runs the server."""

from __future__ import annotations

from collections.abc import Sequence

from ..monitor.http_command import HttpCommand
from .config import COMMAND, PROGRAM, Config, load

_UI = HttpCommand(PROGRAM, COMMAND, "ui", ("aiohttp", "prometheus_client"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command to its end.

    Args:
        argv: the arguments without the program's name; None takes those of the process.

    Returns:
        The exit status.
    """
    return _UI.main(argv, load, _run)


def _run(config: Config) -> int:
    from .server import run

    return run(config)
