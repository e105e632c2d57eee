"""The keywords of a local cluster that are options of its commands.

The client may not import the option tables of the commands. So the keywords go as a TOML file to each command's
`--check-config`. The command reports which keywords it does not know, and which values are wrong.
"""

from __future__ import annotations

import json
import logging
import math
import numbers
import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ..commands import module_folders
from ..commands.options import EXIT_WRONG_OPTIONS, quoted, suggestion

Options = Mapping[str, Any]
"""Values by key, as in the TOML files of the commands."""

CHECK_SECONDS = 60.0
UVLOOP = "uvloop"

RENAMED = {
    "per_worker_capabilities": "capabilities",
    "per_worker_task_queue_size": "per_worker_queue_size",
    "scheduler_io_threads": "io_threads",
}
"""Keywords of opengris-scaler's SchedulerClusterCombo, and the options of the same meaning here."""

IGNORED = {
    "allocate_policy": "the scheduler balances load by itself",
    "hard_processor_suspend": "a task that waits for others gives up its slot, and its process runs other tasks",
    "load_balance_seconds": "the scheduler balances load by itself, all the time",
    "load_balance_trigger_times": "the scheduler balances load by itself, all the time",
    "max_number_of_tasks_waiting": "memory_limit= and client_task_limit= bound waiting tasks, and no task is refused",
    "object_retention_seconds": "an object is freed with its last reference",
    "object_storage_address": "the scheduler keeps objects, at its own address",
    "scaler_policy": "the scheduler balances load by itself",
    "task_timeout_seconds": "client.options(timeout=...) limits how long a task may run",
    "worker_io_threads": "workers have one I/O thread each",
    "worker_manager_id": "a host agent is named after its host and its process",
}
"""Keywords of opengris-scaler's class that have no effect here, and the reason."""

TAKE_EMPTY = frozenset({"data_address", "spill_directory"})
"""The options of the commands for which an empty text is a value. For the others it stands for the default."""

REJECTED = {
    "num_of_workers": "n_workers= is that option",
    "parent_process": "the cluster sets it itself",
    "security_config": "keys= is the folder of keys for encrypted connections",
}
"""Keywords that raise TypeError, and the reason."""

LOCAL_TARGET_SECONDS, LOCAL_IDLE_SECONDS = 5.0, 10.0
"""Of an elastic local cluster: in this time the work shall be done, and after this time without work a host ends. Hosts
of this machine come within a second or two."""

LOCAL_BOOT_SECONDS = 15.0
"""A busy machine may need this long to start an agent."""

LOCAL_HOSTS = 8
"""An elastic local cluster has about so many agents at most, if its numbers can be divided so."""

_log = logging.getLogger(__name__)


def command_options(given: Options) -> dict[str, Any]:
    """Return the keywords that are options of the commands, by the names of these options.

    A keyword whose value is None is left out: the option keeps its default.

    Raises:
        TypeError: a local cluster does not accept a keyword, or an option is given under two names.
    """
    found: dict[str, Any] = {}
    for keyword, value in given.items():
        if keyword in REJECTED:
            raise TypeError(f"a local cluster takes no {keyword}=: {REJECTED[keyword]}")
        key = RENAMED.get(keyword, keyword)
        if key in found:
            raise TypeError(f"{key}= and {keyword}= are the same option: give one of them")
        if keyword in IGNORED:
            _log.warning("%s= has no effect: %s", keyword, IGNORED[keyword])
        elif value is not None:
            found[key] = value
    return found


@dataclass(frozen=True)
class LaunchCommands:
    """The command that starts the scheduler, and the arguments of both commands."""

    scheduler: list[str]
    scheduler_arguments: list[str]
    cluster_arguments: list[str]


def check_options(
    options: Options,
    schedulers: Iterable[list[str]],
    cluster: list[str],
    *,
    n_workers: int | None | tuple[int, int] = None,
    may_leave_out_uvloop: bool = True,
    keywords: Sequence[str] = (),
) -> LaunchCommands:
    """Let both commands check the options.

    Args:
        options: the result of `command_options`.
        schedulers: commands that start the scheduler, the preferred one first. Another command is chosen only if the
            event loop is uvloop and the first command has no uvloop.
        cluster: the command that starts the cluster.
        n_workers: the number of workers; None: the default of the command. A pair: there are several commands.
        may_leave_out_uvloop: if no command has uvloop, the scheduler runs without it (True), or ValueError is raised
            (False).
        keywords: further keywords, for suggestions.

    Returns:
        The commands to run.

    Raises:
        TypeError: neither command has such an option.
        ValueError: a value is wrong; the text is the command's own.
        OSError: a command cannot be started.
        RuntimeError: a command does not answer, or its answer cannot be read.
    """
    text = "".join(f"{key} = {_toml(key, value)}\n" for key, value in options.items())
    count = f"num_of_workers = {n_workers}\n" if isinstance(n_workers, int) else ""
    cluster_result = _CheckResult(cluster, text + count, module_folders.variables())
    results = (_CheckResult(command, text) for command in schedulers)
    scheduler_result, options = _scheduler_for(options, results, may_leave_out_uvloop)
    for key in options:
        if key in scheduler_result.unknown and key in cluster_result.unknown:
            likely = suggestion(key, keywords) or scheduler_result.unknown[key] or cluster_result.unknown[key]
            raise TypeError(f"neither scaler_scheduler nor scaler_cluster has an option {key!r}{likely}")
    for key, complaint in {**cluster_result.wrong, **scheduler_result.wrong}.items():
        if key in options:
            raise ValueError(f"{key}: {complaint}")
    return LaunchCommands(
        scheduler_result.command, scheduler_result.arguments(options), cluster_result.arguments(options)
    )


class _CheckResult:
    """The answer of a command to `--check-config` with a TOML file.

    Raises:
        OSError: the command cannot be started.
        RuntimeError: the command does not answer in time, or its answer cannot be read.
    """

    def __init__(self, command: list[str], text: str, variables: Mapping[str, str] = MappingProxyType({})) -> None:
        self.command = command
        self.unknown: dict[str, str] = {}
        """Keys that are no options of the command, with its suggestions."""
        self.wrong: dict[str, str] = {}
        """Keys whose values are wrong, with the texts of the command."""
        check_command = [*command, "--check-config", _FILE]
        try:
            done = subprocess.run(
                check_command,
                input=text.encode(),
                capture_output=True,
                timeout=CHECK_SECONDS,
                env={**os.environ, **variables},
            )
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(
                f"{shlex.join(check_command)} did not answer within {CHECK_SECONDS:g} seconds"
            ) from error
        output = done.stderr.decode(errors="replace")
        for line in output.splitlines():
            found = _COMPLAINT.fullmatch(line)
            if found is not None and found["unknown"] is not None:
                self.unknown[found["key"]] = found["suggestion"]
            elif found is not None:
                self.wrong[found["key"]] = _PLACE.sub("", found["wrong"])
        has_complaints = bool(self.unknown or self.wrong)
        has_answered = has_complaints if done.returncode == EXIT_WRONG_OPTIONS else done.returncode == 0
        if not has_answered:
            raise RuntimeError(f"{shlex.join(check_command)} ended with status {done.returncode}: {output.strip()}")

    def arguments(self, options: Options) -> list[str]:
        """Return the command-line arguments for the options that the command has."""
        return [
            _argument(key, value)
            for key, value in options.items()
            if key not in self.unknown and (value != "" or key in TAKE_EMPTY)
        ]


_FILE = "/dev/stdin"
_PLACE = re.compile(rf"{_FILE}(?::\d+)?: ")
_COMPLAINT = re.compile(rf"{_FILE}(?::\d+)?: (?P<key>\w+): ((?P<unknown>unknown key)(?P<suggestion>.*)|(?P<wrong>.*))")


def _scheduler_for(
    options: Options, results: Iterator[_CheckResult], may_leave_out_uvloop: bool
) -> tuple[_CheckResult, Options]:
    """Choose the scheduler command; returns its answer and the options to start it with."""
    first = next(results)
    complaint = first.wrong.get("event_loop")
    if complaint is None or options["event_loop"] != UVLOOP or not may_leave_out_uvloop:
        return first, options
    for other in results:
        if "event_loop" not in other.wrong:
            _log.warning(
                "event_loop=%r: the scheduler is started with `%s` instead of `%s` (%s)",
                UVLOOP,
                shlex.join(other.command),
                shlex.join(first.command),
                complaint,
            )
            return other, options
    _log.warning(
        "event_loop=%r is ignored: no interpreter here has both uvloop and the scheduler. It is started with `%s` (%s)",
        UVLOOP,
        shlex.join(first.command),
        complaint,
    )
    return first, {key: value for key, value in options.items() if key != "event_loop"}


def autoscaler_file(least: int, most: int, cluster_arguments: Sequence[str]) -> str:
    """Return the configuration of a `scaler_autoscaler` for one pool of local hosts, as TOML.

    Args:
        least: the number of workers that stay without work.
        most: the largest number of workers.
        cluster_arguments: arguments of each `scaler_cluster`, as `LaunchCommands` has them.

    Raises:
        TypeError: an argument cannot be the same for several hosts.
    """
    for key in ("agent_name", "worker_names"):
        if any(argument.startswith(f"--{key.replace('_', '-')}=") for argument in cluster_arguments):
            raise TypeError(f"an elastic local cluster takes no {key}=: it names its agents itself")
    if any(argument.startswith("--resources=") for argument in cluster_arguments):
        raise TypeError(
            "an elastic local cluster takes no resources=: each of its agents would count the same ones; give "
            "n_workers= as one number, or run scaler_autoscaler with a pool whose hosts have a part of them each"
        )
    workers = _workers_a_host(least, most)
    capabilities: dict[str, int] = {}
    for argument in cluster_arguments:
        if argument.startswith(_CAPABILITIES):
            for part in argument[len(_CAPABILITIES) :].split(","):
                name, _, amount = part.strip().partition("=")
                capabilities[name] = int(amount or "1")
    pool = {
        "name": "local",
        "provider": "local",
        "workers": workers,
        "least": least // workers,
        "most": most // workers,
        "boot_seconds": LOCAL_BOOT_SECONDS,
        "capabilities": capabilities,
        "arguments": [argument for argument in cluster_arguments if not argument.startswith(_CAPABILITIES)],
    }
    settings = {
        "target_seconds": LOCAL_TARGET_SECONDS,
        "idle_seconds": LOCAL_IDLE_SECONDS,
        "end_hosts": True,
        "pool": [pool],
    }
    return "".join(f"{key} = {_toml(key, value)}\n" for key, value in settings.items())


def _workers_a_host(least: int, most: int) -> int:
    """Return how many workers one agent has: both numbers are multiples of it. Fewer agents need less memory."""
    common = math.gcd(least, most)
    return max(size for size in range(1, max(1, most // LOCAL_HOSTS) + 1) if common % size == 0)


_CAPABILITIES = "--capabilities="


def _toml(key: str, value: Any) -> str:
    """Return a value as TOML, on one line.

    Raises:
        TypeError: TOML has no such type.
        ValueError: a string is not Unicode text, or an integer has thousands of digits.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        try:
            return str(int(value))
        except ValueError:
            raise ValueError(f"{key}: a number of thousands of digits is too large") from None
    if isinstance(value, numbers.Real):
        return repr(float(value))
    if isinstance(value, (str, os.PathLike)):
        return _quoted(key, os.fspath(value))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quoted(key, name)} = {_toml(key, one)}" for name, one in value.items()) + "}"
    if isinstance(value, (list, tuple, set, frozenset)):
        return "[" + ", ".join(_toml(key, one) for one in _in_stable_order(value)) + "]"
    raise TypeError(f"{key} must be a string, number, bool, list or dict, not {quoted(value)}")


def _quoted(key: str, text: Any) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{key} must be a string, not {quoted(text)}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{key}: {quoted(text)} is not Unicode text") from None
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _argument(key: str, value: Any) -> str:
    """Return a checked option as a command-line argument.

    Raises:
        ValueError: no command-line argument can express the value.
    """
    name = key.replace("_", "-")
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no-{name}"
    if isinstance(value, Mapping):
        return f"--{name}={','.join(each if amount is True else f'{each}={amount}' for each, amount in value.items())}"
    if isinstance(value, (list, tuple, set, frozenset)):
        parts = [os.fspath(each) if isinstance(each, os.PathLike) else str(each) for each in _in_stable_order(value)]
        for part in parts:
            if "," in part:
                raise ValueError(f"{key}: {quoted(part)} has a comma, which separates values")
        return f"--{name}={','.join(parts)}"
    return f"--{name}={os.fspath(value) if isinstance(value, os.PathLike) else value}"


def _in_stable_order(values: Iterable[Any]) -> Iterable[Any]:
    return sorted(values, key=str) if isinstance(values, (set, frozenset)) else values
