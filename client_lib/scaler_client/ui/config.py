"""The options of scaler_ui, and its frozen configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..commands import options
from ..commands.addresses import Address
from ..commands.command_line import Arguments
from ..commands.logs import LOGGING_OPTIONS
from ..commands.options import Command, Kind, Option
from ..monitor.http_command import listen_options
from ..monitor.options import MONITOR_OPTIONS, resolve_monitor_options
from .access import MIN_TOKEN_LENGTH
from .executions import MAX_TASKS

PROGRAM = "scaler_ui"
DEFAULT_PORT = 8081
MAX_WINDOW_SECONDS = 86_400
MAX_PROCESS_ID = 2**31 - 1


@dataclass(frozen=True)
class Config:
    """The configuration of scaler_ui."""

    monitor_address: Address
    keys: str | None
    """The folder of a monitor's keys."""
    host: str
    """The interface to listen on, by address or name."""
    port: int
    """0 takes any free port."""
    token: str
    """The token that browsers must show. If it is empty and the interface is not the loopback one, a token is made."""
    window_seconds: float
    """How long executions and points of the charts are kept."""
    window_tasks: int
    """The maximum number of executions."""
    parent_process: int
    """Exit when the process with this id is no longer the parent; 0 never."""
    logging_level: str
    logging_paths: tuple[str, ...]
    logging_config_file: str


def load(arguments: Arguments, environ: Mapping[str, str]) -> Config:
    """The configuration from arguments, environment and file. Raises OptionError for the first wrong option."""
    values = resolve_monitor_options(COMMAND, arguments, environ)
    values["window_seconds"] = float(values["window_seconds"])
    return Config(**values)


def _parse_token(given: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._~+/=-]+", given):  # these characters need no quoting in headers and addresses
        raise ValueError("a token may have only letters, digits and . _ ~ + / = -")
    if len(given) < MIN_TOKEN_LENGTH:
        raise ValueError(f"a token needs at least {MIN_TOKEN_LENGTH} characters")
    return given


COMMAND = Command(
    description="Shows the state of a scheduler in a browser.",
    environment_prefix="SCALER_UI",
    default_file="/etc/scaler/ui.toml",
    options=(
        *MONITOR_OPTIONS,
        *listen_options(DEFAULT_PORT, "other interfaces than the loopback one require a token"),
        Option(
            "token",
            Kind("TOKEN", _parse_token, (str,)),
            "",
            f"the token that browsers and scripts must show, at least {MIN_TOKEN_LENGTH} characters. Set it "
            "in the environment or in the file: other users can read arguments in the list of processes",
            default_text="one is made and printed if it is needed",
        ),
        Option(
            "window-seconds",
            options.integer(10, MAX_WINDOW_SECONDS),
            600,
            "how long executions and chart points are kept",
            unit="seconds",
        ),
        Option(
            "window-tasks",
            options.integer(1000, 1_000_000),
            MAX_TASKS,
            "how many executions of tasks are kept at most",
        ),
        Option(
            "parent-process",
            options.integer(0, MAX_PROCESS_ID),
            0,
            "end when the process with this id is no longer the parent (for local clusters of an application); 0: "
            "never",
        ),
        *LOGGING_OPTIONS,
    ),
)
