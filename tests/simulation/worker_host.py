"""A worker process: the real session, and what the threads of runner.py do around it, as a machine of small steps.

One run at a time holds the baton. While it works longer than a moment the attendant minds the connection, unless the
task holds the interpreter's lock. A run that waits for its children lends the baton; it gets it back before the queue's
next task begins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from scaler_client.nested.task_host import TaskStoppedError
from scaler_client.protocol.messages import (
    FLAG_MAY_STORE,
    FLAG_PROFILE,
    FLAG_REPORT_START,
    Hello,
    Message,
    Outcome,
    Role,
    TaskName,
)
from scaler_client.protocol.wire import decode, encode
from scaler_worker.fork_server.process_events import DAMAGED_STATUS
from scaler_worker.fork_server.state_page import ATTEMPT, CLIENT, ID, READY, RUNNING
from scaler_worker.task_rows import Row, depth_of, flags_of, name_of
from scaler_worker.worker.session import WorkerSession

from .client_host import ClientHost
from .clock import Process
from .execution import Die, Run, Work
from .input_reader import InputReader
from .network import Frames
from .oracle import STOPPED, Future
from .scripts import Script, function_bytes, measured
from .trace import SimulationError

if TYPE_CHECKING:
    from .agent_host import AgentHost
    from .world import World

LONG_TASK_SECONDS = 0.01
ATTEND_SECONDS = 0.02
FLUSH_SECONDS = 0.001

DAMAGED_ONE_IN = 4
"""Of so many stopped tasks one leaves its process unfit for others."""


class WorkerHost:
    def __init__(self, world: World, agent: AgentHost, slot: int, name: str, incarnation: int) -> None:
        self.world = world
        self.agent = agent
        self.slot = slot
        self.name = f"{name}.{incarnation % 1000}"
        self.incarnation = incarnation
        self.pid = world.next_pid()
        self.process = Process(world.clock, self.name)
        hello = Hello(
            Role.WORKER, incarnation, "3", "0", agent.name, self.pid, name, agent=agent.incarnation,
            capabilities=agent.capabilities,
        )  # fmt: skip
        self.session = WorkerSession(hello, world.plan.heartbeat_seconds, world.clock.now)
        self.link = world.network.open(self.name, self._arrived, agent.latency_factor)
        self.link.reconnected = self._reconnected
        self.nested: ClientHost | None = None
        self._page = agent.page.slot(slot)
        self._page[READY] = 1
        self._inbox: list[Message] = []
        self._run: Run | None = None
        self._suspended: dict[TaskName, Run] = {}
        self._returning: deque[Run] = deque()
        self._answered: deque[int] = deque(maxlen=100)
        """Keys of tasks that ended last: their answers may be lost with the process."""
        self._flushed = 0.0
        self._tick_at = 0.0
        self._is_due = False
        self._stopped: Callable[[], None] | None = None
        world.trace.note(self.name, "starts")
        self._wake(0.0)

    @property
    def is_alive(self) -> bool:
        return self.process.is_alive

    @property
    def resident_bytes(self) -> int:
        return (1 << 30) if self._run is not None and self._run.script.grows else (1 << 26)

    def works_on(self, key: int) -> bool:
        """Whether a task has begun here, and has not ended."""
        runs = [*self._suspended.values()] if self._run is None else [*self._suspended.values(), self._run]
        return any(run.script.key == key for run in runs)

    def links(self) -> list[Any]:
        return [self.link] if self.nested is None else [self.link, self.nested.link]

    # -------------------------------------------------------------------------------------------- what happens to it

    def die(self, lingers: bool) -> None:
        """The process is gone from one moment to the next."""
        if not self.process.is_alive:
            return
        self.world.trace.note(self.name, "ends")
        if self._run is not None:
            self.world.oracle.killed[self._run.script.key] += 1
        for key in [*(run.script.key for run in self._suspended.values()), *self._answered]:
            self.world.oracle.cut_off[key] += 1
        self.process.kill()
        for link in self.links():
            link.close(lingers)

    def stop(self, stopped: Callable[[], None]) -> None:
        """As by SIGTERM: the task that runs is the last one."""
        self._stopped = stopped
        self._wake(0.0)

    # --------------------------------------------------------------------------------------------------- the connection

    def _arrived(self, frames: Frames) -> None:
        self._inbox.append(decode(list(frames)))
        self._wake(0.00005)

    def _reconnected(self) -> None:
        self.process.later(0.0, lambda: self.session.reconnected(self.world.clock.now))
        self._wake(0.0001)

    def _wake(self, seconds: float) -> None:
        """Look at the connection: at once where nothing runs, else when the attendant looks next."""
        if self._is_due:
            return
        self._is_due = True
        if self._run is not None:
            seconds = max(self._run.since + LONG_TASK_SECONDS - self.world.clock.now, 0.0)
            seconds += self.world.chance.uniform(0.0, ATTEND_SECONDS)
        self.process.later(seconds, self._poll)

    def _poll(self) -> None:
        self._is_due = False
        run = self._run
        if run is None:
            self._run_next()
            return
        if run.script.hogs and run.is_working:
            return  # whoever works so has all looks that were missed made up for at the end
        if self.world.clock.now - run.since >= LONG_TASK_SECONDS:
            self.session.started(run.row)
        self._exchange()

    def _exchange(self) -> None:
        """Send what there is, take what has arrived."""
        now = self.world.clock.now
        if now >= self.session.next_deadline:
            self.session.tick(now)
        self._send()
        inbox, self._inbox = self._inbox, []
        for message in inbox:
            self.world.trace.note(self.name, "gets", message)
            self.session.handle(message)
        self._send()
        for name in self.session.pop_stops():
            self._stop_task(name)
        self.session.objects.release()
        self._flushed = now
        self._watch_deadline()

    def _send(self) -> None:
        for message in self.session.take_outgoing():
            self.world.trace.note(self.name, "sends", message)
            copies = self.world.network.copies(type(message).__name__)
            self.link.send([bytes(frame) for frame in encode(message)], copies)

    def _watch_deadline(self) -> None:
        at = self.session.next_deadline
        if self._tick_at <= self.world.clock.now or at < self._tick_at:
            self._tick_at = at
            self.process.later(max(0.0, at - self.world.clock.now), lambda: self._deadline(at))

    def _deadline(self, at: float) -> None:
        if self._tick_at == at:
            self._wake(0.0)

    # ------------------------------------------------------------------------------------------------------- the baton

    def _run_next(self) -> None:
        """Nobody has the baton: give it to who returns, or to the queue's next task."""
        while self._run is None and self.process.is_alive:
            if self._returning:
                self._resume(self._returning.popleft())
                continue
            if self._stopped is not None:
                self._end()
                return
            row = self.session.take()
            if row is None:
                self._exchange()
                row = self.session.take() if self._stopped is None else None
                if row is None:
                    if self._returning or self._stopped is not None:
                        continue
                    return
            self._begin(row)

    def _end(self) -> None:
        stopped, self._stopped = self._stopped, None
        assert stopped is not None
        self.session.close()
        self._send()
        self.die(lingers=True)
        stopped()

    def _begin(self, row: Row) -> None:
        script = self.world.oracle.began(self.name, name_of(row), bytes(row[4]))
        if self.world.is_worked_on(script.key):
            self.world.trace.count("executions beside another")
        function = self.session.functions.get(row[3])
        if function is None or bytes(function.payload) != function_bytes(script.function):
            raise SimulationError(f"{self.name} lacks the function of task {script.key}, {row[3]}: {function}")
        inputs = InputReader(row, self.session, self.agent.files, self.world.clock)
        store = None
        if flags_of(row) & FLAG_MAY_STORE and self.world.plan.kept_bytes <= len(script.answer()):
            store = self._store
            moment = "a result is made" if self.world.oracle.executions[script.key] < 2 else "a result is made again"
            self.world.reached(moment, self.agent)
        seconds = self.world.plan.write_seconds
        run = self._run = Run(row, script, inputs, self.world.oracle, self.world.clock, self._submit, store, seconds)
        self._write_page(run)
        if flags_of(row) & FLAG_REPORT_START:
            self.session.started(row)
            self._send()
        self._advance(run)

    def _store(self, run: Run, answer: bytes) -> bool:
        """As KeptResults does it."""
        if self.agent.files.is_gone or not self.agent.has_space():
            return False
        self.world.trace.count("kept results written")
        self.world.oracle.stored[run.script.key] += 1
        if self.world.oracle.stored[run.script.key] > 1:
            self.world.trace.count("kept results written again")
        self.agent.files.write(run.name[:2], [answer])
        self.session.stored.append(run.name[:2])
        self.world.reached("a result is written", self.agent)
        return True

    def _resume(self, run: Run) -> None:
        del self._suspended[run.name]
        self.session.resume(run.name)
        self._write_page(run)
        self._run = run
        assert self.nested is not None
        self.nested.session.resume(run.name)
        self.nested.wake()
        self._advance(run)

    def _suspend(self, run: Run, future: Future) -> None:
        assert self.nested is not None
        self.world.trace.count("suspensions")
        self.nested.session.suspend(run.name)
        self.nested.wake()
        self.session.suspend()
        self._page[RUNNING] = 0
        self._suspended[run.name] = run
        self._run = None
        turn = run.turn
        future.waiters.append(lambda: self.process.later(0.00005, lambda: self._request_slot(run, turn)))

    def _request_slot(self, run: Run, turn: int) -> None:
        """What it waits for is there, or it is to be stopped."""
        if run.turn == turn and run.name in self._suspended and run not in self._returning:
            self._returning.append(run)
            self._wake(0.0)

    def _write_page(self, run: Run) -> None:
        page = self._page
        page[RUNNING] = 0
        page[CLIENT], page[ID], page[ATTEMPT] = run.name
        page[RUNNING] = 1

    # --------------------------------------------------------------------------------------------------- running a task

    def _advance(self, run: Run) -> None:
        """Let the run take its next step."""
        run.is_working = False
        while True:
            run.turn += 1
            try:
                if run.is_stop_wanted:
                    run.is_stop_wanted = False
                    step = run.steps.throw(TaskStoppedError())
                else:
                    step = next(run.steps)
            except StopIteration as end:
                self._finish(run, *end.value)
                return
            except TaskStoppedError:
                self.world.trace.count("tasks stopped")
                self._finish(run, Outcome.EXCEPTION, STOPPED)
                # Some at no safe point; without a draw, which would change what happens to all seeds.
                if run.script.key % DAMAGED_ONE_IN == 0:
                    self.world.trace.count("workers damaged by a stop")
                    self._stopped = partial(self.agent.worker_left, self, DAMAGED_STATUS)
                    self._end()
                return
            if isinstance(step, Work):
                run.is_working = True
                self.process.later(step.seconds, partial(self._worked, run, run.turn))
                if self._inbox or step.seconds > LONG_TASK_SECONDS:
                    self._wake(0.0)
                return
            if isinstance(step, Die):
                self.world.trace.note(self.name, "kills itself")
                self.agent.kill_worker(self)
                return
            if not step.future.is_done:
                self._suspend(run, step.future)
                return

    def _worked(self, run: Run, turn: int) -> None:
        if run.turn == turn:
            self._advance(run)
            self._after_step()

    def _after_step(self) -> None:
        if self._run is None and self.process.is_alive:
            if self.world.clock.now - self._flushed > FLUSH_SECONDS:
                self._exchange()
            self._run_next()

    def _finish(self, run: Run, outcome: int, payload: bytes) -> None:
        assert self._run is run
        self._page[RUNNING] = 0
        self._run = None
        self._answered.append(run.script.key)
        seconds = self.world.clock.now - run.since
        cost = measured(run.script) if flags_of(run.row) & FLAG_PROFILE else None
        self.world.trace.note(self.name, "ends task", str(run.script.key), Outcome(outcome))
        if outcome == Outcome.INPUT_LOST:
            self.world.oracle.lost[run.script.key] += 1
        if run.was_stopped and self.nested is not None:
            self.nested.stop_children(run.name)  # those that it has submitted since
        self.session.finish(int(outcome), payload, int(seconds * 1e9), cost)
        if flags_of(run.row) & FLAG_REPORT_START:
            self._flushed = 0.0  # the scheduler counts its seconds: it must not wait for others

    def _stop_task(self, name: TaskName) -> None:
        run = self._run
        if self.nested is not None:
            self.nested.stop_children(name)
        if run is not None and run.name == name:
            run.is_stop_wanted = run.was_stopped = True
            if run.is_working:
                turn = run.turn
                self.process.later(0.00005, lambda: self._worked(run, turn))
        elif name in self._suspended:
            suspended = self._suspended[name]
            suspended.is_stop_wanted = suspended.was_stopped = True
            self._request_slot(suspended, suspended.turn)

    def _submit(self, run: Run, child: Script) -> Future:
        if self.nested is None:
            self.nested = ClientHost(self.world, f"{self.name}:nested", self.process, self.incarnation)
        self.world.trace.count("tasks of tasks")
        return self.nested.submit(child, replace(child.options, depth=depth_of(run.row) + 1), run.name)
