"""The options of all programs that watch a scheduler: its monitor address, and the folder of keys.

A program's option table begins with MONITOR_OPTIONS. `resolve_monitor_options` returns the values; among them are
`monitor_address`, to connect to, and `keys`, for the MonitorSocket.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..commands.addresses import ADDRESS_VARIABLE, parse_bind_address, parse_connect_address
from ..commands.command_line import Arguments, resolve
from ..commands.key_files import KEYS_VARIABLE
from ..commands.options import Command, Kind, Option, text
from .monitor_address import MONITOR_VARIABLE, SCHEDULER_FILE, resolve_monitor_address

MONITOR_OPTIONS = (
    Option(
        "monitor-address",
        Kind("ADDRESS", parse_connect_address, (str,)),
        None,
        "where the scheduler publishes its state, for example ipc:///run/scaler/monitor; or the own address of "
        "a scheduler on this machine that publishes at its default monitor address",
        positional=True,
        environment=MONITOR_VARIABLE,
        default_text="the monitor address of the scheduler at --scheduler-address, else of the scheduler that "
        f"{SCHEDULER_FILE} configures",
    ),
    Option(
        "scheduler-address",
        Kind("ADDRESS", parse_bind_address, (str,)),
        None,
        "the scheduler's own address, if it runs on this machine and publishes at its default monitor address",
        environment=ADDRESS_VARIABLE,
    ),
    Option(
        "keys",
        text("DIR", is_file=True),
        None,
        "the folder with server.key, monitor.key and monitor.secret, if the monitor address is tcp and needs keys",
        environment=KEYS_VARIABLE,
        default_text="none",
    ),
)


def resolve_monitor_options(command: Command, arguments: Arguments, environ: Mapping[str, str]) -> dict[str, Any]:
    """A program's option values by key, from arguments, environment and file. Raises OptionError for the first wrong
    one."""
    values = resolve(command, arguments, environ)
    values["monitor_address"] = resolve_monitor_address(values)
    del values["scheduler_address"]
    return values
