"""The possible outcomes of each task, compared with its real outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from scaler_client.errors import ClientClosedError, SchedulerLostError
from scaler_client.pickling.functions import Function
from scaler_client.pickling.references import InputFailure, ObjectRef
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Options, Outcome, Payload, TaskAttempt

from .scripts import Script, key_of, measured
from .trace import SimulationError, Trace

STOPPED = b"stopped"

ENDLESS_SECONDS = 30.0
"""No task of this run time ends by itself in a run without faults."""
CHILD_FAILED = b"a child failed"
AGAIN = b"try again"
LOST = b"an input failed with an error of the client"


MAX_STOP_SECONDS = 10.0
"""The longest time from a forced cancel to its answer, without other faults."""


STOP_SECONDS = 1.0
"""The longest time from the end of a time limit to the end of a task that can be stopped, without other faults."""


class FutureClient(Protocol):
    name: str
    has_left: bool
    was_cleared: bool

    def may_give_up(self) -> bool: ...


class MapOfFutures(Protocol):
    futures: list[Future]

    def cancel(self, is_forced: bool) -> None: ...


class Future:
    """A client's view of one task. It replaces TaskFuture, without threads."""

    def __init__(
        self,
        oracle: Oracle,
        client: FutureClient,
        function: Function,
        script: Script,
        options: Options,
        parent: TaskAttempt | None = None,
        payload: Payload = b"",
        of_map: MapOfFutures | None = None,
    ) -> None:
        self.script = script
        self.asked = options
        self.parent = parent
        self.options = None if options == Options() else options
        self.function: Function | None = function
        self.functions = {function}
        """All scripts that it may need."""
        self.client = client
        self.owner = client.name
        self.task_id = -1
        self.outcome: int | None = None
        self.answer = b""
        self.error: BaseException | None = None
        self.has_started = False
        self.cost: tuple[int, int] | None = None
        self.is_cancel_asked = False
        """Whether it was cancelled, or its client was cleared."""
        self.is_cancel_confirmed = False
        self.forced_at: float | None = None
        """When a stop was first requested."""
        self.of_map = of_map
        """The map that calls it; None: it is a task of its own."""
        self.is_dropped = False
        """Whether nobody waits for it any more, because its map has ended."""
        self.graph: list[Future] = []
        """For a graph's task: the tasks of the graph whose results were requested."""
        self.ended: Callable[[], None] | None = None
        self.reference: ObjectRef | None = None
        """What stands for the result in the arguments of other tasks."""
        self.on_result: Callable[[Future], None] | None = None
        """Called when a task is done that other tasks read."""
        self.waiters: list[Callable[[], None]] = []
        self._oracle = oracle
        self._payload: Payload | None = payload

    @property
    def may_be_lost(self) -> bool:
        """Whether its kept result, if it has one, can't be made again."""
        return False

    @property
    def is_done(self) -> bool:
        return self.outcome is not None or self.error is not None or self.is_dropped

    # The methods that a session calls.

    def row(self, _task_id: int) -> tuple[Function, Payload]:
        assert self.function is not None and self._payload is not None
        return self.function, self._payload

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> None:
        self._expect(task_id == self.task_id or self.task_id < 0, f"is answered as task {task_id}")
        self._expect(not self.is_done, f"is resolved twice: {self.outcome}, {outcome}")
        self.outcome = outcome
        self.answer = bytes(answer)
        self._oracle.resolved(self)
        self._end()

    def fail_input(self, task_id: int, cause: InputFailure) -> None:
        self._oracle.trace.count("tasks that failed with an input")
        self.resolve(task_id, cause.outcome, cause.answer)

    def fail(self, _task_id: int, error: BaseException) -> None:
        self._expect(not self.is_done, f"fails after it is done: {error}")
        self.error = error
        self._oracle.failed(self)
        self._end()

    def drop(self) -> None:
        """Note that its map has ended without it."""
        self.is_dropped = True
        self._oracle.trace.count("calls of maps that ended before")
        self._end()

    def start(self) -> None:
        self.has_started = True

    def set_measurements(self, _duration: int, cpu_time: int, peak: int) -> None:
        self._expect(not self.is_done, "is measured when it is done")
        self.cost = cpu_time, peak

    def cancel_answered(self, is_forced: bool) -> None:
        """Called by the session when the answer of a cancel is known."""
        if self.outcome == Outcome.CANCELLED and not self.client.has_left:
            self.is_cancel_confirmed = True
        self._expect(self.is_done or not is_forced, "is not done, and a forced cancel was answered")

    def _end(self) -> None:
        self._payload = None
        if self.reference is not None and self.on_result is not None:
            self.on_result(self)
        if self.ended is not None:
            self.ended()
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            waiter()

    def _expect(self, condition: bool, text: str) -> None:
        if not condition:
            raise SimulationError(f"task {self.script.key} ({self.owner}, id {self.task_id}) {text}")


class Oracle:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.scripts: dict[int, Script] = {}
        self.futures: list[Future] = []
        self.is_calm = True
        """Whether no fault of this run can mislead any peer about another."""
        self.repeats_nothing = False
        """Whether no task may run twice although there are faults."""
        self.has_hogs = False
        """Whether tasks hold the interpreter for seconds. A queued task that is cancelled waits for its worker."""
        self.has_duplicates = False
        """Whether messages may arrive twice in this run."""
        self.has_slow_peers = False
        """Whether a message may take as long as a short time limit."""
        self.has_late_agents = False
        """Whether some agents connect late. Until then nobody renews the lease of a worker whose task hogs it."""
        self.begin_by: dict[int, float] = {}
        """When tasks must have begun at the latest, by the script's key."""
        self.executions: Counter[int] = Counter()
        """Attempts that began, by the script's key."""
        self.retried: Counter[int] = Counter()
        """Attempts that ended with a retryable outcome."""
        self.killed: Counter[int] = Counter()
        """Attempts that were cut off by the end of their process."""
        self.cut_off: Counter[int] = Counter()
        """Attempts that were suspended when their process ended, or taken from a worker that did not answer."""
        self.task_retries = 0
        """The retries of tasks that ask for no number."""
        self.begun: Counter[tuple[int, int]] = Counter()
        """Attempts that began, by client and id."""
        self.ended: Counter[tuple[int, int]] = Counter()
        """Those that did not end with a result, by client and id."""
        self.struck: Counter[tuple[int, int]] = Counter()
        """Those of them that were suspended for a while when their process died: each counts as a failed attempt."""
        self.lost: Counter[int] = Counter()
        """Attempts that ended without an input."""
        self.stored: Counter[int] = Counter()
        """Attempts that wrote a file of their result."""
        self.by_name: dict[tuple[int, int], Future] = {}
        """Futures by client and id."""
        self._rows: dict[tuple[int, int], dict[int, Future]] = {}
        """By client and id of a row of a map: the futures of its calls, by their scripts' keys."""

    def add(self, script: Script) -> Script:
        for each in script.all():
            self.scripts[each.key] = each
        return script

    def submitted(self, client: int, future: Future, is_asked: bool = True) -> None:
        """Note a submitted task. `is_asked`: whether its client gets its outcome."""
        for member in range(max(1, future.asked.gang_size)):
            self.by_name[client, future.task_id + member] = future
        if is_asked:
            self.futures.append(future)
            self.trace.count("tasks")
        else:
            self.trace.count("tasks within graphs")

    def row_submitted(self, name: tuple[int, int], futures: list[Future]) -> None:
        """Note a submitted row of a map."""
        self._rows[name] = {future.script.key: future for future in futures}

    # ----------------------------------------------------------------------------------------------------- executions

    def taken(self, name: tuple[int, int]) -> None:
        """Note that the scheduler takes this task from a worker that does not answer. Its state on this worker does not
        matter."""
        future = self.by_name.get(name)
        if future is not None:
            is_begun = self.begun[name] > self.ended[name]
            if self.is_calm and not self.has_duplicates and not self.has_late_agents:
                self._expect(not is_begun, f"task {future.script.key} is taken from a worker that has begun it")
            self.ended[name] += 1  # its worker may begin it before it reads that
            self.cut_off[future.script.key] += 1
        for key in self._rows.get(name, ()):
            self.cut_off[key] += 1

    def check_waits(self) -> None:
        """Check that no task waits for longer than the bound of its wait."""
        for key, at in self.begin_by.items():
            self._expect(at >= self.trace.now, f"task {key} has not begun within the bound of its wait")

    def began(self, worker: str, name: TaskAttempt, payload: bytes) -> Script:
        """Note that a worker begins a task. Returns the task's script."""
        script = self.scripts[key_of(payload)]
        self._expect(bytes(payload) == script.payload(), f"task {script.key} has the bytes of another task")
        future = self.by_name.get(name[:2]) or self._rows.get(name[:2], {}).get(script.key)
        self._expect(
            future is not None and future.script is script, f"task {script.key} runs as {name}, a name of no task"
        )
        assert future is not None
        if self.is_calm and not self.has_duplicates and not future.asked.depth:
            self._expect(not future.is_cancel_confirmed, f"task {script.key} runs after its cancel was confirmed")
        is_once = self.is_calm or self.repeats_nothing
        if is_once and not self.has_duplicates and future.parent is None and not script.options.gang_size:
            key = script.key
            cut = self.killed[key] + self.retried[key] + self.cut_off[key] + self.lost[key]
            self._expect(self.executions[key] <= cut, f"task {key} runs once more, and was not cut off before")
        if self.is_calm and not self.has_duplicates and future.of_map is None and not script.options.gang_size:
            self._check_repeat(name[:2], future)
        self.begun[name[:2]] += 1
        if script.key in self.begin_by:
            left = self.begin_by.pop(script.key) - self.trace.now
            self._expect(left >= 0, f"task {script.key} begins {-left:g} s later than the bound of its wait")
            self.trace.count("bounded waits")
        self.executions[script.key] += 1
        self.trace.count("executions")
        if self.executions[script.key] > 1:
            self.trace.count("executions repeated")
        self.trace.note(worker, "begins task", str(script.key), name)
        return script

    def _check_repeat(self, name: tuple[int, int], future: Future) -> None:
        """Check that a task, at any depth, begins again only after an attempt that has ended, and that suspended tasks
        whose process died have retries left."""
        key = future.script.key
        self._expect(self.begun[name] <= self.ended[name], f"task {key} runs once more, and was not cut off before")
        retries = self.task_retries if future.asked.retries < 0 else future.asked.retries
        self._expect(self.struck[name] <= retries, f"task {key} runs after {self.struck[name]} deaths of its process")

    # ------------------------------------------------------------------------------------------------------- outcomes

    def resolved(self, future: Future) -> None:
        script, outcome = future.script, future.outcome
        assert outcome is not None
        # A hello that comes twice makes the scheduler send tasks again that the worker has got: it does not know the
        # number of the attempt that runs.
        if self.is_calm and not (self.has_duplicates or self.has_hogs) and future.forced_at is not None:
            seconds = self.trace.now - future.forced_at
            self._expect(seconds < MAX_STOP_SECONDS, f"task {script.key} is stopped after {seconds:g} s")
        self.trace.note(future.owner, "task", str(script.key), "resolves:", Outcome(outcome), future.answer)
        self.trace.count(f"resolved: {Outcome(outcome).name.lower()}")
        is_own = outcome == Outcome.VALUE or (outcome == Outcome.EXCEPTION and len(script.needed) == 1)
        # A repeated notice that a result is kept has no cost in it.
        if future.asked.profiling and future.of_map is None and is_own and (self.is_calm or not future.graph):
            self._expect(future.cost == measured(script), f"task {script.key} is measured as {future.cost}")
        self._checks[outcome](self, future)

    def failed(self, future: Future) -> None:
        self.trace.note(future.owner, "task", str(future.script.key), "fails:", str(future.error))
        self.trace.count(f"failed: {type(future.error).__name__}")
        is_lost = isinstance(future.error, SchedulerLostError) and future.client.may_give_up()
        is_closed = isinstance(future.error, ClientClosedError) and future.is_cancel_asked
        self._wrong_if(not is_lost and not is_closed, future)

    def _value(self, future: Future) -> None:
        script = future.script
        raises = any(each.raises for each in script.needed)
        answer = script.gang_answer() if script.options.gang_size else script.answer()
        self._wrong_if(future.answer != answer or raises, future)
        limit = future.asked.timeout_milliseconds / 1000
        can_stop = self.is_calm and not script.ignores_stop and not script.hogs
        self._wrong_if(can_stop and 0 < limit < script.seconds - STOP_SECONDS, future)
        self._wrong_if(self.retried[script.key] < script.retryable or self.killed[script.key] < script.kills, future)
        self._expect(
            future.parent is None or script.seconds < ENDLESS_SECONDS, f"child {script.key} has outlived its parent"
        )

    def _exception(self, future: Future) -> None:
        is_lost = future.answer == LOST and any(each.error is not None for each in future.graph)
        may_end = any(self._may_end_with(script, future.answer) for script in future.script.needed)
        self._wrong_if(not may_end and not is_lost, future)

    def _may_end_with(self, script: Script, error: bytes) -> bool:
        if error == AGAIN:
            return self.retried[script.key] > 0
        if error == CHILD_FAILED:
            return bool(script.children)
        return script.raises and error == script.error()

    def _worker_died(self, future: Future) -> None:
        has_died = any(
            self.killed[script.key] + self.retried[script.key]
            or (self.has_late_agents and script.hogs)
            or self.cut_off[script.key]
            for script in future.script.needed
        )
        self._wrong_if(self.is_calm and not has_died, future)
        self._wrong_if(b"the worker died in " not in future.answer, future)

    def _cancelled(self, future: Future) -> None:
        needed = {script.key for script in future.script.needed}
        is_asked = any(each.is_cancel_asked for each in future.graph if each.script.key in needed)
        self._wrong_if(not future.is_cancel_asked and not is_asked, future)

    def _timed_out(self, future: Future) -> None:
        limits = [each.options.timeout_milliseconds / 1000 for each in future.script.needed]
        limit = min(filter(None, limits), default=0)
        # The run time of a task that waits, for children, inputs or the members of its gang, is not bounded.
        is_long = any(
            each.children or each.inputs or each.meets or each.seconds >= limit / 2 for each in future.script.needed
        )
        may_be_long = is_long or self.has_slow_peers
        self._wrong_if(not limit or (self.is_calm and not may_be_long), future)

    def _kept(self, future: Future) -> None:
        script = future.script
        self._wrong_if(int.from_bytes(future.answer[:8], "little") != len(script.answer()), future)
        self._wrong_if(any(each.raises for each in script.needed), future)
        self._wrong_if(self.retried[script.key] < script.retryable or self.killed[script.key] < script.kills, future)

    def _input_lost(self, future: Future) -> None:
        """A sent object is never lost, but its user may have forgotten it. A kept result may need such an object."""
        if future.of_map is not None and future.client.was_cleared:
            return  # its worker died, and the calls of its row are sent again: they read what was freed meanwhile
        reads = any(script.inputs for script in future.script.needed)
        may_be_lost = future.client.was_cleared or any(each.may_be_lost for each in future.graph)
        self._wrong_if(not reads or self.is_calm or not may_be_lost, future)

    def _never(self, future: Future) -> None:
        self._wrong_if(True, future)

    _checks: dict[int, Callable[[Oracle, Future], None]] = {
        Outcome.VALUE: _value,
        Outcome.EXCEPTION: _exception,
        Outcome.FUNCTION_FAILED: _never,
        Outcome.RESULT_FAILED: _never,
        Outcome.RETRYABLE: _never,
        Outcome.WORKER_DIED: _worker_died,
        Outcome.CANCELLED: _cancelled,
        Outcome.TIMED_OUT: _timed_out,
        Outcome.KEPT: _kept,
        Outcome.INPUT_LOST: _input_lost,
    }

    def open_futures(self) -> list[Future]:
        return [future for future in self.futures if not future.is_done]

    def _wrong_if(self, is_wrong: bool, future: Future) -> None:
        if not is_wrong:
            return
        came = Outcome(future.outcome).name if future.outcome is not None else repr(future.error)
        raise SimulationError(
            f"task {future.script.key} ({future.owner}, id {future.task_id}) can't end like that: {came} "
            f"{future.answer[:200]!r}; {future.script}, executed {self.executions[future.script.key]} times, "
            f"killed {self.killed[future.script.key]}, retried {self.retried[future.script.key]}"
        )

    def _expect(self, condition: bool, text: str) -> None:
        if not condition:
            raise SimulationError(text)


Message = messages.Message
__all__ = ["AGAIN", "CHILD_FAILED", "STOPPED", "Any", "Future", "Oracle"]
