"""The scheduler's table of options, and `Config`, the frozen values of the options."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..commands import options
from ..commands.addresses import ADDRESS_VARIABLE, Address, parse_bind_address
from ..commands.command_line import Arguments, resolve
from ..commands.key_files import KEYS_VARIABLE
from ..commands.logs import LOGGING_OPTIONS
from ..commands.machine import usable_memory
from ..commands.options import Command, GivenValue, Kind, Option, parse_text
from ..core.limits import LimitSettings
from . import limits
from .limits import LIMIT_OPTIONS, PeerLimits, task_limits

PROGRAM = "scaler_scheduler"
EVENT_LOOPS = ("zmq", "builtin", "uvloop")
MAX_IO_THREADS = 256
MAX_WORKER_QUEUE_TASKS = 1_000_000
MAX_TASK_RETRIES = 1_000_000
MAX_PROCESS_ID = 2**31 - 1
DEFAULT_MEMORY_LIMIT = "50%"


@dataclass(frozen=True)
class Config(PeerLimits):
    """The values of the scheduler's options at its start, with units."""

    address: Address
    """Where clients, workers and host agents connect. Port 0 stands for any free port."""
    io_threads: int
    """Number of I/O threads of ZeroMQ."""
    event_loop: str
    """One of EVENT_LOOPS. If it is uvloop, uvloop can be imported."""
    client_timeout_seconds: float
    """Seconds. A client that sends nothing for longer is lost."""
    worker_timeout_seconds: float
    """Seconds. A worker or host agent that sends nothing for longer is lost."""
    per_worker_queue_size: int
    """The most tasks that the scheduler sends a worker in addition to its running task."""
    task_retries: int
    """Further attempts of a task whose worker died while it ran."""
    memory_limit_bytes: int
    """Bytes of payloads and their overhead. Above it clients get no more credit."""
    protected: bool
    """Whether the scheduler refuses a client's request to end it and its clusters."""
    limits: dict[str, LimitSettings]
    """Limits of tasks across the cluster, by name."""
    priority_across: bool
    """Whether priorities order tasks of all clients, and not only those of one share."""
    keys: str
    """The folder with the server's key and the list of authorized keys. Empty: peers have no keys."""
    insecure: bool
    """Whether the scheduler binds addresses that other machines can reach without keys."""
    monitor_address: Address | None
    """Where snapshots are published. None: `commands.addresses.default_monitor_address`."""
    parent_process: int
    """The scheduler ends when the process with this id is no longer its parent. 0: never."""
    logging_level: str
    """One of `logs.LEVELS`."""
    logging_paths: tuple[str, ...]
    """Files to append to. /dev/stdout and /dev/stderr are the streams of the process."""
    logging_config_file: str
    """A file for Python's logging.config in place of level and paths. Empty: none."""


def load(arguments: Arguments, environ: Mapping[str, str]) -> Config:
    """The configuration from arguments, environment and file.

    Raises:
        OptionError: an option is wrong. The text names the first one.
    """
    values = resolve(COMMAND, arguments, environ)
    limit = values.pop("memory_limit")
    values["memory_limit_bytes"] = limit or parse_text(_MEMORY_LIMIT, DEFAULT_MEMORY_LIMIT, _MEMORY_LIMIT.label).value
    limits.complete(values)
    return Config(**values)


def fail(message: str, status: int = options.EXIT_WRONG_OPTIONS) -> int:
    """Print `scaler_scheduler: message` on one line to standard error. Returns the exit status."""
    return options.fail(PROGRAM, message, status)


def _parse_event_loop(given: str) -> str:
    value: str = options.choice("LOOP", EVENT_LOOPS).parse(given)
    if value == "uvloop" and sys.implementation.name == "pypy":
        raise ValueError("uvloop does not run under PyPy: use zmq or builtin, or run the scheduler with CPython")
    if value == "uvloop":
        try:
            import uvloop  # noqa: F401
        except ImportError as error:
            raise ValueError(f"uvloop can't be imported here ({error}): install it, or use zmq or builtin") from None
    return value


def _check(found: Mapping[str, GivenValue]) -> Iterator[str]:
    address, monitor = found.get("address"), found.get("monitor_address")
    if address is None or monitor is None:
        return
    one, other = address.value, monitor.value
    hosts = {one.host, other.host}
    is_same_host = len(hosts) == 1 or bool(hosts & _EVERY_HOST)
    if one == other if one.transport == "ipc" else is_same_host and one.port == other.port != 0:
        yield f"{monitor.source}: {other} is taken by the scheduler's own address {one}: give another port or path"


_EVERY_HOST = {"*", "0.0.0.0", "::"}

_ADDRESS = Kind("ADDRESS", parse_bind_address, (str,))

_MEMORY_LIMIT = Option(
    "memory-limit",
    options.memory_size(usable_memory),
    None,
    "the most memory for the tasks, results and objects that the scheduler holds; above it, clients keep further "
    "tasks until memory is free again, and new objects are refused; " + options.SIZE_HELP,
    default_text=DEFAULT_MEMORY_LIMIT,
    sample=DEFAULT_MEMORY_LIMIT,
)

COMMAND = Command(
    description="The scheduler: receives tasks from clients and sends them to workers. The subcommands keygen, "
    "authorize, revoke and list manage the keys that may connect (scaler_scheduler keygen -h).",
    environment_prefix="SCALER_SCHEDULER",
    default_file="/etc/scaler/scheduler.toml",
    check=_check,
    options=(
        Option(
            "address",
            _ADDRESS,
            None,
            "where clients and workers connect, tcp://HOST:PORT or ipc://PATH; host * is every interface, port 0 or * "
            "is any free port, and an IPv6 address has brackets, as in tcp://[::1]:2345",
            positional=True,
            required=True,
            environment=ADDRESS_VARIABLE,
            default_text=f"none: it must be given here, in {ADDRESS_VARIABLE}, or in the file",
            sample="tcp://127.0.0.1:2345",
        ),
        Option("io-threads", options.integer(1, MAX_IO_THREADS), 1, "ZeroMQ's I/O threads", unit="thread"),
        Option(
            "event-loop",
            Kind("LOOP", _parse_event_loop, (str,), choices=EVENT_LOOPS),
            "zmq",
            "the event loop: zmq is a plain loop on the socket, builtin is Python's asyncio, uvloop is asyncio on "
            "uvloop (CPython only)",
        ),
        Option(
            "client-timeout-seconds",
            options.seconds(),
            60.0,
            "the lease of clients: if a client sends nothing for longer, it is lost and its tasks are cancelled",
            unit="seconds",
        ),
        Option(
            "worker-timeout-seconds",
            options.seconds(),
            60.0,
            "the lease of workers and host agents: if one sends nothing for longer, it is lost, and its tasks run "
            "elsewhere",
            unit="seconds",
        ),
        Option(
            "per-worker-queue-size",
            options.integer(1, MAX_WORKER_QUEUE_TASKS),
            1000,
            "the most tasks that the scheduler sends a worker in advance. The longer tasks run, the fewer are sent in "
            "advance",
            unit="tasks",
        ),
        Option(
            "task-retries",
            options.integer(0, MAX_TASK_RETRIES),
            3,
            "how often a task runs again after its worker died while it ran",
            unit="retries",
        ),
        _MEMORY_LIMIT,
        Option(
            "protected",
            options.boolean(),
            True,
            "refuse a client's request to end the scheduler and its clusters (Client.shutdown)",
        ),
        Option(
            "limits",
            task_limits(),
            {},
            "limits across the cluster for tasks that ask for them, client.options(limit=NAME): how many run at once "
            "(db=10), or how many begin in a second, minute or hour (api=50/s, /min or /h). In the file: a table "
            "[limits]. Changes apply at SIGHUP",
        ),
        Option(
            "priority-across",
            options.boolean(),
            False,
            "tasks of higher priority go before the tasks of all clients; without this option, only before tasks of "
            "the same key or user",
        ),
        Option(
            "keys",
            options.text("DIR", is_file=True),
            "",
            "the folder of keys that scaler_scheduler keygen has made: connections are encrypted, and only peers with "
            "a key listed there may connect; required if other machines can reach the address. The folder must belong "
            "to the user that runs the scheduler; for the service: chown -R scaler: DIR",
            environment=KEYS_VARIABLE,
        ),
        Option(
            "insecure",
            options.boolean(),
            False,
            "bind an address without keys even if other machines can reach it: programs on these machines can then run "
            "code on the workers",
        ),
        Option(
            "monitor-address",
            _ADDRESS,
            None,
            "where the scheduler publishes its state",
            default_text="ipc:///tmp/scaler-sockets-<uid>/<host>_<port>_monitor, with host and port of the address "
            "above, in a folder that only the scheduler's user can enter; for an ipc address <path>_monitor; for a "
            "systemd service with a RuntimeDirectory the file monitor there, as in ipc:///run/scaler/monitor",
        ),
        Option(
            "parent-process",
            options.integer(0, MAX_PROCESS_ID),
            0,
            "end when the process with this id is no longer the parent, for the local scheduler of an application; "
            "0: never",
        ),
        *LIMIT_OPTIONS,
        *LOGGING_OPTIONS,
    ),
)
