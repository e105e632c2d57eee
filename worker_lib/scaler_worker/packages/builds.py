"""The agent's side of the processes that prepare environments: it starts them, waits for none, and ends them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

from scaler_client.commands import module_folders
from scaler_client.commands.module_command import module_command

from .build_process import request_to_plain
from .cache import Lock, lock_file
from .launch import PreparedPackages, prepared_packages_from
from .preparation import Request

MAX_RESULT_BYTES = 1 << 20
MAX_RUNNING = 2
"""Builds at the same time; further ones wait for their turn."""
_MODULE = "scaler_worker.packages.build_process"


@dataclass(frozen=True)
class BuildResult:
    """The end of a preparation."""

    name: str
    """The caller's name for it."""
    prepared: PreparedPackages | None
    """None: `error` says why it cannot be used here."""
    locks: tuple[Lock, ...] = ()
    """Keep the environment in the cache. The caller releases them when no process uses it any more."""
    error: str = ""
    damaged: tuple[str, ...] = ()
    """The SHA-256 of contents that are missing, or were changed since they came."""


@dataclass
class _Build:
    name: str
    process: subprocess.Popen[bytes]
    unsent: bytes
    output: bytearray = field(default_factory=bytearray)


class PackageBuilds:
    """The preparations that run. The caller polls `filenos()`, and calls `step`."""

    def __init__(self) -> None:
        self._running: list[_Build] = []
        self._waiting: list[tuple[str, Request]] = []
        self._failed: list[BuildResult] = []
        self._ending: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, request: Request) -> None:
        """Prepare packages. A BuildResult with this name follows, unless it is cancelled."""
        self._waiting.append((name, request))
        self._start_waiting()

    def cancel(self, name: str) -> None:
        """End a preparation that nobody waits for any more."""
        self._waiting = [each for each in self._waiting if each[0] != name]
        for build in [each for each in self._running if each.name == name]:
            self._running.remove(build)
            self._end(build)
        self._start_waiting()

    def filenos(self) -> list[tuple[int, bool]]:
        """The descriptors to poll, each with whether it is polled for writing too."""
        found = [(_descriptor(build.process.stdout), False) for build in self._running]
        return found + [(_descriptor(build.process.stdin), True) for build in self._running if build.unsent]

    @property
    def has_results(self) -> bool:
        """Whether `step` returns results that no descriptor announces."""
        return bool(self._failed)

    def step(self) -> list[BuildResult]:
        """Send and receive what can be sent and received at once. Returns the preparations that have ended."""
        results, self._failed = self._failed, []
        for build in list(self._running):
            _send(build)
            if _receive(build):
                self._running.remove(build)
                results.append(_result(build))
                self._end(build)
        self._ending = [process for process in self._ending if process.poll() is None]
        self._start_waiting()
        return results

    def close(self) -> None:
        """End all preparations, with their installers."""
        self._waiting.clear()
        running, self._running = self._running, []
        for build in running:
            self._end(build)

    def _end(self, build: _Build) -> None:
        """Close the standard input of the process: it ends by itself, with its installer. This may take a moment."""
        for stream in (build.process.stdin, build.process.stdout):
            if stream is not None:
                stream.close()
        self._ending.append(build.process)

    def _start_waiting(self) -> None:
        while self._waiting and len(self._running) < MAX_RUNNING:
            name, request = self._waiting.pop(0)
            try:
                # A session of its own: Ctrl-C at a terminal is the agent's business.
                process = subprocess.Popen(
                    module_command(sys.executable, _MODULE),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env={**os.environ, **module_folders.interpreter_variables()},
                    start_new_session=True,
                )
            except OSError as error:
                self._failed.append(BuildResult(name, None, error=f"the build could not be started: {error.strerror}"))
                continue
            for stream in (process.stdin, process.stdout):
                os.set_blocking(_descriptor(stream), False)
            build = _Build(name, process, json.dumps(request_to_plain(request)).encode() + b"\n")
            self._running.append(build)
            _send(build)


def _send(build: _Build) -> None:
    try:
        while build.unsent:
            build.unsent = build.unsent[os.write(_descriptor(build.process.stdin), build.unsent) :]
    except BlockingIOError:
        pass
    except OSError:
        build.unsent = b""  # it has ended: its output says so, too


def _receive(build: _Build) -> bool:
    """Read the output. Returns whether it is complete."""
    try:
        while len(build.output) < MAX_RESULT_BYTES:
            data = os.read(_descriptor(build.process.stdout), 65536)
            if not data:
                return True
            build.output += data
    except BlockingIOError:
        return False
    return True


def _result(build: _Build) -> BuildResult:
    """Lock what the process has prepared, then let it end."""
    try:
        answer: dict[str, Any] = json.loads(build.output)
    except ValueError:
        return BuildResult(build.name, None, error="the process that builds it has ended")
    try:
        if "ready" not in answer:
            damaged = tuple(answer.get("damaged", ()))
            return BuildResult(build.name, None, error=str(answer.get("error")), damaged=damaged)
        prepared = prepared_packages_from(answer["ready"])
        locks: list[Lock] = []
        for path in prepared.locks:
            lock = lock_file(path, shares=True)  # succeeds: the process shares it, too
            if lock is None:
                for each in locks:
                    each.release()
                return BuildResult(build.name, None, error=f"{path} is locked by another process")
            locks.append(lock)
        return BuildResult(build.name, prepared, tuple(locks))
    except OSError as error:
        return BuildResult(build.name, None, error=f"the cache of environments: {error}")


def _descriptor(stream: Any) -> int:
    return int(stream.fileno())
