"""The command `scaler_cluster`, also `scaler_worker` by its older name."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

from scaler_client.commands import logs, module_folders
from scaler_client.commands.command_line import (
    begin_command,
    ignored_variables,
    parse_arguments,
    run_common_option,
)
from scaler_client.commands.options import OptionError

from . import __version__
from .config import COMMAND, fail, load, program_name
from .init_process import run_as_child_of_init


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command to its end; `argv` is without the program's name. Returns the exit status."""
    begin_command()
    run_as_child_of_init()
    module_folders.restore(os.environ)
    try:
        arguments = parse_arguments(COMMAND, sys.argv[1:] if argv is None else argv)
        status = run_common_option(COMMAND, program_name(), _versions, arguments)
        if status is not None:
            return status
        config = load(arguments, os.environ)
        logs.set_up(config.logging_level, config.logging_paths, config.logging_config_file)
    except OptionError as error:
        return fail(str(error))
    for warning in ignored_variables(COMMAND, os.environ):
        logging.getLogger(__name__).warning(warning)
    from .agent.process import run  # late: -h and a wrong option are answered without loading sockets

    return run(config)


def _versions() -> str:
    from scaler_client.net.versions import versions_text

    return versions_text(__version__)
