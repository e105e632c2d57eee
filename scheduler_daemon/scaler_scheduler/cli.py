"""The command `scaler_scheduler`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from . import __version__
from .auth.key_commands import is_key_command, mistyped_command
from .auth.key_commands import run as run_key_command
from .commands import logs
from .commands.command_line import (
    begin_command,
    ignored_variables,
    parse_arguments,
    run_common_option,
)
from .commands.options import OptionError, interpreter
from .config.config import COMMAND, PROGRAM, fail, load
from .config.pending_config import PendingConfig
from .daemon.pypy import compile_early, restart_with_collector_parameters
from .daemon.startup import start_errors


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command to its end. Returns the exit status.

    Args:
        argv: the command line without the program's name; None: that of the process.
    """
    begin_command()
    given = sys.argv[1:] if argv is None else argv
    if is_key_command(given):
        return run_key_command(given)
    mistyped = mistyped_command(given)
    if mistyped:
        return fail(mistyped)
    try:
        arguments = parse_arguments(COMMAND, given)
        status = run_common_option(replace(COMMAND, check=start_errors), PROGRAM, _versions, arguments)
        if status is not None:
            return status
        config = load(arguments, os.environ)
        pending = PendingConfig(COMMAND, arguments, os.environ)
        logs.set_up(config.logging_level, config.logging_paths, config.logging_config_file)
    except OptionError as error:
        return fail(str(error))
    if argv is None:
        restart_with_collector_parameters(given)
    for warning in ignored_variables(COMMAND, os.environ):
        logging.getLogger(__name__).warning(warning)
    from .daemon.loop import run  # not at the top: -h and wrong options are answered without sockets

    if argv is None:
        compile_early()  # behind the imports: none of their loops is worth a compilation
    return run(config, pending)


def _versions() -> str:
    from .net.router import ZMQ_VERSION
    from .wire.encode import PROTOCOL_VERSION

    return f"{__version__}, {interpreter()}, ZeroMQ {ZMQ_VERSION}, protocol version {PROTOCOL_VERSION}"
