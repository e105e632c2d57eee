"""The options that all programs have which watch a scheduler: where it publishes what it says of itself, by which keys.

A program's table begins with MONITOR_OPTIONS; `resolve_monitor_options` gives their values, `monitor_address` the
address to connect to among them, `keys` for the MonitorSocket.
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
        "where the scheduler publishes its state, as in ipc:///tmp/127.0.0.1_2345_monitor",
        positional=True,
        environment=MONITOR_VARIABLE,
        default_text=f"that of the scheduler at --scheduler-address, else of the one that {SCHEDULER_FILE} is for",
    ),
    Option(
        "scheduler-address",
        Kind("ADDRESS", parse_bind_address, (str,)),
        None,
        "the scheduler's own address, where it runs on this machine and publishes where it does unless told otherwise",
        environment=ADDRESS_VARIABLE,
    ),
    Option(
        "keys",
        text("DIR", is_file=True),
        None,
        "the folder with server.key, monitor.key and monitor.secret, for a monitor address of tcp that wants keys",
        environment=KEYS_VARIABLE,
        default_text="none",
    ),
)


def resolve_monitor_options(command: Command, arguments: Arguments, environ: Mapping[str, str]) -> dict[str, Any]:
    """A program's values by key, of arguments, environment and file. Raises OptionError naming what is wrong first."""
    values = resolve(command, arguments, environ)
    values["monitor_address"] = resolve_monitor_address(values)
    del values["scheduler_address"]
    return values
