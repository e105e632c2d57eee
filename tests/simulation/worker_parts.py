"""The simulated parts of a worker: its socket, the execution of its tasks, and the errors of stops."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from traceback import StackSummary
from typing import TYPE_CHECKING, Any

from scaler_client.nested.task_host import TaskStoppedError
from scaler_client.pickling.call_rows import ROW_LIMIT_NS, pack_answer, row_calls
from scaler_client.protocol.messages import FileResult, Hello, Message, Outcome, TaskAttempt
from scaler_client.protocol.wire import encode
from scaler_worker.objects.kept_results import file_of
from scaler_worker.task_rows import Row, attempt_of, booking_number, booking_of
from scaler_worker.worker.connection import Connection
from scaler_worker.worker.executor import ROW_LIMIT_BYTES, thread_row
from scaler_worker.worker.interruption import Interruption
from scaler_worker.worker.run_token import RunToken, Wakeup
from scaler_worker.worker.session import WorkerSession

from .execution import Die, Meet, Run, Work
from .input_reader import CallInputs, InputReader
from .network import Frames
from .oracle import STOPPED, Future
from .scripts import Script, function_bytes, key_of, measured
from .threads import Gate, SimulatedThreads
from .trace import SimulationError, Trace

if TYPE_CHECKING:
    from .worker_host import WorkerHost

EARLY_ONE_IN = 7
"""A row ends behind one of this many calls, without a reason."""

SMALL_BYTES = 20
"""If the scheduler has little memory left, results of at least this size may stay on their hosts."""

DAMAGED_ONE_IN = 4
"""One of this many stopped tasks damages its process."""


class TracedSession(WorkerSession):
    def __init__(self, trace: Trace, name: str, hello: Hello, heartbeat_seconds: float, now: float) -> None:
        super().__init__(hello, heartbeat_seconds, now)
        self._trace = trace
        self._trace_name = name

    def handle(self, message: Message) -> None:
        self._trace.note(self._trace_name, "gets", message)
        super().handle(message)


class SimulatedWakeup(Wakeup):
    def __init__(self) -> None:
        self.is_set = False
        self.gate: Gate | None = None
        """Where the running thread waits for a message."""

    def set(self) -> None:
        self.is_set = True
        if self.gate is not None:
            self.gate.open()


class _Lock:
    """The connection's lock. It is an error if two threads of a worker want it while one of them waits."""

    def __init__(self) -> None:
        self._is_held = False

    def __enter__(self) -> None:
        if self._is_held:
            raise SimulationError("two threads of a worker want the connection's lock")
        self._is_held = True

    def __exit__(self, *_: object) -> None:
        self._is_held = False


class SimulatedConnection(Connection):
    def __init__(self, worker: WorkerHost, wakeup: SimulatedWakeup) -> None:
        world = worker.world
        super().__init__(worker.session, worker.interruption, lambda: world.clock.now)
        self.lock = _Lock()  # type: ignore[assignment]
        self._worker = worker
        self._wakeup = wakeup
        self._inbox: deque[Frames] = deque()
        self._is_new = False
        self.link = world.network.open(worker.name, self._arrived, worker.agent.latency_factor)
        self.link.reconnected = self._reconnected

    @property
    def has_messages(self) -> bool:
        return bool(self._inbox)

    def interrupt(self) -> None:
        """Does nothing: here a wakeup ends every wait."""

    def await_signal(self, seconds: float) -> None:
        raise NotImplementedError("the simulation calls LongTaskWatcher.look instead")

    def end_signal_wait(self) -> None:
        """Does nothing: no thread waits for signals."""

    def _send(self, message: Message) -> None:
        world = self._worker.world
        world.trace.note(self._worker.name, "sends", message)
        copies = world.network.copies(type(message).__name__)
        self.link.send([bytes(frame) for frame in encode(message)], copies)

    def _receive_now(self) -> Any:
        return self._inbox.popleft() if self._inbox else None

    def _receive(self) -> bool:
        self._wait()
        if not self._inbox:
            return False
        self._handle(list(self._inbox.popleft()))
        return True

    def _poll(self) -> None:
        self._wait()
        self.look_for_scheduler()
        self.exchange()

    def _has_reconnected(self) -> bool:
        is_new, self._is_new = self._is_new, False
        return is_new

    def _close(self) -> None:
        self.send()

    def _wait(self) -> None:
        """Wait for a message, a wakeup, a new connection or the next heartbeat."""
        if self._inbox or self._wakeup.is_set or self._is_new:
            return
        gate = self._wakeup.gate = Gate(self._worker.threads)
        gate.wait(max(0.0001, self._session.next_deadline - self.now()))
        self._wakeup.gate = None

    def _arrived(self, frames: Frames) -> None:
        self._inbox.append(frames)
        self._wake()

    def _reconnected(self) -> None:
        self._is_new = True
        self._wake()

    def _wake(self) -> None:
        if self._wakeup.gate is not None:
            self._wakeup.gate.open()
        else:
            self._worker.watch()


class SimulatedInterruption(Interruption):
    """Raises the error in a task while it works or when it is resumed."""

    def __init__(self, worker: WorkerHost, token: RunToken, wakeup: Wakeup) -> None:
        super().__init__(worker.session, token, wakeup)
        self._worker = worker
        self.is_raised_unsafely = False
        """Whether the error has damaged the process."""

    def take_due(self, name: TaskAttempt) -> TaskStoppedError | None:
        """The error to raise in this running task; None if there is none. Returns each error once."""
        if name not in self._due:
            return None
        self._due.discard(name)
        return TaskStoppedError()

    def clear_exception(self) -> None:
        """Does nothing: an error is never left behind."""

    def _interrupt(self, thread: int) -> None:
        run = self._worker.execution.running
        if run is not None and run.gate is not None:
            run.gate.open()

    def _has_damaged_process(self) -> bool:
        is_damaged, self.is_raised_unsafely = self.is_raised_unsafely, False
        return is_damaged

    def _is_in_import(self) -> bool:
        return False

    def stop_children(self, name: TaskAttempt) -> None:
        self._worker.stop_children(name)


class SimulatedProfile:
    """The made-up cost of one task."""

    def __init__(self) -> None:
        self.script: Script | None = None

    def sample(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def cost(self) -> tuple[int, int]:
        assert self.script is not None
        return measured(self.script)


class _Latch:
    """Released when a child task has ended."""

    def __init__(self, threads: SimulatedThreads, future: Future) -> None:
        self._gate = Gate(threads)
        self._gate.is_open = future.is_done
        future.waiters.append(self._gate.open)

    def acquire(self, timeout: float = -1) -> bool:
        return self._gate.wait(None if timeout < 0 else timeout)


class _Opener:
    """Released when the values of a gang have come."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def release(self) -> None:
        self._gate.open()


class SimulatedExecution:
    """Executes scripts, as scaler_worker.worker.runner.Execution."""

    def __init__(self, worker: WorkerHost) -> None:
        self._worker = worker
        self.running: Run | None = None
        self.suspended: dict[TaskAttempt, Run] = {}
        self._inputs: InputReader | None = None
        """The inputs of the task that begins next."""
        self._profile: SimulatedProfile | None = None
        self._least_bytes = 0
        """The least size of a result that the task that begins next writes to a file."""

    def runs(self) -> list[Run]:
        """The tasks that have begun and not ended."""
        return [*self.suspended.values()] if self.running is None else [*self.suspended.values(), self.running]

    def inputs(self, client: int, inputs: Any) -> Any:
        worker = self._worker
        self._inputs = InputReader(client, inputs, worker.session.objects, worker.agent.files, worker.world.clock)
        return self._inputs

    def store_for(self, _name: TaskAttempt, with_small: bool) -> Any:
        self._least_bytes = SMALL_BYTES if with_small else self._worker.world.plan.kept_bytes
        return self._store

    def discard_result(self, name: TaskAttempt) -> None:
        self._worker.agent.files.remove((file_of(name),))

    @property
    def least_file_bytes(self) -> int:
        return 0 if self._worker.world.plan.has_result_files else sys.maxsize

    def store_large(self, name: TaskAttempt, payload: Any, may_be_file: bool) -> tuple[int, bytes]:
        worker = self._worker
        files = worker.world.client_files.get(name[0])
        file = file_of(name)[1]
        if may_be_file and files is not None and files.write_result(file, bytes(payload), worker.agent.name):
            return Outcome.FILE, FileResult(file, len(payload)).pack()
        return Outcome.VALUE, payload

    def new_profile(self) -> SimulatedProfile:
        self._profile = SimulatedProfile()
        return self._profile

    def forget(self, number: int) -> None: ...

    def name_of(self, number: int) -> str:
        return f"function {number}"

    def stopped(self, error: TaskStoppedError) -> tuple[int, bytes]:
        raise SimulationError("a task was stopped outside of what it does itself") from error

    def ignored_stop(self, stack: StackSummary) -> tuple[int, bytes, str, str]:
        self._worker.world.trace.count("stops that were ignored")
        return Outcome.EXCEPTION, STOPPED, "its stop was ignored", "".join(stack.format())

    def run(self, number: int, payload: Any, store: Any = None, load: Any = None) -> tuple[int, bytes]:
        row = self._worker.session.running
        assert row is not None
        inputs, self._inputs = self._inputs, None
        outcome, answer = self._call(row, number, payload, inputs or self._no_inputs(row), store)
        self._worker.answered.append((key_of(bytes(payload)), attempt_of(row)[:2]))
        return outcome, answer

    def run_calls(
        self, number: int, payload: Any, now_ns: Callable[[], int], load: Any = None
    ) -> tuple[int, bytes, int]:
        """Run the calls of a row as `Executor.run_calls` does. Some rows end early without a reason."""
        row = self._worker.session.running
        assert row is not None
        oracle, trace = self._worker.world.oracle, self._worker.world.trace
        inputs, self._inputs = self._inputs, None
        inputs = inputs or self._no_inputs(row)
        begun = now_ns()
        answers: list[bytes] = []
        keys: list[int] = []
        outcome, failure = 0, b""
        _, count, calls, thread_row.source = row_calls(payload)
        for call, positions in calls:
            outcome, answer = self._call(row, number, call, CallInputs(inputs, positions), None, keys)
            keys.append(key_of(call))
            if outcome:
                failure = answer
                break
            answers.append(answer)
            is_long = now_ns() > begun + ROW_LIMIT_NS or sum(map(len, answers)) > ROW_LIMIT_BYTES
            if is_long or keys[-1] % EARLY_ONE_IN == 0:
                break
        if len(keys) < count:
            trace.count("rows that ended early")
        if outcome == Outcome.INPUT_LOST:
            oracle.cut_off.update(keys)
            return outcome, failure, 1
        self._worker.answered.extend((key, attempt_of(row)[:2]) for key in keys)
        return outcome, pack_answer([], answers, now_ns() - begun, failure), len(keys)

    def _no_inputs(self, row: Row) -> InputReader:
        worker = self._worker
        return InputReader(row[0], (), worker.session.objects, worker.agent.files, worker.world.clock)

    def _call(
        self, row: Row, number: int, payload: Any, inputs: Any, store: Any, earlier: Sequence[int] = ()
    ) -> tuple[int, bytes]:
        """Run a script. `earlier`: the keys of the scripts that have ended in the same row."""
        worker, world = self._worker, self._worker.world
        booking = booking_number(booking_of(row))
        if booking and any(
            booking_number(booking_of(other)) == booking for other in self._worker.session.suspended.values()
        ):
            raise SimulationError(f"task {attempt_of(row)} begins with the resources of a suspended task")
        script = world.oracle.began(worker.name, attempt_of(row), bytes(payload))
        if world.is_worked_on(script.key):
            world.trace.count("executions beside another")
        function = worker.session.functions.get(number)
        if function is None or bytes(function.payload) != function_bytes(script.function, worker.environment):
            raise SimulationError(f"{worker.name} lacks the function of task {script.key}, {number}: {function}")
        if store is not None and self._least_bytes <= len(script.answer()):
            moment = "a result is made" if world.oracle.executions[script.key] < 2 else "a result is made again"
            world.reached(moment, worker.agent)
        else:
            store = None
        profile, self._profile = self._profile, None
        if profile is not None:
            profile.script = script
        seconds = world.plan.write_seconds
        place = worker.session.gangs.get(attempt_of(row))
        if (place is None) == (script.options.gang_size > 0):
            raise SimulationError(f"{worker.name} gets task {script.key} of a gang as {place}")
        rank = -1 if place is None else place.rank
        run = Run(row, script, inputs, world.oracle, world.clock, worker.submit, store, seconds, earlier, rank)
        self.running = run
        try:
            outcome, answer = self._execute(run)
        except TaskStoppedError:
            world.trace.count("tasks stopped")
            outcome, answer = Outcome.EXCEPTION, STOPPED
            # Some stops hit at an unsafe point. No draw decides it, because a draw would change all seeds.
            if script.key % DAMAGED_ONE_IN == 0:
                world.trace.count("workers damaged by a stop")
                worker.interruption.is_raised_unsafely = True
        self.running = None
        worker.session.end_member(run.name)
        world.trace.note(worker.name, "ends task", str(script.key), Outcome(outcome))
        if outcome == Outcome.INPUT_LOST:
            world.oracle.lost[script.key] += 1
            world.oracle.ended[run.name[:2]] += 1
        return int(outcome), answer

    def _execute(self, run: Run) -> tuple[int, bytes]:
        worker = self._worker
        error: TaskStoppedError | None = None
        while True:
            try:
                step = next(run.steps) if error is None else run.steps.throw(error)
            except StopIteration as end:
                outcome: tuple[int, bytes] = end.value
                return outcome
            error = None
            if isinstance(step, Work):
                error = self._work(run, step.seconds)
            elif isinstance(step, Meet):
                error = self._meet(run, step)
            elif isinstance(step, Die):
                worker.world.trace.note(worker.name, "kills itself")
                worker.agent.kill_worker(worker)
                worker.threads.check()
            elif not step.future.is_done:
                error = self._wait(run, step.future)

    def _work(self, run: Run, seconds: float) -> TaskStoppedError | None:
        worker = self._worker
        error = worker.interruption.take_due(run.name)
        if error is not None:
            return error
        run.gate = Gate(worker.threads)
        run.is_working = True
        if worker.connection.has_messages or worker.is_long(seconds):
            worker.watch()
        run.gate.wait(seconds)
        run.is_working = False
        run.gate = None
        return worker.interruption.take_due(run.name)

    def _meet(self, run: Run, step: Meet) -> TaskStoppedError | None:
        """Exchange values as scaler_worker.worker.gang_place does it. The members hold their workers meanwhile."""
        worker, session = self._worker, self._worker.session
        error = worker.interruption.take_due(run.name)
        if error is not None:
            return error
        gate = run.gate = Gate(worker.threads)
        session.latches[run.name] = _Opener(gate)  # type: ignore[assignment]
        with worker.connection.lock:
            if session.exchanges.get(run.name) is None:
                session.give(run.name, step.number, step.value)
            worker.connection.exchange()
        run.is_working = True
        worker.watch()
        gate.wait(1.0)
        run.is_working = False
        run.gate = None
        answer = session.exchanged.get(run.name)
        if answer is not None and answer.round == step.number and answer.ended:
            step.ended = answer.ended - 1
            worker.world.trace.count("members told that another has ended")
        elif answer is not None and answer.round == step.number:
            step.values = [bytes(each) for each in answer.values]
            worker.world.trace.count("values exchanged")
        return worker.interruption.take_due(run.name)

    def _wait(self, run: Run, future: Future) -> TaskStoppedError | None:
        """Wait for a child as scaler_client.nested.slot_wait does it."""
        worker, nested = self._worker, self._worker.nested
        assert nested is not None
        worker.world.trace.count("suspensions")
        nested.session.suspend(run.name)
        nested.wake()
        task = worker.task_host.current()
        assert task is not None and task.name == run.name
        self.running = None
        self.suspended[run.name] = run
        run.suspended_at = worker.world.clock.now
        task.suspend()
        task.wait(_Latch(worker.threads, future), None)  # type: ignore[arg-type]
        error = None
        try:
            task.resume()
        except TaskStoppedError as stopped:
            error = stopped
        del self.suspended[run.name]
        self.running = run
        nested.session.resume(run.name)
        nested.wake()
        return error

    def _store(self, run: Run, answer: bytes) -> bool:
        """Write a result to a file, as scaler_worker.objects.kept_results does it."""
        worker, world = self._worker, self._worker.world
        if worker.agent.files.is_gone or not worker.agent.has_space():
            return False
        world.trace.count("kept results written")
        world.oracle.stored[run.script.key] += 1
        if world.oracle.stored[run.script.key] > 1:
            world.trace.count("kept results written again")
        worker.agent.files.write(file_of(run.name), [answer])
        world.reached("a result is written", worker.agent)
        return True
