"""The options of scaler_ui, and the frozen configuration that comes out of them."""

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
    """What scaler_ui is told at its start."""

    monitor_address: Address
    keys: str | None
    """The folder of a monitor's keys."""
    host: str
    """The interface to listen on, by address or name."""
    port: int
    """0: any free one."""
    token: str
    """What browsers must show; empty: one is made where the interface is not this machine's own."""
    window_seconds: float
    """For how long executions of tasks, and points of the curves, are kept."""
    window_tasks: int
    """Executions at most."""
    parent_process: int
    """End when the process with this id is not the parent any more; 0: never."""
    logging_level: str
    logging_paths: tuple[str, ...]
    logging_config_file: str


def load(arguments: Arguments, environ: Mapping[str, str]) -> Config:
    """The configuration from arguments, environment and file. Raises OptionError naming the first wrong option."""
    values = resolve_monitor_options(COMMAND, arguments, environ)
    values["window_seconds"] = float(values["window_seconds"])
    return Config(**values)


def _parse_token(given: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._~+/=-]+", given):  # what stands in headers and addresses as it is
        raise ValueError("a token has letters, digits and . _ ~ + / = - alone")
    if len(given) < MIN_TOKEN_LENGTH:
        raise ValueError(f"a token has at least {MIN_TOKEN_LENGTH} characters")
    return given


COMMAND = Command(
    description="Shows in a browser what a scheduler does, from what that publishes.",
    environment_prefix="SCALER_UI",
    default_file="/etc/scaler/ui.toml",
    options=(
        *MONITOR_OPTIONS,
        *listen_options(DEFAULT_PORT, "on others than this machine's own a token is needed"),
        Option(
            "token",
            Kind("TOKEN", _parse_token, (str,)),
            "",
            f"what browsers and scripts must show, at least {MIN_TOKEN_LENGTH} characters; others "
            "see arguments in the list of processes: it is better in the environment or the file",
            default_text="one is made and printed where it is needed",
        ),
        Option(
            "window-seconds",
            options.integer(10, MAX_WINDOW_SECONDS),
            600,
            "for how long what has happened is kept",
            unit="seconds",
        ),
        Option(
            "window-tasks",
            options.integer(1000, 1_000_000),
            MAX_TASKS,
            "of how many executions of tasks at most",
        ),
        Option(
            "parent-process",
            options.integer(0, MAX_PROCESS_ID),
            0,
            "end when the process with this id is not the parent any more, as the page of an application's own cluster "
            "does; 0 never",
        ),
        *LOGGING_OPTIONS,
    ),
)
