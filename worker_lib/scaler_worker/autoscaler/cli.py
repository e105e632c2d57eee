"""The command `scaler_autoscaler`: parses the arguments, then runs the service."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

from scaler_client.commands import logs
from scaler_client.commands.command_line import (
    begin_command,
    ignored_variables,
    parse_arguments,
    run_common_option,
)
from scaler_client.commands.options import OptionError, fail

from .. import __version__
from .config import COMMAND, PROGRAM, load


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
        logs.set_up(config.logging_level, config.logging_paths, config.logging_config_file)
    except OptionError as error:
        return fail(PROGRAM, str(error))
    for warning in ignored_variables(COMMAND, os.environ):
        logging.getLogger(__name__).warning(warning)
    from .service import run  # late: -h and a wrong option are answered without loading sockets

    return run(config)


def _versions() -> str:
    from scaler_client.net.versions import versions_text

    return versions_text(__version__)
