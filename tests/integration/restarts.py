"""A scheduler that is killed and restarted at the same address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.commands import SchedulerCommand

OFTEN = ("--heartbeat-interval-seconds", "0.2")
"""Options of clusters that must notice a restart soon."""


class Restarts:
    """A scheduler at one address, in several processes one after the other."""

    def __init__(self, folder: Path, options: tuple[str, ...]) -> None:
        self._folder = folder
        self._options = options
        self._commands: list[SchedulerCommand] = []
        self.start("tcp://127.0.0.1:*")

    @property
    def now(self) -> SchedulerCommand:
        return self._commands[-1]

    def start(self, address: str) -> None:
        folder = self._folder / str(len(self._commands))
        folder.mkdir()
        self._commands.append(SchedulerCommand(folder, *self._options, address=address))

    def kill(self) -> None:
        self.now.process.kill()
        self.now.process.wait()

    def stop(self) -> None:
        assert self.now.stop() == 0

    def end(self) -> None:
        for command in self._commands:
            command.end()


@contextmanager
def restarts(folder: Path, *options: str) -> Iterator[Restarts]:
    started = Restarts(folder, options)
    try:
        yield started
    finally:
        started.end()
