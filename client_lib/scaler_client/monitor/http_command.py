"""What the commands share that watch a scheduler and answer by HTTP: where they listen, how they start."""

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
from ..commands.addresses import HIGHEST_PORT
from ..commands.command_line import Arguments, ignored_variables, parse_arguments, run_common_option
from ..commands.install_hints import install_hint
from ..commands.options import Command, Kind, Option, OptionError, fail, interpreter

_HOST_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")


def listen_options(default_port: int, others: str) -> tuple[Option, Option]:
    """`--host` and `--port`; `others` says what holds for whoever is on another machine."""
    return (
        Option(
            "host",
            Kind("HOST", _parse_host, (str,)),
            "127.0.0.1",
            f"the interface to listen on, by address or name; {others}",
        ),
        Option("port", options.integer(0, HIGHEST_PORT), default_port, "the port to listen on; 0 is any free one"),
    )


def _parse_host(given: str) -> str:
    bare = given[1:-1] if given.startswith("[") and given.endswith("]") else given
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        if _HOST_NAME.fullmatch(given) and not re.fullmatch("[0-9.]+", given):
            return given
    raise ValueError(f"{options.quoted(given)} is no address or name of an interface")


class Logging(Protocol):
    """Of a command's configuration what `HttpCommand.main` looks at."""

    @property
    def logging_level(self) -> str: ...
    @property
    def logging_paths(self) -> tuple[str, ...]: ...
    @property
    def logging_config_file(self) -> str: ...


@dataclass(frozen=True)
class HttpCommand:
    """A command, and the libraries that it needs of scaler-client's extra of that name."""

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
        """Run the command to its end; `argv` is without the program's name. Returns the exit status.

        `run` is called last, and may import the libraries: -h and a wrong option get their answer without them.
        """
        try:
            arguments = parse_arguments(self.command, sys.argv[1:] if argv is None else argv)
            status = run_common_option(self.command, self.program, self._versions, arguments)
            if status is not None:
                return status
            config: Logging = load(arguments, os.environ)
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
