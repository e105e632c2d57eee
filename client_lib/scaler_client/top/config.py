"""The options of scaler_top, and its frozen configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..commands import options
from ..commands.addresses import Address
from ..commands.command_line import Arguments
from ..commands.options import Command, Option
from ..monitor.options import MONITOR_OPTIONS, resolve_monitor_options

PROGRAM = "scaler_top"
SORTABLE = ("worker", "agt_cpu", "agt_rss", "cpu", "rss", "free", "sent", "queued", "lag")
MIN_COLUMNS, MAX_COLUMNS = 80, 1000


@dataclass(frozen=True)
class Config:
    """The configuration of scaler_top."""

    monitor_address: Address
    keys: str | None
    """The folder of a monitor's keys."""
    sort: str
    once: bool
    """Print the screen and exit."""
    json: bool
    """Print the state as JSON and exit."""
    timeout_seconds: float
    """With `once` and `json`: give up if no scheduler is heard for this time."""
    columns: int
    """The width of the screen that `once` prints."""


def load(arguments: Arguments, environ: Mapping[str, str]) -> Config:
    """The configuration from arguments, environment and file. Raises OptionError for the first wrong option."""
    values = resolve_monitor_options(COMMAND, arguments, environ)
    values["timeout_seconds"] = values.pop("timeout")
    return Config(**values)


COMMAND = Command(
    description="Shows a scheduler, its workers, functions and clients in the terminal.",
    environment_prefix="SCALER_TOP",
    default_file="/etc/scaler/top.toml",
    options=(
        *MONITOR_OPTIONS,
        Option("sort", options.choice("COLUMN", SORTABLE), "cpu", f"sort workers by one of {', '.join(SORTABLE)}"),
        Option("once", options.boolean(), False, "print the screen once, as plain text, and exit"),
        Option("json", options.boolean(), False, "print the state as one JSON object, and exit"),
        Option(
            "timeout",
            options.seconds(),
            10.0,
            "with --once and --json: give up if no scheduler is heard for this time",
            unit="seconds",
        ),
        Option(
            "columns", options.integer(MIN_COLUMNS, MAX_COLUMNS), 120, "the width of what --once prints, in columns"
        ),
    ),
)
