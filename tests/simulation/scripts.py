"""The actions of a simulated task, and its right outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from struct import pack

from scaler_client.protocol.messages import Options

FUNCTIONS = 4
"""Kinds of functions. Each client sends its own copy of their bytes, and the copies are equal."""


_MODULUS = (1 << 61) - 1


@dataclass(frozen=True)
class SentObject:
    """An object that a client sends."""

    key: int
    """A number that no other object and no script of the run has."""
    sizes: tuple[int, ...] = (0,)
    """Sizes of its frames, at least."""

    @property
    def value(self) -> int:
        return self.key

    @cached_property
    def frames(self) -> tuple[bytes, ...]:
        """The frames that tasks read."""
        return tuple(
            _filled(b"%d holds %d at %d " % (self.key, self.key, at), size) for at, size in enumerate(self.sizes)
        )


@dataclass(frozen=True)
class Script:
    """A simulated task. Its payload has only its name; this object has everything else."""

    key: int
    """A number that no other script of the run has."""
    function: int = 0
    seconds: float = 0.001
    """Run time, without that of children."""
    raises: bool = False
    retryable: int = 0
    """So many executions end with a retryable outcome."""
    kills: int = 0
    """So many executions kill their worker's process."""
    grows: bool = False
    """Whether it takes more memory than a worker may."""
    hogs: bool = False
    """Whether it holds the GIL, so that no other thread of its process runs."""
    ignores_stop: bool = False
    stop_seconds: float = 0.0
    """How long it takes to end once it is stopped."""
    children: tuple[Script, ...] = ()
    meets: int = 0
    """How many values the members of a gang exchange."""
    odd_rank: int = -1
    """The only member of a gang that raises, kills or ends with a retryable outcome; -1: all do."""
    leaving_rank: int = -1
    """The member of a gang that ends without the last exchange of values; -1: none does."""
    one_by_one: bool = False
    """Whether it waits for each child before it submits the next."""
    abandons: bool = False
    """Whether it ends without waiting for its children."""
    payload_bytes: int = 0
    result_bytes: int = 0
    options: Options = Options()
    inputs: tuple[Source, ...] = field(default=(), repr=False)
    """Its inputs: sent objects, and scripts whose results are kept. Its value is made of their values."""

    def payload(self) -> bytes:
        return _filled(b"run %d " % self.key, self.payload_bytes)

    def answer(self) -> bytes:
        """What it returns without faults."""
        return self.frames[0]

    def answer_to(self, values: Sequence[int]) -> bytes:
        """What it returns when it has read these values."""
        value = self.key + sum(child.value for child in self.children)
        for position, each in enumerate(values):
            value = (value + (2 * position + 3) * each) % _MODULUS
        return _filled(b"%d gives %d " % (self.key, value), self.result_bytes)

    def gang_answer(self) -> bytes:
        """The results of all members of a gang, without faults."""
        size, answer = self.options.gang_size, self.answer()
        return pack(f"<{size}I", *[len(answer)] * size) + answer * size

    def error(self) -> bytes:
        return b"%d raises" % self.key

    @cached_property
    def frames(self) -> tuple[bytes, ...]:
        """The frames of its result that tasks read."""
        return (self.answer_to([each.value for each in self.inputs]),)

    @cached_property
    def value(self) -> int:
        return value_of(self.frames[0])

    @cached_property
    def sent_objects(self) -> tuple[SentObject, ...]:
        return tuple(each for each in self.inputs if isinstance(each, SentObject))

    @cached_property
    def needed(self) -> tuple[Script, ...]:
        """This script, and all scripts without which it can't run."""
        found = {self.key: self}
        for each in self.inputs:
            if isinstance(each, Script):
                found.update((script.key, script) for script in each.needed)
        return tuple(found.values())

    def all(self) -> Iterator[Script]:
        yield self
        for child in self.children:
            yield from child.all()


Source = SentObject | Script


def read_results(scripts: Iterable[Script]) -> list[int]:
    """Return the keys of the tasks that these tasks read and that are not among them."""
    scripts = list(scripts)
    own = {script.key for script in scripts}
    read = [each.key for script in scripts for each in script.inputs if isinstance(each, Script)]
    return [key for key in dict.fromkeys(read) if key not in own]


def _filled(text: bytes, size: int) -> bytes:
    """Repeat the text, so that bytes of another task are detected."""
    return text if len(text) >= size else (text * (size // len(text) + 1))[:size]


def key_of(payload: bytes) -> int:
    return int(payload[4:].split(b" ", 1)[0])


def value_of(answer: bytes) -> int:
    """Return the number in a task's result."""
    return int(answer.split(b" ", 3)[2])


def function_bytes(number: int, environment: str = "") -> bytes:
    """The bytes of a function. They name its environment, so that a worker of another one finds the fault."""
    return b"the code of function %d %s" % (number, environment.encode())


def measured(script: Script) -> tuple[int, int]:
    """CPU time and peak of a profiled task, as a worker would measure them."""
    return script.key * 1000 + 1, script.key + 1
