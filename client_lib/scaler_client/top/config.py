"""scaler_top's options and the frozen configuration that comes out of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Optional

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
    """What scaler_top is told at its start."""

    monitor_address: Address
    keys: Optional[str]
    """The folder of a monitor's keys."""
    sort: str
    once: bool
    """Print the screen, and leave."""
    json: bool
    """Print all there is as JSON, and leave."""
    timeout_seconds: float
    """Of the two above: give up when nothing is heard for so long."""
    columns: int
    """Of what `once` prints."""


def load(arguments: Arguments, environ: Mapping[str, str]) -> Config:
    """The configuration from arguments, environment and file. Raises OptionError naming the first wrong option."""
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
        Option("once", options.boolean(), False, "print the screen once, as plain text, and leave"),
        Option("json", options.boolean(), False, "print all that is known as one JSON object, and leave"),
        Option(
            "timeout",
            options.seconds(),
            10.0,
            "with --once and --json: give up when no scheduler is heard for that long",
            unit="seconds",
        ),
        Option("columns", options.integer(MIN_COLUMNS, MAX_COLUMNS), 120, "how wide --once prints"),
    ),
)
