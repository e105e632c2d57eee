"""What a simulated task does, and what must come of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scaler_client.messages import Options

FUNCTIONS = 4
"""Kinds of functions that tasks are of; each client ships its own copies of their bytes, which are equal."""


@dataclass(frozen=True)
class Script:
    """A task of the simulation. Its payload names it; everything else about it is known here."""

    key: int
    """No other script of the run has it."""
    function: int = 0
    seconds: float = 0.001
    """Of run time, children's not counted."""
    raises: bool = False
    retryable: int = 0
    """So many executions end with what is worth another attempt."""
    kills: int = 0
    """So many executions kill their worker's process."""
    grows: bool = False
    """Takes more memory than a worker may."""
    hogs: bool = False
    """Holds the interpreter's lock: nothing else of its process gets a turn."""
    ignores_stop: bool = False
    stop_seconds: float = 0.0
    """How long it takes to end once it is stopped."""
    children: tuple[Script, ...] = ()
    one_by_one: bool = False
    """Waits for each child before it submits the next."""
    payload_bytes: int = 0
    result_bytes: int = 0
    options: Options = Options()

    def payload(self) -> bytes:
        return _filled(b"run %d " % self.key, self.payload_bytes)

    def answer(self) -> bytes:
        """What it returns when nothing goes wrong."""
        return _filled(b"%d gives %d " % (self.key, self.value()), self.result_bytes)

    def error(self) -> bytes:
        return b"%d raises" % self.key

    def value(self) -> int:
        return self.key + sum(child.value() for child in self.children)

    def all(self) -> Iterator[Script]:
        yield self
        for child in self.children:
            yield from child.all()


def _filled(text: bytes, size: int) -> bytes:
    """The text again and again, so that bytes that belong to another task show."""
    return text if len(text) >= size else (text * (size // len(text) + 1))[:size]


def key_of(payload: bytes) -> int:
    return int(payload[4:].split(b" ", 1)[0])


def value_of(answer: bytes) -> int:
    """The number in what a task returned."""
    return int(answer.split(b" ", 3)[2])


def function_bytes(number: int) -> bytes:
    return b"the code of function %d" % number


def measured(script: Script) -> tuple[int, int]:
    """CPU time and peak of a profiled task, as a worker would have measured them."""
    return script.key * 1000 + 1, script.key + 1
