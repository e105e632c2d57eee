"""The agent's workers: which workers live, and when to start a worker again. Sans-IO."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from scaler_client.protocol.messages import TaskAttempt

from ..fork_server.process_events import PRELOAD_FAILED_STATUS, SCHEDULER_LOST_STATUS, ProcessEnded
from ..fork_server.state_page import WorkerState
from .effects import Effect, Log, SignalWorker, StartWorker

SETTLED_SECONDS = 1.0
"""A worker that ends sooner without having become ready has failed to start."""

FIRST_BACK_OFF_SECONDS = 0.25
MAX_BACK_OFF_SECONDS = 5.0
SCHEDULER_LOST_BACK_OFF_SECONDS = 1.0

CHANGE_SECONDS = 5.0
"""A worker that gives way to one of another environment is killed after so long."""

MAX_FAILED_STARTS = 3
"""A worker whose environment fails so often at its start returns to no environment."""


MIN_BESIDE = 16
"""This many workers may start beside others, or as many as the agent keeps if these are more."""


def beside_slots(workers: int) -> int:
    """How many workers may start beside the workers that an agent keeps, because these have suspended tasks."""
    return max(MIN_BESIDE, workers)


@dataclass(frozen=True)
class Kill:
    """Why the agent kills a worker."""

    cause: str
    task: TaskAttempt | None
    """The task that the worker ran at the decision.

    If the worker runs another task when it dies, that task is not the cause.
    """
    is_requested: bool = False
    """Whether the scheduler has asked for it."""


@dataclass
class Worker:
    """One slot: a permanent name, and one process after another."""

    slot: int
    name: str
    incarnation: int = 0
    pid: int = 0
    """0 until the process is known to have started."""
    started_at: float = 0.0
    restart_at: float | None = None
    failed_starts: int = 0
    """The number of failed starts in a row."""
    kill: Kill | None = None
    environment: str = ""
    """The name of the environment of its process; empty: none."""
    next_environment: str | None = None
    """The environment of the next process, which takes the place of this one; None: no change is wanted."""
    kill_at: float | None = None
    """When the process is killed that gives way to another one."""
    is_surplus: bool = False
    """Whether it ends for good: no process takes its place."""

    @property
    def is_end_requested(self) -> bool:
        """Whether the scheduler has asked for its end, because of the task that it ran."""
        return self.kill is not None and self.kill.is_requested

    def explain(self, ended: ProcessEnded, state: WorkerState) -> tuple[ProcessEnded, WorkerState]:
        """Correct the reported end: the agent may know the cause, or that the running task is not the cause."""
        if self.kill is not None:
            of_task = state if state.task == self.kill.task else state.without_task()
            return replace(ended, error=self.kill.cause), of_task
        if not state.start_error:
            return ended, state
        is_told = ended.status in (1, PRELOAD_FAILED_STATUS)
        return replace(ended, error=state.start_error + ("" if is_told else f": {ended.cause()}")), state


class WorkerTable:
    """The workers of one agent."""

    def __init__(self, names: Iterable[str], draw_incarnation: Callable[[], int]) -> None:
        self._workers = [Worker(slot, name) for slot, name in enumerate(names)]
        self._kept = kept = len(self._workers)
        """How many workers the agent keeps."""
        self._free_slots = list(range(kept, kept + beside_slots(kept)))
        self._draw_incarnation = draw_incarnation
        self._failing_cause = ""
        self.living: dict[int, Worker] = {}
        """Workers by incarnation: their start was requested, and their end is not known."""

    def start_all(self, now: float) -> list[Effect]:
        return [self._start(worker, now) for worker in self._workers]

    def start_due(self, now: float) -> list[Effect]:
        """Start the workers whose back-off is over."""
        due = [worker for worker in self._workers if worker.restart_at is not None and now >= worker.restart_at]
        return [self._start(worker, now) for worker in due]

    def started(self, incarnation: int, pid: int, now: float) -> list[Effect]:
        worker = self.living.get(incarnation)
        if worker is None:
            return []
        worker.pid = pid
        worker.started_at = now
        return [Log(logging.DEBUG, f"worker {worker.name} is process {pid}")]

    def replace(self, worker: Worker, ended: ProcessEnded, state: WorkerState, now: float) -> list[Effect]:
        """Start a worker that has ended again, now or after a back-off. The caller has removed it from `living`."""
        if ended.status == SCHEDULER_LOST_STATUS:
            worker.restart_at = now + SCHEDULER_LOST_BACK_OFF_SECONDS
            return [Log(logging.INFO, f"worker {worker.name} (process {ended.pid}) ended: no scheduler answered it")]
        failed = _failed_to_start(worker, ended, state, now)
        log = self._failed_start(worker, ended) if failed else _death(worker, ended, state)
        worker.failed_starts = worker.failed_starts + 1 if failed else 0
        worker.restart_at = now + _back_off_seconds(worker.failed_starts)
        return [log, *self.start_due(now)]

    def change(self, worker: Worker, environment: str, now: float) -> list[Effect]:
        """End a worker that holds no task. Another one of this environment takes its place."""
        worker.next_environment = environment
        worker.kill_at = now + CHANGE_SECONDS
        return [SignalWorker(worker.incarnation, kill=False)]

    def changed(self, worker: Worker, now: float) -> list[Effect]:
        """Start the next process of a worker that changes. The caller has removed it from `living`."""
        worker.environment = worker.next_environment or ""
        worker.failed_starts = 0
        return [self._start(worker, now)]

    def start_beside(self, worker: Worker, now: float) -> list[Effect]:
        """Start another worker beside one that has suspended tasks."""
        if not self._free_slots:
            return [Log(logging.INFO, f"no further worker starts beside worker {worker.name}: there are too many")]
        beside = Worker(self._free_slots.pop(0), worker.name, environment=worker.environment)
        self._workers.append(beside)
        return [self._start(beside, now)]

    def end_surplus(self, worker: Worker, now: float) -> list[Effect]:
        """End a worker for good that holds no task, if the others are as many as the agent keeps."""
        if worker.is_surplus or len(self._workers) - sum(each.is_surplus for each in self._workers) <= self._kept:
            return []
        worker.is_surplus = True
        worker.kill_at = now + CHANGE_SECONDS
        return [SignalWorker(worker.incarnation, kill=False)]

    def remove_surplus(self, worker: Worker) -> None:
        """Forget a worker that has ended for good."""
        self._workers.remove(worker)
        self._free_slots.append(worker.slot)

    def kill_late(self, now: float) -> list[Effect]:
        """Kill the workers that give way and do not end."""
        effects: list[Effect] = []
        for worker in self._workers:
            if worker.kill_at is not None and now >= worker.kill_at:
                worker.kill_at = None
                effects.append(SignalWorker(worker.incarnation, kill=True))
        return effects

    def environments(self) -> set[str]:
        """The environments that workers have, or change to."""
        names = {worker.environment for worker in self._workers}
        return names | {worker.next_environment for worker in self._workers if worker.next_environment is not None}

    def reset_failed_starts(self, now: float) -> list[Effect]:
        """Reset the failed starts of workers that live for long enough. Log once when no worker fails any more."""
        for worker in self._workers:
            settled_at = self._settled_at(worker)
            if settled_at is not None and now >= settled_at:
                worker.failed_starts = 0
        if not self._failing_cause or any(worker.failed_starts for worker in self._workers):
            return []
        self._failing_cause = ""
        return [Log(logging.WARNING, "all workers start again")]

    def deadlines(self) -> list[float]:
        times = [worker.restart_at for worker in self._workers]
        times += [self._settled_at(worker) for worker in self._workers]
        times += [worker.kill_at for worker in self._workers]
        return [time for time in times if time is not None]

    def _settled_at(self, worker: Worker) -> float | None:
        if not worker.failed_starts or worker.incarnation not in self.living:
            return None
        return worker.started_at + SETTLED_SECONDS

    def _start(self, worker: Worker, now: float) -> Effect:
        worker.incarnation = self._draw_incarnation()
        worker.pid = 0
        worker.started_at = now
        worker.restart_at = None
        worker.kill = None
        worker.next_environment = worker.kill_at = None
        self.living[worker.incarnation] = worker
        return StartWorker(worker.slot, worker.name, worker.incarnation, worker.environment)

    def _failed_start(self, worker: Worker, ended: ProcessEnded) -> Effect:
        text = f"worker {worker.name} (process {ended.pid}) failed to start: {ended.cause()}"
        if ended.cause() == self._failing_cause:
            return Log(logging.DEBUG, text)
        self._failing_cause = ended.cause()
        return Log(logging.ERROR, f"{text}; trying again, at most {MAX_BACK_OFF_SECONDS:g} s apart")


class LongTasks:
    """Finds the tasks that workers have run for long."""

    def __init__(self) -> None:
        self._seen: Mapping[int, TaskAttempt | None] = {}

    def update(self, running: Mapping[int, TaskAttempt | None], *, are_all_new: bool = False) -> list[TaskAttempt]:
        """Return the tasks that their workers also ran at the last call. `running` is by the worker's incarnation.
        `are_all_new`: return all, because the scheduler knows none."""
        before, self._seen = running if are_all_new else self._seen, running
        return [task for key, task in running.items() if task is not None and before.get(key) == task]


def _failed_to_start(worker: Worker, ended: ProcessEnded, state: WorkerState, now: float) -> bool:
    if not ended.pid or state.start_error:
        return True
    # A worker that is too large before its first task would be started and killed for ever.
    is_too_large = worker.kill is not None and worker.kill.task is None
    return now - worker.started_at < SETTLED_SECONDS and (is_too_large or not state.ready)


def _death(worker: Worker, ended: ProcessEnded, state: WorkerState) -> Effect:
    """Log a death, but not as a warning: the scheduler's warning has the task's name and says what follows."""
    text = f"worker {worker.name} (process {ended.pid}) died: {ended.cause()}"
    if ended.peak_bytes:
        text += f", peak memory {ended.peak_bytes / (1 << 20):.0f} MiB"
    if state.attempt:
        text += f", while running task {state.client}/{state.id}, attempt {state.attempt}"
    return Log(logging.INFO, text)


def _back_off_seconds(failed_starts: int) -> float:
    if failed_starts < 2:
        return 0.0
    return min(MAX_BACK_OFF_SECONDS, FIRST_BACK_OFF_SECONDS * 2.0 ** min(failed_starts - 2, 10))
