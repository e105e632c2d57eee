"""The scheduler's obligations to its peers, checked from its messages alone.

The invariants recount the core's tables. From the tables, this module uses only the connected peers. It records
submitted tasks, which worker holds which task, and the answers, and compares the scheduler's messages with these
records.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any

from scaler_client.pickling.call_rows import RowAnswer, has_row_form
from scaler_scheduler.core import effects, events
from scaler_scheduler.core.completion.results import EARLY_DIVISOR
from scaler_scheduler.core.ids import file_id, value_id
from scaler_scheduler.core.scheduler import Scheduler
from scaler_scheduler.core.state.records import Client, Worker
from scaler_scheduler.core.state.transitions import BLOCKED

from .agent_check import AgentCheck
from .gang_contract import GangContract
from .held_tasks import HeldTasks, TaskId
from .object_contract import ObjectContract, dispatched_inputs, inputs_of
from .priority_check import check_priorities, rank, serves
from .resource_check import double_booking, read_claim
from .restart_check import RestartCheck
from .trace import SimulationError, Trace

_VALUES = (effects.OUTCOME_STORED, effects.OUTCOME_FILE)


class Contract:
    """The contract of one scheduler, from its start to its end."""

    def __init__(
        self,
        core: Scheduler,
        incarnation: int,
        trace: Trace,
        taken: Callable[[TaskId], None],
        *,
        has_duplicates: bool = False,
    ) -> None:
        """
        Args:
            core: the core.
            incarnation: the scheduler's.
            trace: counts what was checked.
            taken: called with what is taken away from a worker that does not answer.
            has_duplicates: whether the network may deliver a message twice.
        """
        self._incarnation = incarnation
        self._has_duplicates = has_duplicates
        self._submitted_ids: dict[bytes, set[int]] = {}
        """The plain rows that a client has submitted since its last hello, by route."""
        self._has_environments = False
        """Whether a function named an environment. Then a worker may not run tasks of the highest rank."""
        self._core = core
        self._trace = trace
        self._taken = taken
        self._clients = core.tables.clients.by_route
        self._workers = core.tables.workers.by_route
        self._agents = core.tables.agents.by_route
        self._open: dict[TaskId, list[events.Options]] = {}
        """Open submits of each task. A task has more than one if it was answered in between and the answer is not sent
        yet."""
        self._held = HeldTasks()
        self._named: list[tuple[int, tuple[int, int, int], int]] = []
        """Bookings that workers have named in this step when they joined again: worker, attempt, number."""
        self._followers: set[TaskId] = set()
        """Held tasks that read the result of a row before them in their dispatch."""
        self._gangs = GangContract()
        self._objects = ObjectContract()
        self._returning = RestartCheck(incarnation)
        self._awaited = AgentCheck()
        self._attempts: dict[TaskId, int] = {}
        self._numbers: dict[int, tuple[object, dict[int, int]]] = {}
        """The highest attempt of each task, by client, and the core's record of the client: a new one starts at 1."""
        self._failures: Counter[TaskId] = Counter()
        """Attempts that may count against a task's retries."""
        self._started: defaultdict[bytes, set[tuple[int, int, int]]] = defaultdict(set)
        """Tasks that workers have reported as begun, by the worker's route."""
        self._suspended: set[tuple[int, int, int]] = set()
        """Attempts that nested clients have reported as suspended, and not as resumed."""
        self._died: set[TaskId] = set()
        """Open tasks whose worker died while it ran them."""
        self._buried: dict[TaskId, tuple[int, float]] = {}
        """Tasks during which a worker died before it joined this scheduler: the attempt, and until when it counts."""
        self._began = trace.now
        self._seen: set[int] = set()
        """The clients that have been here."""
        self._unsubmitted: set[TaskId] = set()
        """Tasks that workers have named when they joined, before their clients had submitted them."""
        self._early_files: dict[TaskId, tuple[int, int]] = {}
        """Of such results that are files: the attempt, and the incarnation of the agent."""
        self._early: dict[TaskId, float] = {}
        """Tasks whose results have come before their clients, and until when these count."""
        self._unread: dict[int, deque[tuple[int, list[int], list[int]]]] = {}
        """By client: the messages with answers that it has not acknowledged: bytes sent since the welcome, ids,
        outcomes."""
        self._deadly: set[str] = set()
        """The digests of functions during which a worker has died."""
        self._seen_answers: dict[effects.Resolved, int] = {}
        """How many rows of the batches that wait in the outbox were checked."""
        self._returned: dict[TaskId, int] = {}
        """Outcomes that holders have sent and that no client has got yet."""
        self._functions: dict[bytes, set[int]] = {}
        """Functions that a worker was sent and not told to forget, by the worker's route."""
        self._names: dict[bytes, int] = {}
        """Incarnations of the clients that are or were here, by route."""
        self._agent_routes: set[bytes] = set()
        self._agent_names: dict[bytes, int] = {}
        """Incarnations of the agents that are or were here, by route."""
        self._resources: dict[int, events.HostResources] = {}
        """What hosts have, by the incarnation of the agent."""
        self._worker_names: dict[bytes, int] = {}
        """Incarnations of the workers that are here, by route."""
        self._cancelled: set[TaskId] = set()
        """Tasks whose cancel has no answer yet."""
        self._kept: set[TaskId] = set()
        """Cancelled tasks that a worker has just refused to give back."""
        self._windows: dict[bytes, list[int]] = {}
        """By client's route: its result window, bytes sent since the welcome, bytes that it acknowledged."""
        self._greeted: set[bytes] = set()
        """Routes of clients whose hello came in this step."""
        self._late_acks: list[events.Received] = []
        """What such clients have acknowledged since, in the count of the new welcome."""
        self._reported: set[bytes] = set()
        """Routes of workers whose end was reported in this step, and so the end of their running tasks."""
        self._lost: set[bytes] = set()
        """Routes that were lost in this step. Messages to them do no harm."""

    # -------------------------------------------------------------------------------------------------- what comes in

    def before(self, event: events.Event) -> None:
        """Note an event. Call it before the core handles the event."""
        self._check_losses()
        self._take_awaited(None)
        if isinstance(event, events.Submit):
            self._submitted(event)
        elif isinstance(event, events.Function):
            self._has_environments = self._has_environments or event.environment != ""
        elif isinstance(event, events.Results):
            self._results(event)
        elif isinstance(event, events.Cancel):
            self._cancel(event)
        elif isinstance(event, events.Retracted):
            self._retracted(event)
        elif isinstance(event, events.WorkerDied):
            self._worker_died(event)
        elif isinstance(event, events.Started) and event.route in self._workers:
            self._started[event.route].update(zip(event.clients, event.ids, event.attempts))
        elif isinstance(event, events.Resumed):
            self._suspended.difference_update(zip(event.clients, event.ids, event.attempts))
        elif isinstance(event, events.Suspended):
            self._suspended.update(zip(event.clients, event.ids, event.attempts))
            for name, attempt in zip(zip(event.clients, event.ids), event.attempts):
                holder = self._held.holder(name)
                if holder is not None:
                    self._started[holder].add((*name, attempt))
                if name in self._open and self._open[name][-1].release_resources:
                    self._held.release(name)
        elif isinstance(event, events.Hello):
            self._hello(event)
        elif isinstance(event, events.Transferred):
            agent = self._agents.get(event.route)
            if agent is not None and not event.error:
                for name in zip(event.clients, event.ids):
                    self._objects.transferred(name, agent.incarnation)
        elif isinstance(event, events.Objects):
            for object_id, value in zip(event.ids, event.values):
                self._take_objects(events.Object(event.route, object_id, "", [value]))
        elif isinstance(event, (events.Object, events.ForgetObjects)):
            agent = self._agents.get(event.route)
            if agent is None:
                self._take_objects(event)
            elif isinstance(event, events.Object):
                self._objects.fetched((event.client, event.id), agent.incarnation)
            else:
                for name in zip(event.clients, event.ids):
                    self._objects.missing(name, agent.incarnation)
        elif isinstance(event, events.HeldResults) and event.route in self._clients:
            self._claimed(self._clients[event.route], event)
        elif isinstance(event, events.Received):
            if event.route in self._greeted:
                self._late_acks.append(event)
            else:
                self._acknowledged(event)
        elif isinstance(event, events.Goodbye):
            self._lost.add(event.route)
            self._reported.update(self._routes_of_agent(event.route))
            self._reported.add(event.route)

    def ticked(self) -> None:
        """Note a tick. Call it after the core's tick."""
        self._check_losses()
        self._take_awaited(self._trace.now)

    def _submitted(self, event: events.Submit) -> None:
        client = self._clients.get(event.route)
        if client is None or any(number not in client.functions for number in event.functions):
            return
        self._names[event.route] = client.incarnation
        if not event.inputs and not event.keep and not self._has_duplicates:
            submitted = self._submitted_ids.setdefault(event.route, set())
            twice = submitted.intersection(event.ids)
            self._expect(not twice, "submitted twice after one hello", client.name, sorted(twice)[:5])
            submitted.update(event.ids)
        self._objects.kept_earlier([(client.incarnation, each) for each in event.keep_earlier if _knows(client, each)])
        unread = self._unread_by(client)
        for row, (task_id, inputs) in enumerate(zip(event.ids, inputs_of(event))):
            # A known row does not count twice, nor does one whose answer is on its way.
            name = client.incarnation, task_id
            is_wanted = bool(event.keep) and event.keep[row] != events.KEEP_NO
            if not is_wanted and task_id in unread:
                self._trace.count("answered tasks submitted again")
                continue
            there = self._open.setdefault(name, [])
            if not there or not _knows(client, task_id):
                if name in self._buried:
                    number = event.functions[row if len(event.functions) > 1 else 0]
                    self._deadly.add(client.functions[number].name)
                if there:  # it has been answered
                    self._early.pop(name, None)
                    self._buried.pop(name, None)
                there.append(event.options)
                self._gangs.submitted(name, event.options)
                stored = self._core.tables.objects.find(client, task_id)
                is_kept = stored is not None and not stored.is_missing
                self._objects.submitted(event, row, name, inputs, is_kept)
                is_late = self._early.get(name, self._trace.now) < self._trace.now
                if is_late and name not in self._core.tables.early:  # it looks once a second for those that are late
                    self._early.pop(name)
                    self._early_files.pop(name, None)
                self._take_early_file(name)
                if name not in self._held:
                    self._attempts.pop(name, None)
            else:
                self._objects.submitted_again(name, inputs)

    def _claimed(self, client: Client, event: events.HeldResults) -> None:
        """Note the kept results that a client names after a restart."""
        here = {agent.incarnation for agent in self._agents.values()}
        for file in event.ids:
            name = client.incarnation, value_id(file)
            if name in self._open or self._core.tables.objects.find(client, name[1]) is not None:
                continue
            attempt, agent = self._early_files.pop(name, (0, 0))
            early = {agent} & here if attempt and file_id(name[1], attempt) == file else set()
            self._early.pop(name, None)
            self._trace.count("kept results claimed after a restart")
            self._objects.claimed((client.incarnation, file), early, here)

    def _comes_early(self, name: TaskId) -> bool:
        """Whether a result has come before its client has submitted the task to this scheduler."""
        return name not in self._open and name in self._unsubmitted

    def _take_early_file(self, name: TaskId) -> None:
        """Let a result count whose client is here now, if the agent is here that has it."""
        attempt, agent = self._early_files.get(name, (0, 0))
        is_kept = attempt and name in self._early  # it does not expire while its task is open
        if is_kept and any(each.incarnation == agent for each in self._agents.values()):
            del self._early_files[name]
            self._trace.count("kept results that came before their clients")
            self._objects.made(name, attempt)
            self._objects.stored(name, agent)

    def _take_objects(self, event: events.Object | events.ForgetObjects) -> None:
        client = self._clients.get(event.route)
        if client is None:
            return
        if isinstance(event, events.ForgetObjects):
            self._objects.forgotten([(client.incarnation, each) for each in event.ids])
            return
        stored = self._core.tables.objects.find(client, event.id)
        name = client.incarnation, event.id
        if stored is None or stored.is_awaited:
            self._objects.object_sent(name, is_file=event.file_bytes > 0)
        elif not event.file_bytes:
            self._objects.fetched(name, client.incarnation)
        else:
            self._objects.announced_again(name)

    def _results(self, event: events.Results) -> None:
        early_bytes = self._core.tables.early_bytes
        most_early_bytes = self._core.limits.memory_limit_bytes // EARLY_DIVISOR
        ends = list(accumulate(event.sizes))
        for row, (client, task_id, attempt, outcome) in enumerate(
            zip(event.clients, event.ids, event.attempts, event.outcomes)
        ):
            name = client, task_id
            worker = self._workers.get(event.route)
            if outcome == effects.OUTCOME_STORED and worker is not None:
                if self._core.tables.agents.find(worker.agent) is not None:
                    self._objects.found_at(worker.agent, (client, file_id(task_id, attempt)))
            if self._held.is_holder(event.route, name, attempt):
                if name in self._open and self._open[name][-1].calls:
                    answer = event.large.get(row) or event.payload[ends[row] - event.sizes[row] : ends[row]]
                    self._check_calls(name, outcome, answer, event.calls[row] if event.calls else 0)
                if outcome == effects.OUTCOME_STORED and self._awaits_agent(event.route, name, attempt):
                    continue
                self._drop(name)
                lead = self._gangs.lead(name)
                if lead is not None:
                    self._gangs.ended(name, outcome)
                    self._failures[lead] += outcome == effects.OUTCOME_RETRYABLE
                    continue
                self._returned[name] = outcome
                self._died.discard(name)
                # A client sends the result as an object if it has it, or is to get it as a file.
                if outcome != effects.OUTCOME_FILE and not self._is_from_client(name):
                    self._objects.made(name, attempt)
                is_first = self._comes_early(name)
                size = len(event.large[row]) if row in event.large else event.sizes[row]
                early_bytes += size * is_first
                has_ended = outcome < effects.OUTCOME_RETRYABLE or outcome in _VALUES
                if is_first and has_ended and early_bytes <= most_early_bytes:
                    self._early[name] = self._trace.now + self._core.limits.client_timeout_seconds
                    if outcome == effects.OUTCOME_STORED:
                        self._early_files[name] = attempt, self._workers[event.route].agent
                if outcome == effects.OUTCOME_RETRYABLE:
                    self._failures[name] += 1
                elif outcome == effects.OUTCOME_STORED:
                    self._stored(name, event.route)

    def _is_from_client(self, name: TaskId) -> bool:
        """Whether the scheduler has an object of this name from its client."""
        client = self._core.tables.clients.by_incarnation.get(name[0])
        stored = None if client is None else client.objects.get(name[1])
        return stored is not None and stored.is_from_client

    def _check_calls(self, name: TaskId, outcome: int, answer: bytes, ended: int) -> None:
        """A row's answer has a value for each call that has ended, except the failed one."""
        if outcome < effects.OUTCOME_RETRYABLE and has_row_form(answer):
            expected = RowAnswer(answer).count + (outcome != effects.OUTCOME_VALUE)
            self._expect(ended == expected, "a row is said to have ended so many calls", name, ended, expected)

    def _awaits_agent(self, route: bytes, name: TaskId, attempt: int) -> bool:
        """Whether the result that this holder of a task has stored waits for its agent."""
        worker = self._workers[route]
        return self._awaited.waits(worker, name, attempt, self._agents.values(), self._trace.now)

    def _take_awaited(self, now: float | None) -> None:
        """Note the stored results that have waited for their agent. `now`: see `AgentCheck.pop_due`."""
        self._awaited.look(self._workers, self._agents.values(), self._trace.now)
        for name in [name for name in self._early_files if name in self._open]:
            self._take_early_file(name)
        for worker, name, attempt in self._awaited.pop_due(self._agents.values(), now):
            if self._held.is_holder(worker.route, name, attempt):
                self._trace.count("results that waited for their agent")
                self._drop(name)
                self._returned[name] = effects.OUTCOME_STORED
                self._died.discard(name)
                self._objects.made(name, attempt)
                if self._comes_early(name):
                    self._early[name] = self._trace.now + self._core.limits.client_timeout_seconds
                    self._early_files[name] = attempt, worker.agent
                elif self._awaited.is_here(worker, self._agents.values()):
                    self._stored(name, worker.route)
                else:  # it runs again
                    self._trace.count("results whose agent came too late")
                    self._taken(name)

    def _stored(self, name: TaskId, route: bytes) -> None:
        """Note that the holder of this task has written its result to a file."""
        agent = self._core.tables.agents.find(self._workers[route].agent)
        if agent is not None and self._objects.stored(name, agent.incarnation):
            self._trace.count("kept results")
        else:
            self._failures[name] += 1  # out of reach: it runs again

    def _cancel(self, event: events.Cancel) -> None:
        client = self._clients.get(event.route)
        if client is not None:
            names = ((client.incarnation, task_id) for task_id in event.ids)
            self._cancelled.update(name for name in names if name in self._open)

    def _retracted(self, event: events.Retracted) -> None:
        for client, task_id, attempt, given in zip(event.clients, event.ids, event.attempts, event.returned):
            name = client, task_id
            if self._held.is_holder(event.route, name, attempt):
                if given:
                    if name in self._followers:
                        self._trace.count("followers given back")
                    self._drop(name)
                elif name in self._cancelled:
                    self._kept.add(name)

    def _worker_died(self, event: events.WorkerDied) -> None:
        agent = self._agents.get(event.route)
        if agent is not None and event.attempt:
            if all(worker.incarnation != event.incarnation for worker in self._workers.values()):
                self._bury((event.client, event.id), event.attempt)
        for route, worker in list(self._workers.items()):
            if agent is not None and worker.incarnation == event.incarnation:
                self._reported.add(route)
                name = event.client, event.id
                if self._held.is_holder(route, name, event.attempt):
                    self._deadly.add(self._function_of(name))
                # Not the attempts that it has begun before a second hello, after which it got them again.
                attempts = {*self._suspended, *self._started[route], (*name, event.attempt)}
                begun = {each[:2] for each in attempts if each[2] and self._held.is_holder(route, each[:2], each[2])}
                for name in begun:
                    unclaimed = self._core.tables.unclaimed.get(name)
                    # Else its client has left, and the task was being stopped: its death counts for nobody.
                    if name not in self._open and unclaimed is not None and not unclaimed.is_over:
                        self._bury_until(name, self._held.attempt(name))
                for name in self._held.up_to(route, begun):
                    if name not in begun and name in self._open and self._open[name][-1].calls > 1:
                        continue  # a row of several calls has ended, and its answer is lost
                    name = self._gangs.lead(name) or name
                    self._failures[name] += 1
                    self._died.add(name)

    def _bury(self, name: TaskId, attempt: int) -> None:
        """Note the death of a worker that this scheduler does not know, if the task has not been dispatched here."""
        is_over = name not in self._open and self._has_submitted(name)
        if is_over or name in self._held or name in self._attempts or self._buried.get(name, (0, 0))[0] >= attempt:
            return
        self._trace.count("deaths without a scheduler")
        self._deadly.add(self._function_of(name))
        self._bury_until(name, attempt)
        self._failures[name] += 1

    def _bury_until(self, name: TaskId, attempt: int) -> None:
        self._buried[name] = attempt, self._trace.now + self._core.limits.client_timeout_seconds

    def _check_buried(self, name: TaskId, attempt: int, options: events.Options) -> None:
        """Check that a task may be dispatched that has ended, or whose worker has died, before its client came."""
        is_early = self._trace.now < self._early.pop(name, 0.0) and not options.gang_size
        self._early_files.pop(name, None)
        self._unsubmitted.discard(name)
        self._expect(not is_early, "runs again, though its result came before its client", name)
        died, until = self._buried.pop(name, (0, 0.0))
        if self._trace.now < until and not options.gang_size:
            has_failed = attempt > died and options.retries != 0
            self._expect(has_failed, "a death before its client came does not count", name, attempt, died)

    def _hello(self, event: events.Hello) -> None:
        if event.role == events.AGENT:
            self._agent_routes.add(event.route)
            self._agent_names[event.route] = event.incarnation
            self._resources[event.incarnation] = event.resources
            self._objects.named_at(event.incarnation, {(client, file) for client, file, _ in event.running})
        elif event.role == events.CLIENT:
            self._seen.add(event.incarnation)
            self._greeted.add(event.route)
            self._submitted_ids.pop(event.route, None)
            known = self._core.tables.clients.find(event.incarnation)
            if known is None:
                self._unread.pop(event.incarnation, None)
                self._returning.note_hello(event, self._trace.now)
            else:  # tasks that workers still hold are wanted again before they are submitted again
                self._names[event.route] = event.incarnation
                for task_id, task in known.tasks.items():
                    self._open.setdefault((event.incarnation, task_id), [task.options])
        if event.role != events.WORKER:
            return
        known_worker = self._workers.get(event.route)
        if known_worker is not None and known_worker.incarnation == event.incarnation:
            if event.scheduler not in (0, self._incarnation):
                return  # sent before the welcome: it changes nothing
        for route, worker in list(self._workers.items()):
            if worker.incarnation == event.incarnation:
                self._lose(route, is_blamed=False)
                self._worker_names.pop(route, None)
        self._worker_names[event.route] = event.incarnation
        running = len(event.running) - event.finished
        for row, (client, task_id, attempt) in enumerate(event.running):
            name = client, task_id
            if row >= running and (self._gangs.lead(name) or name) not in self._open and self._has_submitted(name):
                continue  # its client has the answer
            if name not in self._held:
                claim = event.bookings.get((client, task_id, attempt))
                if claim is not None:
                    self._trace.count("bookings named again")
                    self._named.append((event.incarnation, (client, task_id, attempt), claim[0]))
                self._started[event.route].add((client, task_id, attempt))
                self._held.hold(name, event.route, attempt, None if claim is None else (event.agent, claim))
                if name not in self._open:
                    self._unsubmitted.add(name)
                self._buried.pop(name, None)

    def _has_submitted(self, name: TaskId) -> bool:
        """Whether a client that is here has submitted this task since the scheduler's start."""
        client = self._core.tables.clients.find(name[0])
        return client is not None and not client.is_gone and name[1] <= client.highest_id

    # ------------------------------------------------------------------------------------------------- what goes out

    def after(self, collected: list[effects.Effect]) -> None:
        """Check the effects of one step."""
        self._check_losses()
        self._check_named()
        self._reported.clear()
        try:
            self._check_effects(collected)
            for event in self._late_acks:
                self._acknowledged(event)
            self._trace.count("gangs begun", self._gangs.step_over())
            self._check_cancels()
            if not self._has_environments and any(effect.kind == effects.DISPATCH for effect in collected):
                check_priorities(collected, self._workers, self._waiting(), self._open, self._share_of)
        finally:
            self._objects.step_over()
            self._lost.clear()
            self._kept.clear()
            self._greeted.clear()
            self._late_acks.clear()

    def _check_named(self) -> None:
        """Check that the scheduler has booked what workers named."""
        for worker, name, number in self._named:
            holding = self._core.holdings.find(worker, name)
            found = None if holding is None or holding.booking is None else holding.booking.number
            is_here = self._core.tables.workers.find(worker) is not None and name[:2] in self._held
            self._expect(not is_here or found == number, "a booking that a worker named was forgotten", name, found)
        self._named.clear()

    def _check_limit(self, limit: str, name: TaskId) -> None:
        """Check that a dispatched task does not exceed a limit of tasks that run at once."""
        self._trace.count("dispatched within a limit")
        most = self._core.task_limits.by_name[limit].settings.most
        others = [held for held in self._held if held in self._open and limit in self._open[held][-1].limits]
        self._expect(not most or len(others) < most, f"dispatched beyond the limit {limit}", name, others)

    def _share_of(self, incarnation: int) -> object:
        """What is equal for clients whose ranks are compared."""
        client = None if self._core.limits.has_common_ranks else self._core.tables.clients.find(incarnation)
        return None if client is None else client.share

    def _check_effects(self, collected: list[effects.Effect]) -> None:
        # Answers of kept results wait in the outbox. What they say holds already.
        later = [client.outgoing for client in self._core.outbox.clients if client.outgoing is not None]
        collected = self._without_repeats(collected)
        resolved = [effect for effect in collected if isinstance(effect, effects.Resolved)] + later
        own_files: list[TaskId] = []
        for effect in collected:
            if isinstance(effect, effects.Retract):
                self._retracted_from(effect)
            elif isinstance(effect, effects.Stop):  # it goes behind the answers of a gang whose members it stops
                self._given_up(effect)
        for batch in resolved:
            if batch.route in self._clients:
                client = self._clients[batch.route].incarnation
                for task_id, outcome in zip(batch.ids, batch.outcomes):
                    self._objects.ended((client, task_id), outcome)
                    if outcome == effects.OUTCOME_KEPT:
                        self._take_early_file((client, task_id))
        for effect in collected:
            if isinstance(effect, effects.ForgetObjects) and effect.route in self._clients:
                client = self._clients[effect.route].incarnation
                own, lost = self._objects.split_own_files(client, effect.ids)
                self._objects.told_missing(lost)
                for name in lost:
                    self._early.pop(name, None)
                    self._early_files.pop(name, None)
                self._trace.count("losses told to clients", len(lost))
                own_files += own
        for effect in [*later, *collected]:
            if isinstance(effect, effects.Dispatch):
                self._dispatched(effect)
            elif isinstance(effect, effects.Resolved):
                self._resolved(effect, self._seen_answers.get(effect, 0))
                if effect not in later:
                    self._count_sent(effect)
            elif isinstance(effect, effects.Function):
                self._expect_peer(effect.route, self._workers, "a function goes to no worker")
                self._functions.setdefault(effect.route, set()).add(effect.number)
            elif isinstance(effect, effects.Object) and effect.route in self._clients:
                self._trace.count("values sent to clients")
            elif isinstance(effect, effects.Object):
                self._expect_peer(effect.route, {**self._workers, **self._agents}, "an object goes to no peer")
                self._objects.sent(effect)
            elif isinstance(effect, effects.TransferObjects) and effect.route in self._agents:
                self._objects.ordered(zip(effect.clients, effect.ids), self._agents[effect.route].incarnation)
            elif isinstance(effect, effects.ForgetObjects) and effect.route in self._agents:
                self._forgotten_at_host(effect, self._agents[effect.route].incarnation)
            elif isinstance(effect, effects.ForgetObjects) and effect.route in self._workers:
                agent = self._core.tables.agents.find(self._workers[effect.route].agent)  # None: it is lost
                self._objects.forgotten_at_worker(effect, 0 if agent is None else agent.incarnation)
            elif isinstance(effect, effects.ForgetFunctions):
                self._functions.setdefault(effect.route, set()).difference_update(effect.numbers)
            elif isinstance(effect, (effects.Retract, effects.Stop)):
                self._expect_peer(effect.route, self._workers, "a retract or stop goes to no worker")
            elif isinstance(effect, effects.ChangeWorker):
                changed = self._core.tables.workers.find(effect.worker)
                is_beside = effect.mode == effects.CHANGE_BESIDE
                held = 0 if changed is None else changed.task_count if is_beside else len(changed.tasks)
                self._expect(not held, "changed while it holds tasks", effect.worker)
                self._trace.count("successors" if is_beside else "changes of workers")
            elif isinstance(effect, effects.EndWorker):
                self._expect_peer(effect.route, self._agents, "EndWorker goes to no agent")
            elif isinstance(effect, (effects.Started, effects.CancelRefused, effects.Credit)):
                if isinstance(effect, effects.CancelRefused):
                    self._cancel_refused(effect)
                self._expect_peer(effect.route, self._clients, "a client's message goes to no client")
            elif isinstance(effect, effects.Error):
                self._trace.note("scheduler refuses a message of", effect.route.decode(), effect.text)
                self._trace.count("errors told to peers")
                self._rejected(effect)
        for name in own_files:
            self._objects.freed_at(name, name[0], was_sent=False)
        self._seen_answers = {batch: len(batch.ids) for batch in later}

    def _without_repeats(self, collected: list[effects.Effect]) -> list[effects.Effect]:
        """Check that clients that join again get the answers once more that they have not acknowledged. Returns the
        other effects."""
        others: list[effects.Effect] = []
        expected: dict[bytes, deque[tuple[int, list[int], list[int]]]] = {}
        for effect in collected:
            if isinstance(effect, effects.Welcome):
                self._windows[effect.route] = [effect.result_window, 0, 0]
                client = self._clients.get(effect.route)
                if client is not None:
                    expected[effect.route] = self._unread.pop(client.incarnation, deque())
            elif isinstance(effect, effects.Resolved) and expected.get(effect.route):
                _, ids, outcomes = expected[effect.route].popleft()
                same = effect.ids == ids and effect.outcomes == outcomes
                self._expect(same, "other answers are repeated than those that were not acknowledged", effect.ids, ids)
                self._count_sent(effect)
                self._trace.count("answers repeated", len(ids))
                continue
            others.append(effect)
        self._expect(not any(expected.values()), "answers are not repeated", expected)
        return others

    def _count_sent(self, effect: effects.Resolved) -> None:
        """Count the bytes of a message with answers, until its client acknowledges them."""
        window = self._windows[effect.route]
        window[1] += effect.rows.byte_count
        unread = self._unread.setdefault(self._clients[effect.route].incarnation, deque())
        unread.append((window[1], list(effect.ids), list(effect.outcomes)))

    def _unread_by(self, client: Client) -> set[int]:
        """The tasks that have ended for good and whose answers the client has not acknowledged."""
        answers = [(ids, outcomes) for _, ids, outcomes in self._unread.get(client.incarnation, ())]
        for batch in (client.outgoing, *self._core.outbox._effects):  # of this very step
            if isinstance(batch, effects.Resolved) and batch.route == client.route:
                answers.append((batch.ids, batch.outcomes))
        again = effects.OUTCOME_KEPT, effects.OUTCOME_INPUT_LOST
        return {each for ids, outcomes in answers for each, outcome in zip(ids, outcomes) if outcome not in again}

    def _acknowledged(self, event: events.Received) -> None:
        window = self._windows.get(event.route)
        if window is None:
            return
        window[2] = max(window[2], min(event.bytes, window[1]))
        client = self._clients.get(event.route)
        unread = None if client is None else self._unread.get(client.incarnation)
        while unread and unread[0][0] <= window[2]:
            unread.popleft()

    def _forgotten_at_host(self, effect: effects.ForgetObjects, agent: int) -> None:
        """Check the objects that an agent is told to forget."""
        if self._trace.now < self._began + self._core.limits.client_timeout_seconds:
            early = [file for file in self._objects.named(agent, effect) if file[0] not in self._seen]
            self._expect(not early, "removed from a host before its client has come", early)
        removed = self._objects.forgotten_at_agent(effect, agent)
        self._trace.count("copies removed from hosts without room", len(removed))
        for held in self._held if removed else ():
            worker = self._workers.get(self._held.holder(held) or b"")
            for name in removed if worker is not None and worker.agent == agent else ():
                self._expect(
                    not self._objects.reads(held, name), "a copy is removed that a task there reads", name, held
                )

    def _check_may_stay(self, name: TaskId, flags: int, worker: Worker) -> None:
        """Check that the large result of a dispatched task stays on its host, if an agent is there or about to join."""
        client = self._core.tables.clients.find(name[0])
        task = None if client is None else client.tasks.get(name[1])
        if task is None or not self._objects.is_kept(name) or not task.function.may_store:
            return
        is_expected = self._awaited.is_expected(worker, self._agents.values(), self._trace.now)
        may_stay = bool(flags & effects.FLAG_MAY_STORE)
        self._expect(may_stay == is_expected, "dispatched so that its result goes elsewhere", name, may_stay)
        self._trace.count("tasks whose small results may stay", flags >= effects.FLAG_STORE_SMALL)
        is_first = worker.agent not in {agent.incarnation for agent in self._agents.values()}
        self._trace.count("results that may stay before their agent has joined", may_stay and is_first)

    def _retracted_from(self, effect: effects.Retract) -> None:
        """A worker that does not answer loses the tasks that it is asked not to begin."""
        worker = self._workers.get(effect.route)
        for client, task_id, attempt in zip(effect.clients, effect.ids, effect.attempts):
            name = client, task_id
            if worker is None or not self._held.is_holder(effect.route, name, attempt):
                continue
            here = [task for task in worker.tasks.values() if (task.client.incarnation, task.id) == name]
            if (not here or here[0].attempt != attempt) and name in self._followers:
                self._trace.count("taken back behind a failed task")
                self._drop(name)
            elif not here or here[0].attempt != attempt:
                self._expect(bool(worker.running or worker.unclaimed), "taken from a worker that may run it", name)
                self._trace.count("taken from a silent worker")
                self._taken(name)
                self._drop(name)

    def undelivered(self, effect: effects.Effect) -> None:
        """Note a Dispatch that could not be delivered: no worker has these tasks."""
        if isinstance(effect, effects.Dispatch) and effect.route in self._workers:
            for name, attempt in zip(zip(effect.clients, effect.ids), effect.attempts):
                if self._held.is_holder(effect.route, name, attempt):
                    self._trace.count("dispatched to no worker")
                    self._drop(name)

    def _given_up(self, effect: effects.Stop) -> None:
        """Note stopped tasks. No worker holds a task whose client has stayed away for its lease. If the client comes
        back before the worker is done, the task runs again."""
        for client, task_id, attempt in zip(effect.clients, effect.ids, effect.attempts):
            is_unclaimed = (client, task_id) in self._core.tables.unclaimed
            is_member = self._gangs.lead((client, task_id)) is not None  # its gang begins again
            if is_unclaimed and (is_member or self._core.tables.clients.find(client) is None):
                if self._held.is_holder(effect.route, (client, task_id), attempt):
                    self._trace.count("given up, because no client asked for it")
                    self._drop((client, task_id))

    def _dispatched(self, effect: effects.Dispatch) -> None:
        worker = self._workers.get(effect.route)
        self._expect(worker is not None, "a dispatch goes to no worker", effect.route)
        assert worker is not None
        sent = self._functions.get(effect.route, set())
        agent = self._core.tables.agents.find(worker.agent)
        agent_route = None if agent is None else agent.route
        inputs = dispatched_inputs(effect)
        for row, (name, attempt, function) in enumerate(
            zip(zip(effect.clients, effect.ids), effect.attempts, effect.functions)
        ):
            self._objects.dispatched(name, inputs[row], effect.route, agent_route, worker.agent)
            for each, source, _ in inputs[row]:
                if source == effects.INPUT_OF_ROW_BEFORE:
                    is_before = (name[0], each) in zip(effect.clients[:row], effect.ids[:row])
                    self._expect(is_before, "dispatched without the row whose result it reads", name, each)
                    self._followers.add(name)
                    self._trace.count("inputs of a row before")
            lead = self._gangs.lead(name)
            if lead is not None:
                self._gangs.dispatched(name, attempt)
                self._expect(worker.task_count == 1, "a member of a gang goes to a busy worker", name)
            self._expect((lead or name) in self._open, "dispatched, and no client waits for it", name)
            options = self._open[lead or name][-1]
            self._check_buried(name, attempt, options)
            is_split = options.calls > 1 and name in self._died
            self._expect(not is_split, "a row of several calls runs again, though its worker died in it", name)
            self._expect(name not in self._held, "dispatched while another holds it", name, self._held.holder(name))
            self._expect(attempt > self._attempts.get(name, 0), "dispatched under an old attempt", name, attempt)
            self._check_number(name, attempt)
            self._check_may_stay(name, effect.row_options.get(row, (0, 0, 0))[0], worker)
            self._expect(function in sent, "dispatched without its function", name, function)
            self._expect(serves(worker, options.capabilities), "dispatched to a worker that lacks something", name)
            for limit in options.limits:
                self._check_limit(limit, name)
            booking = self._check_booking(name, options.resources, effect.booking_of(row), worker)
            self._check_window(name)
            self._returning.check_dispatch(name, self._trace.now)
            if attempt > 1 or self._attempts.get(name, 0):
                self._trace.count("dispatched again")
            self._attempts[name] = attempt
            self._held.hold(name, effect.route, attempt, booking)
        self._trace.count("dispatched", len(effect.ids))
        self._expect(
            worker.task_count <= self._core.limits.queue_size,
            "a worker holds too much",
            effect.route,
            worker.task_count,
        )

    def _check_booking(
        self, name: TaskId, wanted: events.Resources, text: str, worker: Worker
    ) -> tuple[int, events.Claim] | None:
        """Check that a dispatched task has the resources that it asks for, and that no other task has them."""
        self._expect(bool(wanted) == bool(text), "dispatched without its resources, or with others", name, text)
        if not wanted:
            return None
        self._trace.count("dispatched with resources")
        claim = read_claim(text)
        self._expect(tuple((each, amount) for each, amount, _ in claim[1]) == wanted, "has other resources", name, text)
        claims = self._held.bookings(worker.agent)
        if (worker.route, claim[0]) in claims:
            self._trace.count("dispatched with resources of another task")
        elif worker.agent in self._resources:
            fault = double_booking([claim, *claims.values()], self._resources[worker.agent])
            self._expect(not fault, f"dispatched with resources that others have: {fault}", name, text)
        return worker.agent, claim

    def _check_number(self, name: TaskId, attempt: int) -> None:
        """No attempt of a task has the number of an earlier attempt, even if the task has ended and is submitted
        again."""
        client = self._core.tables.clients.find(name[0])
        record, numbers = self._numbers.get(name[0], (None, {}))
        if record is not client:
            numbers = {}
            self._numbers[name[0]] = client, numbers
        self._expect(
            attempt > numbers.get(name[1], 0), "dispatched under the number of an earlier attempt", name, attempt
        )
        numbers[name[1]] = attempt

    def _rejected(self, effect: effects.Error) -> None:
        """Note tasks that were not accepted."""
        client = self._clients.get(effect.route)
        for name in [(client.incarnation, each) for each in effect.tasks] if client is not None else ():
            if not _knows(client, name[1]):
                self._open.pop(name, None)
                self._cancelled.discard(name)

    def _cancel_refused(self, effect: effects.CancelRefused) -> None:
        client = self._clients.get(effect.route)
        if client is not None:
            self._cancelled.difference_update((client.incarnation, task_id) for task_id in effect.ids)

    def _check_cancels(self) -> None:
        """A waiting task is cancelled at once. A task that a worker keeps is refused at once, or is being stopped."""
        for name in self._cancelled:
            is_held = name in self._held or any(member in self._held for member in self._gangs.members(name))
            self._expect(is_held, "its cancel was forgotten", name)
        for name in self._kept & self._cancelled:
            task = self._core.tables.clients.by_incarnation[name[0]].tasks.get(name[1])
            is_stopped = task is not None and (
                task.is_stopping or task.gang is not None
            )  # its other members are stopped
            self._expect(is_stopped, "neither refused nor stopped", name)

    def _waiting(self) -> dict[TaskId, events.Options]:
        """Return the tasks that no worker holds and that may be dispatched."""
        takers = {client.incarnation for client in self._clients.values() if not client.pause_reasons}
        waiting = {
            name: options[-1]
            for name, options in self._open.items()
            if name not in self._held and name[0] in takers and not self._may_wait(name)
        }
        # A task that may not run beside suspended tasks waits for another process, and its lane behind it. A worker may
        # say that it has some by giving a row back.
        are_suspended = self._suspended or any(worker.hides_suspended for worker in self._workers.values())
        alone = [
            (name[0], rank(options), options.capabilities)
            for name, options in waiting.items()
            if are_suspended and (options.timeout_seconds or self._function_of(name) in self._deadly)
        ]
        return {
            name: options
            for name, options in waiting.items()
            if (name[0], rank(options), options.capabilities) not in alone
        }

    def _function_of(self, name: TaskId) -> str:
        """The name of the function of an open task; empty if the scheduler has dropped the task."""
        client = self._core.tables.clients.by_incarnation.get(name[0])
        if client is None:
            return ""
        task = client.tasks.get(name[1])
        if task is not None:
            return task.function.name
        batches = (batch for lane in client.lanes.values() for batch in lane.batches)
        batch = next((batch for batch in batches if name[1] in batch.ids), None)
        return "" if batch is None else batch.function_at(batch.ids.index(name[1])).name

    def _may_wait(self, name: TaskId) -> bool:
        """Whether the task may wait while workers are idle: it is blocked, or waits for a host that has its inputs, or
        reads a file that another host has."""
        task = self._core.tables.clients.by_incarnation[name[0]].tasks.get(name[1])
        if task is None:
            return False
        is_near = self._core.core_state.near_data.waits_until.get(task, 0.0) > self._core.tables.clock.now
        return is_near or task.state == BLOCKED or any(stored.is_remote for stored in task.inputs)

    def _check_window(self, name: TaskId) -> None:
        """No task of a client is dispatched while the client does not acknowledge its results."""
        client = self._core.tables.clients.find(name[0])
        assert client is not None
        window, sent, taken = self._windows[client.route]
        self._expect(not window or sent - taken <= window, "its client takes no results", name, sent - taken, window)

    def _resolved(self, effect: effects.Resolved, seen: int) -> None:
        """Check answers. The first `seen` ones were checked before."""
        client = self._clients.get(effect.route)
        self._expect(client is not None, "answers go to no client", effect.route)
        assert client is not None
        self._names[effect.route] = client.incarnation
        for task_id, outcome in zip(effect.ids[seen:], effect.outcomes[seen:]):
            name = client.incarnation, task_id
            self._expect(name in self._open, "answered, and no client waits for it", name, outcome)
            for member in self._gangs.members(name)[1:]:
                self._expect(member not in self._held, "answered, and a member still runs", member)
                self._attempts.pop(member, None)
            self._check_outcome(name, outcome, self._open[name].pop(0))
            self._cancelled.discard(name)
            self._died.discard(name)  # its client may have submitted it again
            if self._open[name]:
                continue
            del self._open[name]
            self._objects.closed(name)
            if outcome != effects.OUTCOME_INPUT_LOST:  # else its attempt counts when the client submits it again
                self._early.pop(name, None)
                self._early_files.pop(name, None)
                self._drop(name)
            elif self._is_host_lost(name):  # its worker is taken for lost too, although its lease may run longer
                self._drop(name)
            self._buried.pop(name, None)
            self._failures.pop(name, None)
            self._returned.pop(name, None)
            self._attempts.pop(name, None)

    def _is_host_lost(self, name: TaskId) -> bool:
        """Whether the agent of the worker that holds a task is gone."""
        worker = self._workers.get(self._held.holder(name) or b"")
        return worker is not None and worker.agent not in {agent.incarnation for agent in self._agents.values()}

    def _check_outcome(self, name: TaskId, outcome: int, options: events.Options) -> None:
        if options.gang_size:
            self._gangs.check_answer(name, outcome)
        returned = self._returned.get(name)
        limit = self._core.limits.task_retries if options.retries < 0 else options.retries
        if options.calls > 1:
            limit = 0
        is_graph = bool(options.graph)
        if self._objects.resolved(name, outcome, returned, is_graph) or self._objects.may_inherit(name, outcome):
            return
        if options.gang_size and outcome < effects.OUTCOME_RETRYABLE:
            pass  # checked above
        elif outcome < effects.OUTCOME_RETRYABLE or outcome == effects.OUTCOME_FILE:
            is_last = returned == effects.OUTCOME_RETRYABLE and outcome == effects.OUTCOME_EXCEPTION
            self._expect(returned == outcome or is_last, "answered with what no holder has sent", name, outcome)
            if is_last:
                self._expect(self._failures[name] > limit, "given up with retries left", name, self._failures[name])
        elif outcome == effects.OUTCOME_WORKER_DIED:
            self._expect(self._failures[name] > limit, "died too seldom for that", name, self._failures[name])
        elif outcome == effects.OUTCOME_TIMED_OUT:
            self._expect(options.timeout_seconds > 0, "timed out without a time limit", name)

    # -------------------------------------------------------------------------------------------------------- inside

    def _check_losses(self) -> None:
        for route in [route for route in self._worker_names if route not in self._workers]:
            self._check_nested(self._worker_names.pop(route))
        for route in [route for route in self._held.routes if route not in self._workers]:
            self._lose(route, is_blamed=route not in self._reported)
        for route in [route for route in self._functions if route not in self._workers]:
            del self._functions[route]
        lost = self._objects.agents_gone(
            {peer.incarnation for peer in (*self._agents.values(), *self._core.tables.clients)}
        )
        self._trace.count("kept results lost", lost)
        left = {route for route in self._agent_routes if route not in self._agents}
        for route in left:
            self._objects.route_gone(route)
        if left:
            self._lost |= left
            self._agent_routes -= left
            here = {agent.incarnation for agent in self._agents.values()}
            lost_hosts = {self._agent_names.pop(route) for route in left} - here
            for name in [name for name, (_, agent) in self._early_files.items() if agent in lost_hosts]:
                del self._early_files[name]
                self._early.pop(name, None)
        gone = [route for route in self._names if route not in self._clients]
        if gone:
            self._lost.update(gone)
            here = {client.incarnation for client in self._clients.values()}
            for route in gone:
                incarnation = self._names.pop(route)
                if incarnation not in here:  # on another route
                    self._forget_client(incarnation)

    def _lose(self, route: bytes, is_blamed: bool) -> None:
        """Note that a worker has ended. If it is unknown which task it ran, the death may count for any of its
        tasks."""
        self._lost.add(route)
        self._functions.pop(route, None)
        self._objects.route_gone(route)
        for name in self._held.remove_all(route):
            self._followers.discard(name)
            lead = self._gangs.lead(name) or name
            if lead not in self._open:
                self._attempts.pop(name, None)
            elif is_blamed:
                self._failures[lead] += 1

    def _check_nested(self, worker: int) -> None:
        """The nested clients of a worker are removed with it, unless the worker has joined again on another
        connection."""
        if all(other.incarnation != worker for other in self._workers.values()):
            left = [client.name for client in self._clients.values() if client.worker == worker]
            self._expect(not left, "its worker is gone", *left)

    def _forget_client(self, gone: int) -> None:
        self._objects.client_gone(gone)
        for early in (self._buried, self._early, self._early_files):
            for name in [name for name in early if name[0] == gone]:
                del early[name]
        for name in [name for name in self._open if name[0] == gone]:
            del self._open[name]
            self._cancelled.discard(name)
            self._failures.pop(name, None)
            self._died.discard(name)
            self._returned.pop(name, None)
            for member in self._gangs.members(name) or [name]:
                if (
                    member not in self._held
                ):  # else these still count: the client may come back before the worker is done
                    self._attempts.pop(member, None)

    def _drop(self, name: TaskId) -> None:
        self._followers.discard(name)
        if self._held.drop(name) and name not in self._open:
            self._attempts.pop(name, None)

    def _routes_of_agent(self, route: bytes) -> list[bytes]:
        agent = self._agents.get(route)
        if agent is None:
            return []
        return [route for route, worker in self._workers.items() if worker.agent == agent.incarnation]

    def _expect_peer(self, route: bytes, peers: Mapping[bytes, object], text: str) -> None:
        self._expect(route in peers or route in self._lost, text, route)

    def _expect(self, condition: bool, text: str, *what: Any) -> None:
        if not condition:
            raise SimulationError(f"{text}: {' '.join(map(str, what))}")


def _knows(client: Client, task_id: int) -> bool:
    """Whether the scheduler has this task without an answer."""
    return task_id in client.tasks or any(lane.batches.find(task_id) for lane in client.lanes.values())
