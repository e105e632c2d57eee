"""The options of scaler_exporter, and the frozen configuration that comes out of them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass

from .. import options
from ..addresses import HIGHEST_PORT, Address
from ..command_line import Arguments, resolve
from ..logs import LOGGING_OPTIONS
from ..monitor_options import MONITOR_OPTIONS, monitor_address
from ..options import Command, Kind, Option

PROGRAM = "scaler_exporter"
DEFAULT_PORT = 9464
_HOST_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")


@dataclass(frozen=True)
class Config:
    """What scaler_exporter is told at its start."""

    monitor_address: Address
    host: str
    """The interface to listen on, by address or name."""
    port: int
    """0: any free one."""
    logging_level: str
    logging_paths: tuple[str, ...]
    logging_config_file: str


def load(arguments: Arguments, environ: Mapping[str, str]) -> Config:
    """The configuration from arguments, environment and file. Raises OptionError naming the first wrong option."""
    values = resolve(COMMAND, arguments, environ)
    values["monitor_address"] = monitor_address(values)
    del values["scheduler_address"]
    return Config(**values)


def _parse_host(given: str) -> str:
    bare = given[1:-1] if given.startswith("[") and given.endswith("]") else given
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        if _HOST_NAME.fullmatch(given) and not re.fullmatch("[0-9.]+", given):
            return given
    raise ValueError(f"{options.shown(given)} is no address or name of an interface")


COMMAND = Command(
    description="Exports what a scheduler publishes of itself as metrics for Prometheus, at /metrics.",
    environment_prefix="SCALER_EXPORTER",
    default_file="/etc/scaler/exporter.toml",
    options=(
        *MONITOR_OPTIONS,
        Option(
            "host",
            Kind("HOST", _parse_host, (str,)),
            "127.0.0.1",
            "the interface to listen on, by address or name; whoever reaches it may read the metrics",
        ),
        Option("port", options.whole(0, HIGHEST_PORT), DEFAULT_PORT, "the port to listen on; 0 is any free one"),
        *LOGGING_OPTIONS,
    ),
)
