"""The options of scaler_exporter, and its frozen configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..commands.addresses import Address
from ..commands.command_line import Arguments
from ..commands.logs import LOGGING_OPTIONS
from ..commands.options import Command
from ..monitor.http_command import listen_options
from ..monitor.options import MONITOR_OPTIONS, resolve_monitor_options

PROGRAM = "scaler_exporter"
DEFAULT_PORT = 9464


@dataclass(frozen=True)
class Config:
    """The configuration of scaler_exporter."""

    monitor_address: Address
    keys: str | None
    """The folder of a monitor's keys."""
    host: str
    """The interface to listen on, by address or name."""
    port: int
    """0 takes any free port."""
    logging_level: str
    logging_paths: tuple[str, ...]
    logging_config_file: str


def load(arguments: Arguments, environ: Mapping[str, str]) -> Config:
    """The configuration from arguments, environment and file. Raises OptionError for the first wrong option."""
    values = resolve_monitor_options(COMMAND, arguments, environ)
    return Config(**values)


COMMAND = Command(
    description="Exports a scheduler's state as metrics for Prometheus, at /metrics.",
    environment_prefix="SCALER_EXPORTER",
    default_file="/etc/scaler/exporter.toml",
    options=(
        *MONITOR_OPTIONS,
        *listen_options(DEFAULT_PORT, "every host that reaches it may read the metrics"),
        *LOGGING_OPTIONS,
    ),
)
