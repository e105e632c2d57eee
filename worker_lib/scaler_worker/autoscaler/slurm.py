"""The provider `slurm`: each host is an element of a job array, by sbatch, squeue and scancel."""

from __future__ import annotations

import getpass
import math
import shlex
from collections.abc import Iterable, Sequence

from scaler_client.autoscale.pools import parse_host_name

from .providers import HostCommand, run_program

NOTICE_SECONDS = 120
"""An agent gets SIGTERM so long before its time limit, unless a quarter of the limit is less."""

_PLACEHOLDER = "SCALER-HOST"


class SlurmProvider:
    """Submits job arrays.

    Args:
        command: makes the command of a host.
        seconds: the longest run of one of Slurm's commands.
    """

    def __init__(self, command: HostCommand, seconds: float) -> None:
        self._command = command
        self._seconds = seconds
        self._jobs: dict[str, tuple[str, bool]] = {}
        """By host: its job as `ARRAY_ELEMENT`, and whether it waits in Slurm's queue."""

    def start(self, names: Sequence[str]) -> dict[str, str]:
        by_random: dict[str, list[int]] = {}
        for name in names:
            parsed = parse_host_name(name)
            if parsed is not None:
                by_random.setdefault(name.rpartition("-")[2], []).append(parsed[1])
        for random, numbers in by_random.items():
            self._run(["sbatch", *self._options(random, numbers)], self._script(random))
        return {}

    def drain(self, names: Sequence[str]) -> None:
        jobs = [self._jobs[name] for name in names if name in self._jobs]
        self._cancel([], [job for job, is_pending in jobs if is_pending])
        # Only the batch script gets the signal, which has become the agent. The agent ends its workers.
        self._cancel(["--batch", "--signal=TERM"], [job for job, is_pending in jobs if not is_pending])

    def kill(self, names: Sequence[str]) -> None:
        self._cancel([], [self._jobs[name][0] for name in names if name in self._jobs])

    def host_names(self) -> set[str]:
        pool = self._command.pool.name
        listed = self._run(
            ["squeue", "--noheader", "--array", f"--user={getpass.getuser()}", "--format=%F|%K|%T|%j"], ""
        )
        self._jobs = {}
        for line in listed.splitlines():
            array, _, rest = line.strip().partition("|")
            element, _, rest = rest.partition("|")
            state, _, job_name = rest.partition("|")
            name, _, random = job_name.rpartition("-")
            if name == pool and element.isdecimal() and parse_host_name(host := f"{pool}-{element}-{random}"):
                self._jobs[host] = f"{array}_{element}", state == "PENDING"
        return set(self._jobs)

    def _options(self, random: str, numbers: Iterable[int]) -> list[str]:
        pool = self._command.pool
        options = ["--parsable", f"--job-name={pool.name}-{random}", f"--array={_ranges(numbers)}"]
        options += ["--nodes=1", "--ntasks=1", f"--cpus-per-task={pool.workers}", "--no-requeue"]
        options += ["--output=scaler-%x-%a.log", "--open-mode=append"]
        if pool.time_limit_seconds:
            notice = int(min(NOTICE_SECONDS, pool.time_limit_seconds / 4))
            options += [f"--time={math.ceil(pool.time_limit_seconds / 60)}", f"--signal=B:TERM@{notice}"]
        return [*options, *self._command.settings.options]

    def _script(self, random: str) -> str:
        arguments = [shlex.quote(part) for part in self._command.arguments(_PLACEHOLDER)]
        name = f'"{self._command.pool.name}-$SLURM_ARRAY_TASK_ID-{random}"'
        command = " ".join(name if part == _PLACEHOLDER else part for part in arguments)
        return f"#!/bin/bash\n# Slurm's signals go to this shell; exec makes the agent receive them.\nexec {command}\n"

    def _cancel(self, options: Sequence[str], jobs: Sequence[str]) -> None:
        if jobs:
            self._run(["scancel", "--quiet", *options, *jobs], "")

    def _run(self, arguments: Sequence[str], text: str) -> str:
        return run_program(arguments, seconds=self._seconds, text=text)


def _ranges(numbers: Iterable[int]) -> str:
    """Write numbers as Slurm reads them: `0-3,7`."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
