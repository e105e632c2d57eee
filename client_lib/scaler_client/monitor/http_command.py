"""The common part of scaler_ui and scaler_exporter: the options of an HTTP server, and the start of the command."""

from __future__ import annotations

import importlib.util
import ipaddress
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .. import __version__
from ..commands import logs, options
from ..commands.addresses import MAX_PORT
from ..commands.command_line import (
    Arguments,
    begin_command,
    ignored_variables,
    parse_arguments,
    run_common_option,
)
from ..commands.install_hints import install_hint
from ..commands.options import Command, Kind, Option, OptionError, fail, interpreter

_HOST_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")


def listen_options(default_port: int, others: str) -> tuple[Option, Option]:
    """The options `--host` and `--port`. `others` is the part of the help that says who else may connect."""
    return (
        Option(
            "host",
            Kind("HOST", _parse_host, (str,)),
            "127.0.0.1",
            f"the interface to listen on, by address or name; {others}",
        ),
        Option("port", options.integer(0, MAX_PORT), default_port, "the port to listen on; 0 is any free one"),
    )


def _parse_host(given: str) -> str:
    bare = given[1:-1] if given.startswith("[") and given.endswith("]") else given
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        if _HOST_NAME.fullmatch(given) and not re.fullmatch("[0-9.]+", given):
            return given
    raise ValueError(f"{options.quoted(given)} is not an address or name of an interface")


class LoggingConfig(Protocol):
    """The part of a command's configuration that `HttpCommand.main` reads."""

    @property
    def logging_level(self) -> str: ...
    @property
    def logging_paths(self) -> tuple[str, ...]: ...
    @property
    def logging_config_file(self) -> str: ...


@dataclass(frozen=True)
class HttpCommand:
    """A command with an HTTP server, and the libraries it needs from one of scaler-client's extras."""

    program: str
    command: Command
    extra: str
    libraries: tuple[str, ...]

    def main(
        self,
        argv: Sequence[str] | None,
        load: Callable[[Arguments, Mapping[str, str]], Any],
        run: Callable[[Any], int],
    ) -> int:
        """Run the command to its end.

        Args:
            argv: the arguments without the program's name; None takes those of the process.
            load: makes the configuration from arguments and environment variables.
            run: runs the command with the configuration and returns the exit status. It may import the libraries of the
                extra. It is called last, so that -h and a wrong option need no libraries.

        Returns:
            The exit status.
        """
        begin_command()
        try:
            arguments = parse_arguments(self.command, sys.argv[1:] if argv is None else argv)
            status = run_common_option(self.command, self.program, self._versions, arguments)
            if status is not None:
                return status
            config: LoggingConfig = load(arguments, os.environ)
            logs.set_up(config.logging_level, config.logging_paths, config.logging_config_file)
        except OptionError as error:
            return fail(self.program, str(error))
        for name in self.libraries:
            if importlib.util.find_spec(name) is None:
                return fail(self.program, f"it needs {name}, which is not installed: {install_hint(self.extra)}")
        for warning in ignored_variables(self.command, os.environ):
            logging.getLogger(__name__).warning(warning)
        return run(config)

    def _versions(self) -> str:
        from importlib.metadata import PackageNotFoundError, version

        import zmq

        from ..protocol.messages import PROTOCOL_VERSION

        parts = []
        for name in self.libraries:
            try:
                parts.append(f"{name} {version(name)}")
            except PackageNotFoundError:
                parts.append(f"{name} not installed")
        parts += [f"ZeroMQ {zmq.zmq_version()}", f"protocol version {PROTOCOL_VERSION}"]
        return ", ".join((__version__, interpreter(), *parts))
