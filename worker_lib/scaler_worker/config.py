"""The options of `scaler_cluster`, and the frozen configuration with their values."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scaler_client.commands import options
from scaler_client.commands.addresses import (
    ADDRESS_VARIABLE,
    DATA_ADDRESS_AUTO,
    Address,
    parse_connect_address,
    parse_data_address,
)
from scaler_client.commands.command_line import Arguments, resolve
from scaler_client.commands.key_files import KEYS_VARIABLE
from scaler_client.commands.logs import LOGGING_OPTIONS
from scaler_client.commands.machine import usable_cores, usable_memory, usable_shared_memory
from scaler_client.commands.options import Command, GivenValue, Kind, Option
from scaler_client.commands.resource_amounts import UNIT, checked_resource_name, resource_amount

PROGRAMS = ("scaler_cluster", "scaler_worker")
MAX_WORKERS = 10_000
MAX_PROCESS_ID = 2**31 - 1
MAX_WORKER_NAME_LENGTH = 128  # characters
MAX_OFFERED_NAME_LENGTH = 200  # characters; a scheduler takes 256, with the codec before it
MAX_OFFERS = 300
"""Each function is exported for three codecs, and a worker may name 1,024 kinds of functions."""
GIBIBYTE = 1 << 30
GPU = "gpu"
MAX_GPUS = 1024
MAX_RESOURCES = 63
"""A scheduler takes 64, with the GPUs that were found."""
ENVIRONMENTS = ("none", "modules", "locked", "any")
DEFAULT_OBJECT_MEMORY_SHARE = 0.8


@dataclass(frozen=True)
class Config:
    """The configuration of a host agent. Each limit has its unit in its name."""

    address: Address
    """The scheduler's address."""
    num_of_workers: int
    """The number of worker processes."""
    agent_name: str
    """The name of the agent; empty: the host's name and the process id."""
    worker_names: tuple[str, ...]
    """One name for each worker, all different; empty: the agent makes them."""
    heartbeat_interval_seconds: float
    """The time between two heartbeats of the agent, and of each worker."""
    death_timeout_seconds: float
    """The agent gives up when no scheduler answers for this time."""
    garbage_collect_interval_seconds: float
    """The time between two garbage collections of a worker."""
    trim_memory_threshold_bytes: int
    """A worker with a larger resident size after a collection returns free memory to the system."""
    worker_memory_limit_bytes: int
    """A worker with a larger resident size is killed; 0: no limit."""
    object_memory_bytes: int
    """The values of this host in shared memory may use so many bytes."""
    spill_directory: str
    """Where values go that find no room in memory; empty: nowhere."""
    spill_limit_bytes: int
    """The values of this host on disk may use so many bytes; 0: half of the free space."""
    capabilities: dict[str, int]
    """The capabilities of every worker, each with an amount of at least 1."""
    resources: dict[str, int]
    """The counted resources of this host, in thousandths by name. `gpu` 0: GPUs are not looked for."""
    data_address: Address | str
    """Where other agents get object files; empty: nowhere; `auto`: a free port of the interface to the scheduler."""
    keys: str
    """The folder with the scheduler's public key and a pair for workers; empty: none."""
    preload: str
    """`module:function`, called once in each worker before its first task; empty: nothing."""
    offer: dict[str, str]
    """Functions for clients in any language: `module:function` by the name under which clients call it."""
    environments: str
    """Which environments of clients this host takes: one of ENVIRONMENTS."""
    environment_cache: str
    """The folder for the contents of environments; empty: in the user's folder of caches."""
    environment_cache_limit_bytes: int
    """The most bytes of contents and installed packages in this folder."""
    environment_build_seconds: float
    """How long the installation of packages may take."""
    retire_seconds: float
    """How long running tasks may continue after SIGTERM; 0: the workers end at once."""
    parent_process: int
    """The agent ends when the process with this id is not its parent any more; 0: never."""
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
    if values["num_of_workers"] is None:
        values["num_of_workers"] = len(values["worker_names"]) or usable_cores()
    values["worker_memory_limit_bytes"] = values.pop("worker_memory_limit") or 0
    shared_memory = int(usable_shared_memory() * DEFAULT_OBJECT_MEMORY_SHARE)
    values["object_memory_bytes"] = values.pop("object_memory") or shared_memory or options.MAX_MEMORY_BYTES
    values["environment_cache_limit_bytes"] = values.pop("environment_cache_limit")
    values["spill_limit_bytes"] = values.pop("spill_limit") or 0
    return Config(**values)


def program_name() -> str:
    """The name by which this command was called."""
    called = os.path.splitext(os.path.basename(sys.argv[0]))[0]
    return called if called in PROGRAMS else PROGRAMS[0]


def workers_in_words(number: int) -> str:
    """A number of workers in words: `1 worker`, `2 workers`."""
    return f"{number} worker{'' if number == 1 else 's'}"


def fail(message: str, status: int = options.EXIT_WRONG_OPTIONS) -> int:
    """Print `scaler_cluster: message` to standard error, on one line; returns the exit status."""
    return options.fail(program_name(), message, status)


def _parse_worker_name(given: str) -> str:
    if not given or len(given) > MAX_WORKER_NAME_LENGTH or not given.isprintable():
        raise ValueError(f"{options.quoted(given)} is not a name of 1 to {MAX_WORKER_NAME_LENGTH} printable characters")
    return given


def _is_function(given: str) -> bool:
    name = r"[^\W\d]\w*(\.[^\W\d]\w*)*"
    return re.fullmatch(f"{name}:{name}", given) is not None


def _parse_preload(given: str) -> str:
    if not _is_function(given):
        raise ValueError(f"{options.quoted(given)} is not module:function")
    return given


def _parse_offer(given: str) -> tuple[str, str]:
    name, separator, place = (part.strip() for part in given.rpartition("="))
    if not separator:
        name = place.rpartition(":")[2]
    if not _is_function(place) or not 0 < len(name) <= MAX_OFFERED_NAME_LENGTH or not name.isprintable():
        wanted = f"module:function, or NAME=module:function with a name of 1 to {MAX_OFFERED_NAME_LENGTH} characters"
        raise ValueError(f"{options.quoted(given)} is not {wanted}")
    return name, place


def _combine_offers(offers: tuple[tuple[str, str], ...]) -> dict[str, str]:
    names = [name for name, _ in offers]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{options.quoted(name)} is given more than once")
    if len(names) > MAX_OFFERS:
        raise ValueError(f"{len(names)} functions are more than {MAX_OFFERS}")
    return dict(offers)


def parse_resource(given: str) -> tuple[str, int]:
    """Read NAME=AMOUNT. Returns the name and thousandths.

    Raises:
        ValueError: the text says what is wrong.
    """
    name, separator, amount = (part.strip() for part in given.partition("="))
    if not separator:
        raise ValueError(f"{options.quoted(given)} is not NAME=AMOUNT, for example gpu=4 or memory=64G")
    checked_resource_name(name)
    if name == GPU and amount == "0":
        return name, 0
    thousandths = resource_amount(name, amount)
    if name == GPU and (thousandths % UNIT or thousandths > MAX_GPUS * UNIT):
        raise ValueError(f"{options.quoted(given)} is not a whole number of GPUs up to {MAX_GPUS}")
    return name, thousandths


def combine_resources(parts: tuple[tuple[str, int], ...]) -> dict[str, int]:
    """Return thousandths by name.

    Raises:
        ValueError: a name is there twice, or there are too many.
    """
    names = [name for name, _ in parts]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{options.quoted(name)} is there more than once")
    if len(names) > MAX_RESOURCES:
        raise ValueError(f"{len(names)} resources are more than {MAX_RESOURCES}")
    return dict(parts)


def _check(found: Mapping[str, GivenValue]) -> Iterator[str]:
    names = found.get("worker_names")
    number = found.get("num_of_workers")
    if names is None:
        return
    repeated = next((name for name in names.value if names.value.count(name) > 1), None)
    if repeated is not None:
        yield f"{names.source}: {options.quoted(repeated)} is given more than once"
    if number is not None and number.value != len(names.value):
        wanted = f"{workers_in_words(number.value)} ({number.source})"
        yield f"{names.source}: {len(names.value)} name{'' if len(names.value) == 1 else 's'} for {wanted}"


COMMAND = Command(
    description="Runs worker processes on this host, under a host agent that starts and watches them.",
    environment_prefix="SCALER_CLUSTER",
    default_file="/etc/scaler/cluster.toml",
    check=_check,
    options=(
        Option(
            "address",
            Kind("ADDRESS", parse_connect_address, (str,)),
            None,
            "the scheduler's address, tcp://HOST:PORT or ipc://PATH; write IPv6 as tcp://[::1]:2345",
            positional=True,
            required=True,
            environment=ADDRESS_VARIABLE,
            default_text=f"none: it must be given here, in {ADDRESS_VARIABLE}, or in the file",
            sample="tcp://127.0.0.1:2345",
        ),
        Option(
            "num-of-workers",
            options.integer(1, MAX_WORKERS),
            None,
            "the number of worker processes",
            short="-n",
            default_text="the number of --worker-names, else of usable cores within CPU affinity and cgroup limits",
        ),
        Option(
            "agent-name",
            Kind("NAME", _parse_worker_name, (str,)),
            "",
            "the name of the agent in logs and monitors, and the beginning of its workers' names",
            default_text="<host>-<pid>",
        ),
        Option(
            "worker-names",
            Kind("NAMES", _parse_worker_name, (str,), is_list=True),
            (),
            "comma-separated names, one for each worker, all different",
            default_text="<agent name>-<number>",
        ),
        Option(
            "heartbeat-interval-seconds",
            options.seconds(),
            2.0,
            "time between two heartbeats to the scheduler",
            unit="seconds",
        ),
        Option(
            "death-timeout-seconds",
            options.seconds(),
            300.0,
            "end when no scheduler answers for this time",
            unit="seconds",
        ),
        Option(
            "garbage-collect-interval-seconds",
            options.seconds(),
            30.0,
            "time between two garbage collections of a worker",
            unit="seconds",
        ),
        Option(
            "trim-memory-threshold-bytes",
            options.integer(0, options.MAX_MEMORY_BYTES),
            GIBIBYTE,
            "a worker that is larger after a garbage collection returns its free memory to the system",
            unit="bytes (1 GiB)",
        ),
        Option(
            "worker-memory-limit",
            options.memory_size(usable_memory),
            None,
            "a worker whose resident size exceeds this limit is killed; this counts as a failed attempt of its running "
            "task; " + options.SIZE_HELP,
        ),
        Option(
            "object-memory",
            options.memory_size(usable_shared_memory),
            None,
            "the most memory in /dev/shm for the objects and large results of this host. Beyond this limit, values go "
            "to --spill-directory. 50% means 50% of the size of /dev/shm, or of half of the usable memory, whichever "
            "is less",
            default_text="80%",
        ),
        Option(
            "spill-directory",
            options.text("DIR", is_file=True),
            "/var/tmp",
            "a folder on a local disk, for values beyond --object-memory. The agent makes a folder of its own in it. "
            "Empty: values are not written to disk, and a result that finds no room in memory fails its task",
            takes_empty=True,
        ),
        Option(
            "spill-limit",
            options.memory_size(None),
            None,
            "the most disk space for the values of this host in --spill-directory. A result that finds no room in "
            "memory or on disk fails its task",
            default_text="half of the free space of the disk",
        ),
        Option(
            "capabilities",
            options.capabilities(),
            {},
            "the capabilities of the workers, for tasks that require them: comma-separated, for example gpu=2,linux "
            "(default amount: 1); at most 64; in the file also a table",
        ),
        Option(
            "resources",
            Kind("NAME=AMOUNT", parse_resource, (str, dict), is_list=True, combine=combine_resources),
            {},
            "the counted resources of this host, which all its workers share: comma-separated, for example "
            "gpu=4,memory=64G,license=2; in the file also a table. A task asks for some of them by "
            "client.options(resources=...), and no other task gets these until it ends. cpus: the number of cpus that "
            "all workers together stand for (default: one for each worker). gpu=0: look for no GPUs",
            default_text="gpu=N if there are N GPUs of NVIDIA or AMD",
        ),
        Option(
            "data-address",
            Kind("ADDRESS", parse_data_address, (str,)),
            DATA_ADDRESS_AUTO,
            "where the agents of other hosts get large results and objects, tcp://HOST:PORT; port * is any free port. "
            "Empty: no port is opened, and these values go through the scheduler. An address that other machines can "
            "reach needs --keys if the scheduler runs on this machine",
            default_text="a free port of the interface that leads to the scheduler; empty if the scheduler's address "
            "is ipc",
            takes_empty=True,
        ),
        Option(
            "keys",
            options.text("DIR", is_file=True),
            "",
            "the folder of keys, for a scheduler that requires keys: server.key, worker.key and worker.secret, which "
            "scaler_scheduler keygen makes",
            environment=KEYS_VARIABLE,
        ),
        Option(
            "preload",
            Kind("MODULE:FUNCTION", _parse_preload, (str,)),
            "",
            "a function without arguments that each worker calls before its first task; if it fails in the first "
            "worker, the command ends with status 78",
        ),
        Option(
            "offer",
            Kind("[NAME=]MODULE:FUNCTION", _parse_offer, (str,), is_list=True, combine=_combine_offers),
            {},
            "functions that clients in any language may call by NAME (default: the function's own name); give several "
            "separated by commas, or repeat the option. If the first worker cannot import one, the command ends with "
            "status 78",
        ),
        Option(
            "environments",
            options.choice("LEVEL", ENVIRONMENTS),
            "modules",
            "what clients may bring for their tasks. none: nothing; modules: files of Python modules; locked: also "
            "packages whose installation runs no code; any: all packages",
        ),
        Option(
            "environment-cache",
            options.text("DIR", is_file=True),
            "",
            "the folder for modules and packages that clients bring. No other user may write to it. Its contents are "
            "checked at each use",
            default_text="scaler in XDG_CACHE_HOME, or in ~/.cache",
        ),
        Option(
            "environment-cache-limit",
            options.memory_size(None),
            10 * GIBIBYTE,
            "the most disk space for --environment-cache. The least recently used contents are removed first. Packages "
            "that find no room are not installed",
            default_text="10G",
        ),
        Option(
            "environment-build-seconds",
            options.seconds(),
            900.0,
            "the longest time for the installation of an environment's packages. After it, the installer and all "
            "processes that it has started are ended",
            unit="seconds",
        ),
        Option(
            "retire-seconds",
            options.seconds(allow_zero=True),
            0.0,
            "how long running tasks may continue after SIGTERM. The workers get no new tasks, their queued tasks go to "
            "other workers, and the command ends after the last running task. 0: the workers end at once, and their "
            "tasks run again elsewhere",
            unit="seconds",
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
