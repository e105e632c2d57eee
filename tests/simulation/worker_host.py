"""A worker process: the real session, run loop, run token, task host and long-task watcher, on simulated threads.

The time, the socket, the execution of tasks, and the errors of stops are simulated. A task that holds the interpreter's
lock (`hogs`) blocks the long-task watcher.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scaler_client.protocol.messages import Hello, Role, TaskAttempt
from scaler_worker.fork_server.process_events import DAMAGED_STATUS
from scaler_worker.fork_server.state_page import READY
from scaler_worker.task_rows import depth_of
from scaler_worker.worker.long_task_watcher import LONG_TASK_NS, LOOK_SECONDS, LongTaskWatcher
from scaler_worker.worker.run_token import RunToken
from scaler_worker.worker.runner import Runner, TaskSlot
from scaler_worker.worker.running_task import RunningTask
from scaler_worker.worker.task_host import WorkerIdentity, WorkerTaskHost

from .client_host import ClientHost
from .clock import Process
from .execution import Run
from .oracle import Future
from .scripts import Script
from .threads import SimulatedThreads
from .trace import SimulationError
from .worker_parts import (
    SimulatedConnection,
    SimulatedExecution,
    SimulatedInterruption,
    SimulatedWakeup,
    TracedSession,
)

if TYPE_CHECKING:
    from .agent_host import AgentHost
    from .world import World


TaskId = tuple[int, int]
"""Client and id."""

KNOWN_SECONDS = 0.5
"""After so long the scheduler knows that a task is suspended, if nothing is slow or broken."""


class WorkerHost:
    def __init__(
        self, world: World, agent: AgentHost, slot: int, name: str, incarnation: int, environment: str = ""
    ) -> None:
        self.environment = environment
        self.world = world
        self.agent = agent
        self.slot = slot
        self.name = f"{name}.{incarnation % 1000}"
        self.incarnation = incarnation
        self.pid = world.next_pid()
        self.process = Process(world.clock, self.name)
        self.threads = SimulatedThreads(self.process)
        world.threads.append(self.threads)
        hello = Hello(
            Role.WORKER, incarnation, "3", "0", agent.name, self.pid, name, agent=agent.incarnation,
            capabilities=agent.capabilities, takes_followers=True, environment=environment,
        )  # fmt: skip
        self.session: TracedSession = TracedSession(
            world.trace, self.name, hello, world.plan.heartbeat_seconds, world.clock.now
        )
        self.nested: ClientHost | None = None
        self.answered: deque[tuple[int, TaskId]] = deque(maxlen=1000)
        """The keys and names of the last tasks that have ended: their answers may be lost with the process."""
        self._is_look_due = False
        self._page = agent.page.slot(slot)
        self._page[READY] = 1
        wakeup = SimulatedWakeup()
        token = RunToken(wakeup, self.threads)
        self.interruption: SimulatedInterruption = SimulatedInterruption(self, token, wakeup)
        self.connection = SimulatedConnection(self, wakeup)
        task = RunningTask(self._page, self.threads)
        self._watcher = LongTaskWatcher(self.session, self.connection, self.interruption, task)
        self._slot = TaskSlot(
            self.session, self.connection, wakeup, self.threads, token, self.interruption, task, self._watcher
        )
        self.execution = SimulatedExecution(self)
        self._runner = Runner(self._slot, self.execution, lambda now: True, self._end)
        identity = WorkerIdentity("sim", "", incarnation)
        self.task_host = WorkerTaskHost(identity, self._slot, self._runner, None)  # type: ignore[arg-type]
        world.trace.note(self.name, "starts")
        self.threads.start(self._serve, "main")

    @property
    def is_alive(self) -> bool:
        return self.process.is_alive

    @property
    def resident_bytes(self) -> int:
        run = self.execution.running
        return (1 << 30) if run is not None and run.script.grows else (1 << 26)

    def works_on(self, key: int) -> bool:
        """Whether this task has begun here and has not ended."""
        return any(run.script.key == key for run in self.execution.runs())

    def links(self) -> list[Any]:
        return [self.connection.link] if self.nested is None else [self.connection.link, self.nested.link]

    # -------------------------------------------------------------------------------------------- what happens to it

    def die(self, lingers: bool, is_reported: bool = False) -> None:
        """End the process at once. `is_reported`: its agent reports it as a death."""
        if not self.process.is_alive:
            return
        self.world.trace.note(self.name, "ends")
        oracle, running = self.world.oracle, self.execution.running
        if running is not None:
            oracle.killed[running.script.key] += 1
            oracle.cut_off.update(running.earlier)
            oracle.ended[running.name[:2]] += 1
        for key, name in self.answered:
            oracle.cut_off[key] += 1
            oracle.ended[name] += 1
        for run in self.execution.suspended.values():
            oracle.cut_off[run.script.key] += 1
            oracle.cut_off.update(run.earlier)
            oracle.ended[run.name[:2]] += 1
            is_known = self.world.clock.now - run.suspended_at > KNOWN_SECONDS
            oracle.struck[run.name[:2]] += is_reported and is_known
            if running is not None and is_known and is_reported:
                self._check_neighbour(running, run)
        self.process.kill()
        for link in self.links():
            link.close(lingers)
        self.threads.end()

    def _check_neighbour(self, running: Run, suspended: Run) -> None:
        """Check that no task that began beside a suspended one ended it by its time limit."""
        self.world.trace.count("suspended tasks that died")
        if not self.world.plan.protects_parents or suspended.suspended_at > running.since:
            return
        if running.script.options.timeout_milliseconds or self.world.oracle.killed[running.script.key] > 1:
            text = f"task {running.script.key} has ended its process, in which task {suspended.script.key} waited"
            raise SimulationError(text)

    def stop(self) -> None:
        """Handle SIGTERM: the running task is the last one."""
        self.process.later(0.0, self._runner.stop)

    def _serve(self) -> None:
        """Run the worker's first thread."""
        self._slot.token.acquire_first()
        if self._runner.serve():
            self._end()

    def _end(self) -> None:
        status = DAMAGED_STATUS if self.interruption.is_process_damaged else 0
        with self.connection.lock:
            self.connection.close()
        self.die(lingers=True, is_reported=status == DAMAGED_STATUS and self.agent.reports_deaths)
        self.agent.worker_left(self, status)

    # -------------------------------------------------------------------------------------------- the long-task watcher

    def is_long(self, seconds: float) -> bool:
        """Whether the running task will be a long one after this time."""
        return self._slot.task.elapsed_ns() + seconds * 1e9 > LONG_TASK_NS

    @property
    def _is_hogged(self) -> bool:
        """Whether a task holds the GIL: no other thread runs."""
        run = self.execution.running
        return run is not None and run.script.hogs and run.is_working

    def watch(self) -> None:
        """Have the long-task watcher look as soon as the running task is a long one."""
        if self._is_look_due or self.execution.running is None:
            return
        self._is_look_due = True
        seconds = max(0.0, (LONG_TASK_NS - self._slot.task.elapsed_ns()) / 1e9) + 1e-6
        self.process.later(seconds + self.world.chance.uniform(0.0, LOOK_SECONDS), self._look)

    def _look(self) -> None:
        self._is_look_due = False
        if self.execution.running is None or self._is_hogged:
            return
        if self._slot.task.elapsed_ns() < LONG_TASK_NS:  # of another task
            self.watch()
            return
        self._watcher.look()
        self.watch_deadline()

    def watch_deadline(self) -> None:
        """Have the long-task watcher look when the next heartbeat is due, if a task still runs."""
        at = self.session.next_deadline
        self.process.later(max(0.0001, at - self.world.clock.now), self._watch_if_due)

    def _watch_if_due(self) -> None:
        if self.session.next_deadline <= self.world.clock.now:
            self.watch()

    # ---------------------------------------------------------------------------------------------------- nested tasks

    def submit(self, run: Run, child: Script) -> Future:
        if self.nested is None:
            self.nested = ClientHost(
                self.world, f"{self.name}:nested", self.process, self.incarnation, self.environment
            )
            self.nested.is_blocked = lambda: self._is_hogged
        self.world.trace.count("tasks of tasks")
        self.task_host.current()  # as a client in a task does
        return self.nested.submit(child, replace(child.options, depth=depth_of(run.row) + 1), run.name)

    def stop_children(self, name: TaskAttempt) -> None:
        if self.nested is not None:
            self.nested.stop_children(name)
