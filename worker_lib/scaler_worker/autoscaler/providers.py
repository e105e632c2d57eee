"""What a provider does: it starts, lists and ends the hosts of one pool. Calls may take long, and may fail."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from scaler_client.autoscale import Pool

from .pool_settings import PoolSettings

MAX_OUTPUT_CHARACTERS = 300
"""Of a failed program's output, so much is in the error."""

MAX_OUTPUT_BYTES = 16 << 20
"""The largest output of a program that is read."""

PARALLEL_CALLS = 16
"""A provider with one call for each host makes so many at a time."""

_Key = TypeVar("_Key")


class ProviderError(Exception):
    """A call of a provider has failed. The text is one line that says why."""


class Provider(Protocol):
    """The hosts of one pool. One thread calls it, one call after the other."""

    def start(self, names: Sequence[str]) -> dict[str, str]:
        """Request these hosts.

        Returns:
            The reason for each host that could not be requested.

        Raises:
            ProviderError: none could be requested.
        """

    def drain(self, names: Sequence[str]) -> None:
        """Ask these hosts to end when their running tasks have ended. Raises ProviderError."""

    def kill(self, names: Sequence[str]) -> None:
        """End these hosts by force. Raises ProviderError."""

    def host_names(self) -> set[str]:
        """Return the names of all hosts of the pool that exist, those that boot included. Raises ProviderError."""


@runtime_checkable
class LogReader(Protocol):
    """A provider that reads the logs of its hosts."""

    def last_lines(self) -> dict[str, str]:
        """Return the ends of the logs of hosts that have ended since the last call, by name. Each is one line."""


def resources_argument(resources: Mapping[str, float]) -> str:
    """Return resources as `scaler_cluster --resources` takes them."""
    return ",".join(f"{name}={f'{amount:.3f}'.rstrip('0').rstrip('.')}" for name, amount in resources.items())


@dataclass(frozen=True)
class HostCommand:
    """Makes the command of a host agent."""

    settings: PoolSettings
    address: str
    """The scheduler's."""
    keys: str
    """The folder of keys on the hosts; empty: none."""

    @property
    def pool(self) -> Pool:
        return self.settings.pool

    def arguments(self, name: str) -> list[str]:
        """Return the program and its arguments for the host of this name. The name is not the last argument."""
        return [*self.settings.program, "--agent-name", name, *self.options()]

    def options(self) -> list[str]:
        """Return the arguments of every host of the pool."""
        pool = self.pool
        command = [self.address, "-n", str(pool.workers), "--retire-seconds", f"{pool.retire_seconds:g}"]
        if pool.capabilities:
            named = [f"{capability}={amount}" for capability, amount in pool.capabilities.items()]
            command += ["--capabilities", ",".join(named)]
        if pool.resources:
            command += ["--resources", resources_argument(pool.resources)]
        if self.keys:
            command += ["--keys", self.keys]
        return [*command, *self.settings.arguments]


def run_program(
    arguments: Sequence[str] | str,
    *,
    seconds: float,
    variables: Mapping[str, str] | None = None,
    text: str = "",
    keeps_begin: bool = False,
) -> str:
    """Run a program to its end, and return what it prints.

    Args:
        arguments: the program and its arguments; a single text is for the shell.
        seconds: after this time the program and its children are ended.
        variables: environment variables beside those of this process.
        text: its standard input.
        keeps_begin: whether a long error output loses its end; else it loses its beginning.

    Raises:
        ProviderError: it cannot be run, fails or takes too long.
    """
    program = arguments.split()[0] if isinstance(arguments, str) else os.path.basename(arguments[0])
    try:
        process = subprocess.Popen(
            arguments,
            shell=isinstance(arguments, str),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # so that its children can be ended with it
            env={**os.environ, **(variables or {})},
        )
    except OSError as error:
        raise ProviderError(f"{program} cannot be run: {error.strerror}") from None
    try:
        output, errors = process.communicate(text.encode(), timeout=seconds)
    except subprocess.TimeoutExpired:
        raise ProviderError(f"{program} did not end within {seconds:g} s") from None
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    if process.returncode:
        said = " ".join(errors.decode("utf-8", "replace").split())
        if len(said) > MAX_OUTPUT_CHARACTERS:
            said = f"{said[:MAX_OUTPUT_CHARACTERS]}..." if keeps_begin else f"...{said[-MAX_OUTPUT_CHARACTERS:]}"
        status = f"signal {-process.returncode}" if process.returncode < 0 else f"status {process.returncode}"
        raise ProviderError(f"{program} ended with {status}: {said or 'it printed no error'}")
    if len(output) > MAX_OUTPUT_BYTES:
        raise ProviderError(f"{program} printed {len(output)} bytes, more than {MAX_OUTPUT_BYTES}")
    return output.decode("utf-8", "replace")


def for_each(keys: Sequence[_Key], call: Callable[[_Key], object]) -> dict[_Key, str]:
    """Call a function for each key, several at a time. Returns the errors by key."""
    if not keys:
        return {}

    def outcome(key: _Key) -> str:
        try:
            call(key)
        except ProviderError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(min(PARALLEL_CALLS, len(keys)), thread_name_prefix="provider") as threads:
        return {key: error for key, error in zip(keys, threads.map(outcome, keys)) if error}


def raise_first(errors: Mapping[str, str]) -> None:
    """Raise ProviderError if there is an error; its text has the first one and their number."""
    if errors:
        name, error = next(iter(errors.items()))
        others = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise ProviderError(f"{name}: {error}{others}")
