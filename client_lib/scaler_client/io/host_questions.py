"""Asks the scheduler which versions the hosts have, for the texts of errors and for `scaler_client doctor`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..pickling.package_versions import OWN, PYTHON, distribution_of, normalized, parse_installed
from ..protocol.messages import HeartbeatEcho

ANSWER_SECONDS = 2.0
"""How long to wait for an answer. The caller is about to raise an error, so it can wait that long."""

FRESH_SECONDS = 10.0
"""How long an answer, or the lack of one, is used again."""

HostAnswer = Callable[["HeartbeatEcho | None"], None]
"""Takes the answer; None: there will be none."""


@dataclass(frozen=True)
class HostVersions:
    """What the scheduler has told about one host agent."""

    host: str
    language: str
    """The interpreter of the agent, for example `python 3.11.7`."""
    library: str
    """The version of scaler_worker."""
    packages: dict[str, str]
    """The installed packages: versions by normalized name. Empty: not known."""
    clock_seconds: float
    """The Unix time of the host's clock; 0: not known."""
    heard_unix_seconds: float
    """The Unix time of this process's clock when the answer came."""
    scheduler_clock_seconds: float = 0.0
    """The Unix time of the scheduler's clock; 0: not known."""


class HostQuestions:
    """Asks about the hosts. Any thread may use it.

    Args:
        ask: sends the question. Returns False if no answer can come, or if its caller must not wait.
    """

    def __init__(self, ask: Callable[[HostAnswer], bool]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._answer: list[HostVersions] | None = None
        self._asked_at = float("-inf")

    def get(self, seconds: float = ANSWER_SECONDS) -> list[HostVersions] | None:
        """Return what the scheduler tells about the hosts; None: it has not answered.

        Args:
            seconds: how long to wait for the answer.
        """
        if not self._lock.acquire(timeout=seconds):  # another thread waits longer, or held it when this process forked
            return self._answer
        try:
            if time.monotonic() - self._asked_at >= FRESH_SECONDS:
                self._answer = self._request(seconds)
                self._asked_at = time.monotonic()
            return self._answer
        finally:
            self._lock.release()

    def versions(self, names: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
        """Return the hosts' names with their versions of some packages, Python and this library.

        Args:
            names: top-level names of packages. A package that a host does not have under this name is left out.
        """
        return [(host.host, _selected(host, names)) for host in self.get() or ()]

    def _request(self, seconds: float) -> list[HostVersions] | None:
        answered = threading.Event()
        answers: list[list[HostVersions] | None] = []

        def take(echo: HeartbeatEcho | None) -> None:
            answers.append(None if echo is None else _hosts(echo, time.time()))
            answered.set()

        if not self._ask(take) or not answered.wait(seconds):
            return None
        return answers[0]


def _hosts(echo: HeartbeatEcho, now: float) -> list[HostVersions]:
    lists = [parse_installed(text) for text in echo.packages]
    return [
        HostVersions(
            host.name,
            host.language,
            host.version,
            lists[host.packages - 1] if 0 < host.packages <= len(lists) else {},
            host.unix_milliseconds / 1000,
            now,
            echo.unix_milliseconds / 1000,
        )
        for host in echo.hosts
    ]


def _selected(host: HostVersions, names: Sequence[str]) -> dict[str, str]:
    language, _, version = host.language.partition(" ")
    versions = {OWN: host.library}
    if language == "python":
        versions[PYTHON] = version
    for name in names:
        found = host.packages.get(normalized(distribution_of(name) or name))
        if found is not None:
            versions.setdefault(name, found)
    return versions
