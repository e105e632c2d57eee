"""The command `scaler_top`: parses the arguments, then shows or prints the screen."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence

from .. import __version__
from ..commands.command_line import begin_command, parse_arguments, run_common_option
from ..commands.install_hints import install_hint
from ..commands.options import OptionError, fail
from ..monitor.reader import Presence
from ..monitor.socket import MonitorAccessError, MonitorSocket
from ..net.host_lookup import host_problem
from .config import COMMAND, PROGRAM, Config, load

NO_ANSWER = 1
"""The exit status if no scheduler was heard."""
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command to its end.

    Args:
        argv: the arguments without the program's name; None takes those of the process.

    Returns:
        The exit status.
    """
    begin_command()
    try:
        arguments = parse_arguments(COMMAND, sys.argv[1:] if argv is None else argv)
        status = run_common_option(COMMAND, PROGRAM, _versions, arguments)
        if status is not None:
            return status
        config = load(arguments, os.environ)
        with MonitorSocket(config.monitor_address, keys=config.keys) as socket:
            return _run(config, socket)
    except (OptionError, MonitorAccessError) as error:
        return fail(PROGRAM, str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of the pipe has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(config: Config, socket: MonitorSocket) -> int:
    if config.once or config.json:
        return _print(config, socket)
    problem = _urwid_problem()
    if problem:
        return fail(PROGRAM, problem)
    from .terminal import is_terminal, show

    if not is_terminal():
        return fail(PROGRAM, "standard input and output are not a terminal: use --once or --json to print the state")
    return show(socket, config.sort)


def _urwid_problem() -> str:
    """Why the screen cannot be drawn. Empty: it can. --json does not need the screen."""
    try:
        import urwid  # noqa: F401
    except ModuleNotFoundError:
        return f"it needs urwid, which is not installed: {install_hint('top')}"
    return ""


def _print(config: Config, socket: MonitorSocket) -> int:
    """Print the screen or the JSON object for the first snapshot that has rates, which comes after a second."""
    complaint = host_problem(config.monitor_address)
    if complaint:
        fail(PROGRAM, f"{config.monitor_address}: {complaint}")
        return NO_ANSWER
    reader = socket.reader
    deadline = time.monotonic() + config.timeout_seconds
    while reader.view is None or not reader.view.seconds:
        left = deadline - time.monotonic()
        if left <= 0 or reader.presence is Presence.INCOMPATIBLE:
            break
        socket.wait(left)
    view = reader.view
    if view is None:
        problem = socket.connection_problem()
        nothing = f"nothing was heard at {config.monitor_address} for {config.timeout_seconds:g} s"
        fail(PROGRAM, reader.problem or (f"{nothing}: {problem}" if problem else nothing))
        return NO_ANSWER
    if config.json:
        from .as_json import as_json

        print(json.dumps(as_json(view), indent=2), flush=True)
        return 0
    problem = _urwid_problem()
    if problem:
        return fail(PROGRAM, problem)
    from .screen import render_plain
    from .screen_state import ScreenState
    from .text_width import plain

    state = ScreenState()
    state.sorted_by = config.sort
    for line in render_plain(state, view, str(config.monitor_address), config.columns):
        text = plain(line).rstrip()
        encoding = sys.stdout.encoding or "utf-8"
        print(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()
    return 0


def _versions() -> str:
    from ..net.versions import versions_text

    return versions_text(__version__)
