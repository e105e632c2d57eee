"""The decisions of a host agent, without sockets, processes or a clock (sans-IO).

Messages, process events and the time (seconds of any monotonic clock) go in, effects come out. Call `tick` at
`deadline()`.
"""

from __future__ import annotations

import enum
import logging
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaler_client.commands.object_files import ObjectName
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Goodbye, Hello, Message, Started, WorkerDied

from ..config import workers_in_words
from ..fork_server.process_events import PRELOAD_FAILED_STATUS, SCHEDULER_LOST_STATUS, ProcessEnded
from ..fork_server.state_page import WorkerState
from .downloads import Downloads
from .effects import Effect, Exit, Log, MeasureMemory, Send, SignalWorker
from .environments import AgentEnvironments
from .host_objects import HostObjects
from .scheduler_link import SchedulerLink
from .worker_table import MAX_FAILED_STARTS, Kill, LongTasks, Worker, WorkerTable

KILL_AFTER_SECONDS = 2.0
"""The time between SIGTERM and SIGKILL, when the agent ends its workers."""

GIVE_UP_SECONDS = 1.5
"""The time between SIGKILL and the agent's end. Reason: a process that the kernel can't kill must not hold up the
agent."""

CONFIRM_SECONDS = 0.05
"""The time between the last worker's end and a heartbeat.

Its echo shows that the scheduler has read all earlier messages.
"""

GOODBYE_SECONDS = 0.5
"""The longest time between the last worker's end and the goodbye, unless objects are still being sent."""

TRANSFER_SECONDS = 3.0
"""How long an ending agent may send objects. With the steps that follow, the command ends within the promised time."""

MEASURE_SECONDS = 0.25
"""Between two measurements of the workers' memory, if it has a limit."""

FORK_SERVER_LOST = "the agent's fork server died"


class _Phase(enum.Enum):
    """The phase of an agent's life."""

    SERVING = 1
    ENDING = 2
    """The agent is ending the workers."""
    LEAVING = 3
    """The workers have ended. Their last messages are on the way to the scheduler."""
    ENDED = 4


@dataclass(frozen=True)
class AgentSettings:
    """The configuration of an agent's session. Times are in seconds."""

    address: str
    """The scheduler's, for the log only."""
    worker_names: Sequence[str]
    """One for each worker."""
    heartbeat_interval_seconds: float
    death_timeout_seconds: float
    """How long the session waits for an answer of a scheduler before it gives up."""
    memory_limit_bytes: int = 0
    """The limit of one worker; 0: none."""
    retire_seconds: float = 0.0
    """How long tasks may continue when the agent retires."""
    environments: str = "none"
    """Which environments the operator allows: a key of `environments.LEVELS`."""
    has_limits: bool = True
    """Whether the values of the host have limits."""


@dataclass(frozen=True)
class HostAccess:
    """The functions of the host that an agent's session calls."""

    draw_incarnation: Callable[[], int]
    """Returns a new number below 2^63."""
    read_state: Callable[[int], WorkerState]
    """Returns the task that the worker in a slot runs, or ran last."""
    is_sending: Callable[[], bool] = lambda: False
    """Whether objects that the scheduler has asked for are still to be sent."""
    list_files: Callable[[], Iterable[ObjectName]] = tuple
    """Returns the objects that are files of this host."""
    has_file: Callable[[ObjectName], bool] = lambda name: False
    """Whether the object is a file of this host."""
    has_room: Callable[[int, int], bool] = lambda size, coming: True
    """Whether the host has room for a file of so many bytes, beside so many bytes that are being fetched."""
    can_link: Callable[[ObjectName], bool] = lambda name: False
    """Whether a client on this host has the object's file."""
    missing_contents: Callable[[Sequence[str]], list[str]] = list
    """Returns those of these contents of environments that the host does not have."""


class AgentSession:
    """The agent of one host's workers, from its start to its end."""

    def __init__(self, hello: Hello, settings: AgentSettings, host: HostAccess, now: float) -> None:
        self._hello = hello
        self._objects = HostObjects()
        self._downloads = Downloads(host.has_file, host.has_room, host.can_link)
        self._link = SchedulerLink(
            hello,
            settings.address,
            settings.heartbeat_interval_seconds,
            settings.death_timeout_seconds,
            now,
            list_files=lambda: self._objects.written_by_workers(host.list_files()),
            has_limits=settings.has_limits,
        )
        self._workers = WorkerTable(settings.worker_names, host.draw_incarnation)
        self._environments = AgentEnvironments(settings.environments, host.missing_contents)
        self._waiting_changes: dict[int, str] = {}
        """Workers that are to change to an environment that is being prepared again."""
        self._read_state = host.read_state
        self._is_sending = host.is_sending
        self._memory_limit_bytes = settings.memory_limit_bytes
        self._measure_at = now + MEASURE_SECONDS
        self._phase = _Phase.SERVING
        self._exit_status = 0
        self._goodbye_reason = ""
        self._has_replaced_worker = False
        """Whether a worker has ended and another one was started for it."""
        self._was_busy = False
        """Whether a worker ran a task when the agent ended it."""
        self._long_tasks = LongTasks()
        self._retire_seconds = settings.retire_seconds
        self._retire_by: float | None = None
        """Until when tasks may continue; None: the agent does not retire."""
        self._kill_at: float | None = None
        self._give_up_at: float | None = None
        self._confirm_at: float | None = None
        self._leave_at: float | None = None
        self._transfer_by = 0.0
        """Until when an ending agent may send objects."""

    # ---------------------------------------------------------------------------------------------------------- inputs

    def start(self, now: float) -> list[Effect]:
        """Send a hello and start all workers."""
        return self._link.send_hello(now) + self._workers.start_all(now)

    def connected(self, now: float) -> list[Effect]:
        """Handle a new connection, perhaps to another scheduler: announce this agent at once."""
        self._link.connected(now)
        return self.tick(now)

    def received(self, message: Message, now: float) -> list[Effect]:
        """Handle a message of the scheduler."""
        handler = self._handlers.get(type(message))
        if handler is None:
            return [Log(logging.DEBUG, f"ignored a message that is not for an agent: {type(message).__name__}")]
        effects: list[Effect] = handler(self, message, now)
        return effects

    def worker_started(self, incarnation: int, pid: int, now: float) -> list[Effect]:
        return self._workers.started(incarnation, pid, now)

    def worker_ended(self, ended: ProcessEnded, now: float) -> list[Effect]:
        """Handle the end of a worker process, or its failed start. The caller may clear the slot after this."""
        worker = self._workers.living.pop(ended.incarnation, None)
        if worker is None:
            return []
        if self._phase is not _Phase.SERVING:
            return self._leave_when_empty(now)
        if self._retire_by is not None:
            return self._worker_retired(worker, ended, now)
        if worker.is_surplus:
            self._workers.remove_surplus(worker)
            return self._report_unless_ordered(worker, ended)
        if worker.next_environment is not None:
            return self._worker_changed(worker, ended, now)
        ended, state = worker.explain(ended, self._read_state(worker.slot))
        is_unprepared = ended.status == PRELOAD_FAILED_STATUS or state.has_failed_preload
        if is_unprepared and not self._has_replaced_worker and not self._is_any_ready():
            text = f"the first worker could not be prepared: {ended.cause()}: giving up"
            return [Log(logging.ERROR, text), *self._end(PRELOAD_FAILED_STATUS, "preload failed", now)]
        self._has_replaced_worker = True
        effects = []
        if ended.pid and ended.status != SCHEDULER_LOST_STATUS:
            effects += self._link.report(_worker_died(ended, state), worker.is_end_requested)
        effects += self._workers.replace(worker, ended, state, now)
        if worker.environment and worker.failed_starts >= MAX_FAILED_STARTS:
            effects += self._environments.start_failed(worker.environment, ended.cause())
            worker.environment = ""
        return effects

    def _worker_changed(self, worker: Worker, ended: ProcessEnded, now: float) -> list[Effect]:
        """Handle the end of a worker that gives way to one of another environment."""
        effects = self._report_unless_ordered(worker, ended) + self._workers.changed(worker, now)
        return effects + self._environments.remove_unused(self._workers.environments())

    def _report_unless_ordered(self, worker: Worker, ended: ProcessEnded) -> list[Effect]:
        """Report the death of a worker that was told to end, if it has ended otherwise."""
        if not ended.pid or ended.status in (0, -signal.SIGTERM, SCHEDULER_LOST_STATUS):
            return []
        died = _worker_died(*worker.explain(ended, self._read_state(worker.slot)))
        return self._link.report(died, worker.is_end_requested)

    def _worker_retired(self, worker: Worker, ended: ProcessEnded, now: float) -> list[Effect]:
        """Handle the end of a worker while the agent retires: no other worker is started for it.

        A worker that got the same SIGTERM as the agent, for example as a member of a group, has not died.
        """
        effects: list[Effect] = []
        if ended.pid and ended.status not in (0, -signal.SIGTERM):
            died = _worker_died(*worker.explain(ended, self._read_state(worker.slot)))
            effects += self._link.report(died, worker.is_end_requested)
        return effects if self._workers.living else effects + self._end_retired("no worker is left", now)

    def measured(self, resident_bytes: Mapping[int, int]) -> list[Effect]:
        """Handle the outcome of MeasureMemory, by incarnation: kill each worker above the limit."""
        effects: list[Effect] = []
        for incarnation, size in resident_bytes.items():
            worker = self._workers.living.get(incarnation)
            if size > self._memory_limit_bytes and worker is not None and worker.kill is None:
                cause = f"memory limit of {_mebibytes(self._memory_limit_bytes)} exceeded: {_mebibytes(size)}"
                effects.append(_kill(worker, Kill(cause, self._read_state(worker.slot).task)))
        return effects

    def contents_stored(self, names: Iterable[str], error: str, now: float) -> list[Effect]:
        """Handle the outcome of StoreContents: the names of what was stored, and why the rest was not."""
        return self._environments.contents_stored(names, error, now)

    def environment_prepared(self, name: str, error: str, missing: Sequence[str], now: float) -> list[Effect]:
        """Handle the outcome of PrepareEnvironment: an error, or contents that are missing, or neither."""
        effects = self._environments.prepared(name, error, missing, now)
        if self._environments.is_ready(name):
            for incarnation, environment in list(self._waiting_changes.items()):
                if environment == name:
                    effects += self._change(incarnation, name, now)
        return effects

    def object_written(self, name: ObjectName, error: str = "") -> list[Effect]:
        """Handle the outcome of WriteObject. `error` says why the object could not be written; empty: it was
        written."""
        return self._objects.written(name, error)

    def data_received(self, source: messages.DataAddress, message: Message, now: float) -> list[Effect]:
        """Handle a message from the data address of another agent, or of a client."""
        return self._downloads.received(source, message, now)

    def file_linked(self, name: ObjectName, is_linked: bool, now: float) -> list[Effect]:
        """Handle the outcome of LinkFile: whether the file could be linked."""
        return self._downloads.linked(name, is_linked, now)

    def part_failed(self, name: ObjectName, reason: str) -> list[Effect]:
        """Handle a WritePart that has failed."""
        return self._downloads.write_failed(name, reason)

    def has_object(self, name: ObjectName) -> bool:
        """Whether the scheduler has sent this object and it is not forgotten."""
        return self._objects.has(name)

    @property
    def object_bytes(self) -> int:
        """The size of all objects that the agent has written to files, in bytes."""
        return self._objects.total_bytes

    @property
    def workers(self) -> list[int]:
        """The incarnations of the workers that live."""
        return list(self._workers.living)

    @property
    def is_serving(self) -> bool:
        """Whether the agent has not begun to end."""
        return self._phase is _Phase.SERVING

    def status(self) -> str:
        """The state of the agent, in one line for operators."""
        living = self._workers.living.values()
        busy = sum(1 for worker in living if self._read_state(worker.slot).task)
        answers = "answers" if self._link.is_answered else "does not answer"
        return f"{workers_in_words(len(living))}, {busy} busy; the scheduler at {self._link.address} {answers}"

    def fork_server_lost(self) -> list[Effect]:
        """Handle the death of the fork server: all workers have ended, and none can be started."""
        effects: list[Effect] = []
        if self._phase is _Phase.SERVING:
            self._exit_status = 1
            self._goodbye_reason = FORK_SERVER_LOST
            effects.append(Log(logging.ERROR, f"{FORK_SERVER_LOST}, and its workers died with it: the agent ends"))
            for worker in self._workers.living.values():
                ended = ProcessEnded(worker.slot, worker.incarnation, worker.pid, error=FORK_SERVER_LOST)
                effects += self._link.report(_worker_died(ended, self._read_state(worker.slot)))
        self._workers.living.clear()
        return effects + self._leave()

    def stop(self, reason: str, now: float) -> list[Effect]:
        """End the workers and then the agent, with exit status 0. A second call kills the workers at once."""
        if self._phase is _Phase.SERVING:
            text = f"{reason}: ending {workers_in_words(len(self._workers.living))}"
            return [Log(logging.INFO, text), *self._end(0, reason, now)]
        return self._kill_all(now)

    def retire(self, reason: str, now: float) -> list[Effect]:
        """End when no task runs any more, or when `retire_seconds` are over. A second call acts as `stop`, and so does
        the first one if `retire_seconds` is 0."""
        if self._phase is not _Phase.SERVING or self._retire_by is not None or not self._retire_seconds:
            return self.stop(reason, now)
        self._retire_by = now + self._retire_seconds
        self._goodbye_reason = reason
        self._link.retire(now)
        text = f"{reason}: retiring; running tasks may continue for up to {self._retire_seconds:g} s"
        return [Log(logging.INFO, text), *self.tick(now)]

    def tell_room(self, now: float) -> None:
        """Send a heartbeat soon: it says how much room the host has for values, which has changed much."""
        self._link.tell_room(now)

    def tick(self, now: float) -> list[Effect]:
        """Return the effects that are due."""
        if self._phase is _Phase.ENDED:
            return []
        effects = self._link.heartbeat_if_due(self._living(), now)
        fetching = self._downloads.tick(now) + self._environments.tick(now)
        if self._retire_by is not None and now >= self._retire_by:
            effects += self._end_retired("the time for running tasks is over", now)
        if self._phase is _Phase.SERVING:
            effects += self._report_long_tasks() if effects else []
            effects += self._serve(now)
        if self._kill_at is not None and now >= self._kill_at:
            effects += self._kill_all(now)
        if self._give_up_at is not None and now >= self._give_up_at:
            effects += self._abandon_workers()
        if self._confirm_at is not None and now >= self._confirm_at:
            self._confirm_at = None
            effects += self._link.send_heartbeat((), now)
        effects += self._leave_when_confirmed()
        if self._leave_at is not None and now >= self._leave_at:
            if self._is_sending() and now < self._transfer_by:
                self._leave_at = self._transfer_by
            else:
                effects += self._leave()
        return effects + fetching

    def deadline(self) -> float:
        """When `tick` is to be called next, at the latest."""
        times = [self._kill_at, self._give_up_at, self._confirm_at, self._leave_at, self._link.next_heartbeat]
        times += [self._downloads.deadline(), self._environments.deadline()]
        if self._phase is _Phase.SERVING:
            times += [self._link.deadline(), self._retire_by]
            times += [] if self._retire_by is not None else self._workers.deadlines()
            times += [self._measure_at] if self._memory_limit_bytes else []
        return min(time for time in times if time is not None)

    # -------------------------------------------------------------------------------------------------------- messages

    def _on_welcome(self, welcome: messages.Welcome, now: float) -> list[Effect]:
        is_new = self._link.scheduler not in (0, welcome.incarnation)
        dropped = self._downloads.clear() if is_new else []
        if is_new:
            self._environments.clear()
            self._waiting_changes.clear()
        effects = dropped + self._objects.welcomed(welcome) + self._link.on_welcome(welcome, now)
        return effects + (self._report_long_tasks(are_all_new=True) if is_new else [])

    def _on_forget_objects(self, message: messages.ForgetObjects, now: float) -> list[Effect]:
        names = list(zip(message.clients, message.ids))
        return self._downloads.forget(names) + self._objects.forget(message)

    def _on_refused(self, refused: messages.Refused, now: float) -> list[Effect]:
        if self._phase is not _Phase.SERVING:
            return []
        if refused.reason == messages.NOT_AUTHORIZED:
            text = f"no access to the scheduler at {self._link.address}: {refused.text}"
            return [Log(logging.ERROR, text), *self._end(1, "refused", now)]
        text = (
            f"refused by the scheduler at {self._link.address}, version {refused.version} with protocol version "
            f"{refused.protocol_version}: this is version {self._hello.version} with protocol version "
            f"{self._hello.protocol_version} ({refused.text or refused.reason})"
        )
        return [Log(logging.ERROR, text), *self._end(1, "refused", now)]

    def _on_heartbeat_echo(self, echo: messages.HeartbeatEcho, now: float) -> list[Effect]:
        effects = self._link.on_heartbeat_echo(echo, now)
        if self._link.is_caught_up:
            effects += self._objects.remove_unconfirmed()
        if self._retire_by is not None and echo.is_drained:
            effects += self._end_retired("no task runs any more", now)
        if self._phase is _Phase.LEAVING and self._link.is_echoed and not echo.is_drained:
            self._confirm_at = now + CONFIRM_SECONDS  # the scheduler has not read all of the workers' last results
        return effects + self._leave_when_confirmed()

    def _on_end_worker(self, order: messages.EndWorker, now: float) -> list[Effect]:
        """Kill a worker because of a task that ignores its stop, if the worker still runs this task."""
        worker = self._workers.living.get(order.incarnation)
        if worker is None or self._phase is not _Phase.SERVING or self._read_state(worker.slot).task != order.task:
            return []
        return [_kill(worker, Kill(f"stopped: {order.reason}", order.task, is_requested=True))]

    def _on_change_worker(self, order: messages.ChangeWorker, now: float) -> list[Effect]:
        """Start a worker in the place of one that holds no task, or beside one that has suspended tasks; or end one."""
        if order.mode != messages.CHANGE_REPLACE:
            worker = self._workers.living.get(order.worker)
            if worker is None or self._phase is not _Phase.SERVING or self._retire_by is not None:
                return []
            change = self._workers.start_beside if order.mode == messages.CHANGE_BESIDE else self._workers.end_surplus
            return change(worker, now)
        if self._environments.is_ready(order.environment):
            return self._change(order.worker, order.environment, now)
        self._waiting_changes[order.worker] = order.environment
        return self._environments.use(order.environment, now)

    def _change(self, incarnation: int, environment: str, now: float) -> list[Effect]:
        self._waiting_changes.pop(incarnation, None)
        worker = self._workers.living.get(incarnation)
        if worker is None or self._phase is not _Phase.SERVING or self._retire_by is not None:
            return []
        if worker.next_environment is not None or worker.kill is not None:
            return []
        return self._workers.change(worker, environment, now)

    def _on_shutdown(self, _: messages.Shutdown, now: float) -> list[Effect]:
        return self.stop("shut down by a client", now) if self._phase is _Phase.SERVING else []

    _handlers: dict[type, Callable[[AgentSession, Any, float], list[Effect]]] = {
        messages.Welcome: _on_welcome,
        messages.HelloWanted: lambda self, message, now: self._link.on_hello_wanted(message, now),
        messages.HeartbeatEcho: _on_heartbeat_echo,
        messages.Goodbye: lambda self, message, now: self._link.on_goodbye(message, now),
        messages.Error: lambda self, message, now: self._link.on_error(message, now),
        messages.Refused: _on_refused,
        messages.EndWorker: _on_end_worker,
        messages.Object: lambda self, message, now: self._objects.add(message),
        messages.Shutdown: _on_shutdown,
        messages.Environment: lambda self, message, now: self._environments.order(message, now),
        messages.Contents: lambda self, message, now: self._environments.contents_received(message.payloads),
        messages.ChangeWorker: _on_change_worker,
        messages.ForgetObjects: _on_forget_objects,
        messages.TransferObjects: lambda self, message, now: self._downloads.start(message, now),
        messages.FetchObjects: lambda self, message, now: self._objects.fetch(message),
    }

    # --------------------------------------------------------------------------------------------------------- phases

    def _living(self) -> tuple[tuple[int, int], ...]:
        return tuple((worker.incarnation, worker.pid) for worker in self._workers.living.values() if worker.pid)

    def _is_any_ready(self) -> bool:
        return any(self._read_state(worker.slot).ready for worker in self._workers.living.values())

    def _serve(self, now: float) -> list[Effect]:
        if self._link.is_lost(now):
            silence = f"no scheduler answered at {self._link.address} for {self._link.death_timeout_seconds:g} s"
            return [Log(logging.ERROR, f"{silence}: giving up"), *self._end(1, "no scheduler answered", now)]
        effects = self._link.check_silence(now)
        if self._retire_by is None:
            effects += self._workers.start_due(now) + self._workers.reset_failed_starts(now)
            effects += self._workers.kill_late(now)
        if self._memory_limit_bytes and now >= self._measure_at:
            self._measure_at = now + MEASURE_SECONDS
            effects.append(MeasureMemory(self._living()))
        return effects

    def _report_long_tasks(self, *, are_all_new: bool = False) -> list[Effect]:
        """Report tasks that have run since the last heartbeat. Called with each heartbeat.

        Workers report this themselves, unless a task holds the GIL or the process is stopped. `are_all_new`: report all
        running tasks, because the scheduler is a new one, which has to wait for workers that cannot join yet.
        """
        living = self._workers.living.items()
        running = {key: self._read_state(worker.slot).task for key, worker in living}
        long = self._long_tasks.update(running, are_all_new=are_all_new)
        if not long or not self._link.is_answered:
            return []
        clients, ids, attempts = map(list, zip(*long))
        return [Send(Started(ids, clients, attempts))]

    def _end_retired(self, why: str, now: float) -> list[Effect]:
        text = f"{why}: ending {workers_in_words(len(self._workers.living))}"
        return [Log(logging.INFO, text), *self._end(0, self._goodbye_reason, now)]

    def _end(self, exit_status: int, reason: str, now: float) -> list[Effect]:
        self._phase = _Phase.ENDING
        self._retire_by = None
        self._exit_status = exit_status
        self._goodbye_reason = reason
        self._kill_at = now + KILL_AFTER_SECONDS
        living = self._workers.living.values()
        self._was_busy = any(self._read_state(worker.slot).task for worker in living)
        effects: list[Effect] = [SignalWorker(worker.incarnation, kill=False) for worker in living]
        self._transfer_by = now + TRANSFER_SECONDS
        if self._link.is_answered:
            # After this, the scheduler gives these workers no more tasks, and asks for the results that only this host
            # has.
            self._link.retire(now)
            effects += self._link.send_heartbeat(self._living(), now)
        return effects + self._leave_when_empty(now)

    def _kill_all(self, now: float) -> list[Effect]:
        if self._phase is not _Phase.ENDING:
            return []
        self._kill_at = None
        if self._give_up_at is None:
            self._give_up_at = now + GIVE_UP_SECONDS
        return [SignalWorker(incarnation, kill=True) for incarnation in self._workers.living]

    def _abandon_workers(self) -> list[Effect]:
        text = f"{workers_in_words(len(self._workers.living))} left behind: SIGKILL does not end them"
        return [Log(logging.ERROR, text), *self._leave()]

    def _leave_when_empty(self, now: float) -> list[Effect]:
        """Leave, if all workers have ended and the scheduler has read their last results.

        The agent's goodbye also counts for all its workers, so it must arrive after their last results. These come on
        separate connections, and there is no order between connections. The echo of a heartbeat that was sent after the
        workers' end shows that the scheduler has read the results. Before the echo, the scheduler asks for results that
        only this host has. The goodbye follows these results.
        """
        if self._phase is not _Phase.ENDING or self._workers.living:
            return []
        self._kill_at = self._give_up_at = None
        if not self._link.is_answered:
            return self._leave()
        self._phase = _Phase.LEAVING
        self._confirm_at = now + CONFIRM_SECONDS if self._was_busy else None
        self._leave_at = now + GOODBYE_SECONDS
        return self._leave_when_confirmed()

    def _leave_when_confirmed(self) -> list[Effect]:
        """Leave, if the scheduler has answered the last heartbeat and all requested objects are sent."""
        is_waiting = self._phase is not _Phase.LEAVING or self._confirm_at is not None or not self._link.is_echoed
        return [] if is_waiting or self._is_sending() else self._leave()

    def _leave(self) -> list[Effect]:
        if self._phase is _Phase.ENDED:
            return []
        self._phase = _Phase.ENDED
        return [Send(Goodbye(self._goodbye_reason)), Exit(self._exit_status)]


def _kill(worker: Worker, kill: Kill) -> Effect:
    worker.kill = worker.kill or kill
    return SignalWorker(worker.incarnation, kill=True)


def _worker_died(ended: ProcessEnded, state: WorkerState) -> WorkerDied:
    return WorkerDied(
        ended.incarnation, ended.pid, ended.cause(), ended.peak_bytes, state.client, state.id, state.attempt
    )


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.0f} MiB"
