"""One execution of a task, as a generator of its steps."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from scaler_client.nested.task_host import TaskStoppedError
from scaler_client.protocol.messages import Outcome, TaskAttempt
from scaler_worker.objects.kept_results import SIZE_BYTES
from scaler_worker.task_rows import Row, attempt_of

from .clock import Clock
from .input_reader import CallInputs, InputLostError, InputReader
from .oracle import AGAIN, CHILD_FAILED, Future, Oracle
from .scripts import Script, value_of
from .threads import Gate
from .trace import SimulationError


class Work:
    """Be busy for this long."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class Wait:
    """Wait for a task of its own."""

    def __init__(self, future: Future) -> None:
        self.future = future


class Meet:
    """Exchange a value with the other members of the gang."""

    def __init__(self, number: int, value: bytes) -> None:
        self.number = number
        self.value = value
        self.values: list[bytes] | None = None
        """The values of all, when they have come."""
        self.ended: int | None = None
        """The rank of a member that has ended without this."""


class Die:
    """Kill the process."""


Steps = Generator[Any, None, tuple[int, bytes]]
Submit = Callable[["Run", Script], Future]
Store = Callable[["Run", bytes], bool]
"""Writes a result to a file. Returns whether there was space for it."""

STORED_SECONDS = 0.0005
"""The time between the file and the answer."""


class Run:
    def __init__(
        self,
        row: Row,
        script: Script,
        inputs: InputReader | CallInputs,
        oracle: Oracle,
        clock: Clock,
        submit: Submit,
        store: Store | None = None,
        write_seconds: float = 0.0,
        earlier: Sequence[int] = (),
        rank: int = -1,
    ) -> None:
        """`store` writes the value to a file of this host; None: the value is answered."""
        self.rank = rank
        """Its rank in its gang; -1: it is in none."""
        self.earlier = earlier
        """The keys of the scripts that have ended in the same row."""
        self.row = row
        self.name: TaskAttempt = attempt_of(row)
        self.script = script
        self.since = clock.now
        self.steps: Steps = self._steps()
        """Each step is a Work, Wait or Die. The generator returns outcome and payload. TaskStoppedError may be thrown
        in."""
        self.suspended_at = 0.0
        """When it was suspended last."""
        self.is_working = False
        self.gate: Gate | None = None
        """Where the thread of the task waits while the task works."""
        self._inputs = inputs
        self._oracle = oracle
        self._clock = clock
        self._submit = submit
        self._store = store
        self._write_seconds = write_seconds

    def _steps(self) -> Steps:
        try:
            return (yield from self._do())
        except TaskStoppedError:
            yield from self._be_busy(self.script.stop_seconds, ignores_stop=True)
            raise

    def _do(self) -> Steps:
        script, oracle = self.script, self._oracle
        try:
            values = yield from self._read()
        except InputLostError as error:
            return Outcome.INPUT_LOST, str(error).encode()
        yield from self._be_busy(script.seconds / 2, script.ignores_stop)
        is_odd = self.rank < 0 or script.odd_rank in (-1, self.rank)
        if is_odd and oracle.killed[script.key] < script.kills:
            yield Die()
        for number in range(self._meetings()):
            yield from self._meet(number)
        futures: list[Future] = []
        for child in script.children:
            futures.append(self._submit(self, child))
            if script.one_by_one and not script.abandons:
                yield from self._await(futures[-1])
        if script.abandons:
            futures = []
        for future in futures:
            yield from self._await(future)
        yield from self._be_busy(script.seconds / 2, script.ignores_stop)
        if any(future.outcome != Outcome.VALUE for future in futures):
            return Outcome.EXCEPTION, CHILD_FAILED
        if script.raises and is_odd:
            return Outcome.EXCEPTION, script.error()
        if is_odd and oracle.retried[script.key] < script.retryable:
            oracle.retried[script.key] += 1
            oracle.ended[self.name[:2]] += 1
            return Outcome.RETRYABLE, AGAIN
        answer = script.answer_to(values)
        if self._store is not None:
            # A stop or a kill may come before the file is written, and between the file and the answer.
            yield from self._be_busy(self._write_seconds, script.ignores_stop)
            if self._store(self, answer):
                yield from self._be_busy(STORED_SECONDS, script.ignores_stop)
                return Outcome.STORED, len(answer).to_bytes(SIZE_BYTES, "little")
        return Outcome.VALUE, answer

    def _meetings(self) -> int:
        """How many values it exchanges."""
        if self.rank < 0:
            return 0
        return self.script.meets - (self.rank == self.script.leaving_rank)

    def _meet(self, number: int) -> Generator[Any, None, None]:
        """Exchange a value with the other members of the gang. If one has ended without it, go on without values."""
        meeting = Meet(number, b"%d.%d of %d in %d" % (self.name[2], number, self.rank, self.script.key))
        while meeting.values is None and meeting.ended is None:
            try:
                yield meeting
            except TaskStoppedError:
                if not self.script.ignores_stop:
                    raise
                return
        is_last = number == self.script.meets - 1
        if meeting.ended != (self.script.leaving_rank if is_last and self.script.leaving_rank >= 0 else None):
            raise SimulationError(f"member {self.rank} of task {self.script.key} is told of member {meeting.ended}")
        if meeting.ended is not None:
            return
        size = self.script.options.gang_size
        expected = [b"%d.%d of %d in %d" % (self.name[2], number, rank, self.script.key) for rank in range(size)]
        if meeting.values != expected:
            raise SimulationError(f"member {self.rank} of task {self.script.key} gets {meeting.values}, not {expected}")

    def _read(self) -> Generator[Any, None, list[int]]:
        """Read the values of all inputs."""
        values = []
        for position, source in enumerate(self.script.inputs):
            while (frames := self._inputs.read(position)) is None:
                yield Work(self._inputs.pause_seconds)
            if tuple(map(bytes, frames)) != source.frames:
                raise SimulationError(f"task {self.script.key} reads {bytes(frames[0][:40])!r} for {source.key}")
            values.append(value_of(bytes(frames[0])))
        return values

    def _be_busy(self, seconds: float, ignores_stop: bool) -> Generator[Any, None, None]:
        end = self._clock.now + seconds
        while self._clock.now < end:
            try:
                yield Work(end - self._clock.now)
            except TaskStoppedError:
                if not ignores_stop:
                    raise

    def _await(self, future: Future) -> Generator[Any, None, None]:
        while not future.is_done:
            try:
                yield Wait(future)
            except TaskStoppedError:
                if not self.script.ignores_stop:
                    raise
