"""The options of `scaler_autoscaler`, and the frozen configuration with their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scaler_client.commands import options
from scaler_client.commands.addresses import ADDRESS_VARIABLE, Address, AddressError, parse_connect_address
from scaler_client.commands.command_line import Arguments, resolve
from scaler_client.commands.key_files import KEYS_VARIABLE
from scaler_client.commands.logs import LOGGING_OPTIONS
from scaler_client.commands.options import Command, GivenValue, Kind, Option, OptionError
from scaler_client.monitor.monitor_address import MONITOR_VARIABLE, find_monitor_address

from ..config import MAX_PROCESS_ID
from .pool_settings import PoolSettings, parse_pool, parse_pool_table

PROGRAM = "scaler_autoscaler"
MAX_POOLS = 100
"""The scheduler takes no more of one autoscaler."""


@dataclass(frozen=True)
class Config:
    """The configuration of an autoscaler. Each limit has its unit in its name."""

    address: Address
    """The scheduler's address, to which the hosts connect."""
    monitor_address: Address
    """Where the scheduler publishes."""
    keys: str
    """The folder with the scheduler's public key and the pairs of a worker and a monitor; empty: none."""
    pool: tuple[PoolSettings, ...]
    """The pools; each name once."""
    target_seconds: float
    """The time in which the work that waits and runs shall be done."""
    idle_seconds: float
    """Hosts end after they were not needed for this time."""
    call_seconds: float
    """The longest call of a provider."""
    dry_run: bool
    """Whether the decisions are only logged."""
    end_hosts: bool
    """Whether all hosts end with the command."""
    parent_process: int
    """The command ends when the process with this id is not its parent any more; 0: never."""
    logging_level: str
    """One of `logs.LEVELS`."""
    logging_paths: tuple[str, ...]
    """Files to append to. /dev/stdout and /dev/stderr are the process' own streams."""
    logging_config_file: str
    """A file for Python's logging.config, which replaces level and paths; empty: none."""


def load(arguments: Arguments, environ: Mapping[str, str]) -> Config:
    """Make the configuration of arguments, environment and file.

    Raises:
        OptionError: an option is wrong. It names the first wrong option.
    """
    values = resolve(COMMAND, arguments, environ)
    if values["monitor_address"] is None:
        try:
            values["monitor_address"] = find_monitor_address(values["address"], has_service=True)
        except AddressError as error:
            raise OptionError(f"address: {error}") from None
    return Config(**values)


def _combine_pools(pools: tuple[PoolSettings, ...]) -> tuple[PoolSettings, ...]:
    names = [each.pool.name for each in pools]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{options.quoted(name)} is the name of more than one pool")
    if len(names) > MAX_POOLS:
        raise ValueError(f"{len(names)} pools are more than {MAX_POOLS}")
    return pools


def _check(found: Mapping[str, GivenValue]) -> Iterator[str]:
    if "pool" not in found:
        yield "no pool: give --pool, or a table [[pool]] in the file, for each kind of hosts"


COMMAND = Command(
    description="Starts and ends hosts with workers, as many as the work of a scheduler needs.",
    environment_prefix="SCALER_AUTOSCALER",
    default_file="/etc/scaler/autoscaler.toml",
    check=_check,
    options=(
        Option(
            "address",
            Kind("ADDRESS", parse_connect_address, (str,)),
            None,
            "the scheduler's address, as the hosts connect to it: tcp://HOST:PORT or ipc://PATH",
            positional=True,
            required=True,
            environment=ADDRESS_VARIABLE,
            default_text=f"none: it must be given here, in {ADDRESS_VARIABLE}, or in the file",
            sample="tcp://127.0.0.1:2345",
        ),
        Option(
            "monitor-address",
            Kind("ADDRESS", parse_connect_address, (str,)),
            None,
            "where the scheduler publishes its state; it must be given if the scheduler runs on another machine",
            environment=MONITOR_VARIABLE,
            default_text="the monitor address of the scheduler at ADDRESS, if it runs on this machine",
        ),
        Option(
            "keys",
            options.text("DIR", is_file=True),
            "",
            "the folder with server.key, worker.key and worker.secret, and for a tcp monitor address also monitor.key "
            "and monitor.secret. Hosts look for their keys in a folder of the same path, unless their pool has `keys`",
            environment=KEYS_VARIABLE,
        ),
        Option(
            "pool",
            Kind("SETTINGS", parse_pool, (str,), is_list=True, combine=_combine_pools, parse_table=parse_pool_table),
            (),
            "the hosts of one kind, for example 'name=here provider=local workers=8 most=2'; give several separated by "
            "commas, or repeat the option. In the file: a table [[pool]] for each, at its end",
        ),
        Option(
            "target-seconds",
            options.seconds(),
            60.0,
            "the time in which the work that waits and runs shall be done",
            unit="seconds",
        ),
        Option(
            "idle-seconds",
            options.seconds(),
            30.0,
            "hosts end after they were not needed for this time",
            unit="seconds",
        ),
        Option(
            "call-seconds",
            options.seconds(),
            60.0,
            "the longest call of a provider. After this time it counts as failed, and its programs are ended",
            unit="seconds",
        ),
        Option(
            "dry-run",
            options.boolean(),
            False,
            "log each decision and its reason, but start and end no hosts",
        ),
        Option(
            "end-hosts",
            options.boolean(),
            False,
            "end all hosts with this command, at once. Without this option hosts stay, and the next start finds them",
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
