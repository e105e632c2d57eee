"""The command `scaler_exporter`."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from collections.abc import Sequence

from .. import __version__, logs
from ..command_line import answer, ignored_variables, parse_arguments
from ..options import OptionError, fail, interpreter
from .config import COMMAND, PROGRAM, load


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command to its end; `argv` is without the program's name. Returns the exit status."""
    try:
        arguments = parse_arguments(COMMAND, sys.argv[1:] if argv is None else argv)
        status = answer(COMMAND, PROGRAM, _versions, arguments)
        if status is not None:
            return status
        config = load(arguments, os.environ)
        logs.set_up(config.logging_level, config.logging_paths, config.logging_config_file)
    except OptionError as error:
        return fail(PROGRAM, str(error))
    if importlib.util.find_spec("prometheus_client") is None:
        return fail(
            PROGRAM, "it needs prometheus_client, which is not installed: pip install 'scaler-client[exporter]'"
        )
    for warning in ignored_variables(COMMAND, os.environ):
        logging.getLogger(__name__).warning(warning)
    from .server import run  # after the above: -h and a wrong option get their answer without prometheus_client

    return run(config)


def _versions() -> str:
    from importlib.metadata import PackageNotFoundError, version

    import zmq

    from ..messages import PROTOCOL_VERSION

    try:
        library = version("prometheus_client")
    except PackageNotFoundError:
        library = "not installed"
    parts = (f"prometheus_client {library}", f"ZeroMQ {zmq.zmq_version()}", f"protocol version {PROTOCOL_VERSION}")
    return ", ".join((__version__, interpreter(), *parts))
