"""Waiting tasks that no connected worker can run. They are reported once to the operator log and to the client, until a
worker can run them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from scaler_scheduler.core import effects
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.events import CPUS, LEVEL_ANY, LEVEL_LOCKED, LEVEL_MODULES, UNIT, Capabilities, Resources
from scaler_scheduler.core.state.environments import split_kind
from scaler_scheduler.core.state.records import Lane, Worker
from scaler_scheduler.core.state.resource_pools import resources_text, shown_amount
from scaler_scheduler.core.tables import Tables

NO_WORKER_SECONDS = 5.0
"""If tasks wait for this long without any worker, it is reported. Before that, a cluster may be starting."""

JOINING_SECONDS = 5.0
"""If a worker has joined in this time, others may follow, and what is lacking waits so long before it is reported."""

_PYTHON_KIND = "cloudpickle"
_MAX_VERSIONS = 8

MAX_HOSTS = 1024
"""At most so many hosts are compared for one report."""

MAX_NAMES = 8
"""A report names at most so many resources that hosts have."""

MAX_COMPARED = 64
"""A misspelt resource is compared to at most so many resources that hosts have."""

MIN_SIMILARITY = 0.75
"""Of a misspelt resource and one that hosts have; 1 is equality. `cpu` and `gpu` have 0.67."""

MAX_REPORTS = 8
"""One report names at most so many different needs of a client's tasks, and counts the others. The log has the same
lines."""

LEVEL_OPTIONS = {LEVEL_MODULES: " modules", LEVEL_LOCKED: " locked", LEVEL_ANY: " any"}
"""What `--environments` must allow, by the level of an environment."""

Requirement = tuple[int, Capabilities, str, Resources, int]
"""A client, the capabilities, the kind of functions and the resources that its tasks need, and the size of their
gangs."""


class Unschedulable:
    """Reports waiting tasks that no worker can run."""

    def __init__(self, core: CoreState, may_serve: Callable[[Lane], bool]) -> None:
        """`may_serve` says whether a worker could run a lane's tasks after a change of its environment."""
        self._may_serve = may_serve
        self._core = core
        self._tables = core.tables
        self._queues = core.queues
        self._gang_reservation = core.gangs
        self._hosts = core.hosts
        self._outbox = core.outbox
        self._operator_log = core.operator_log
        self.task_count = 0
        """The number of waiting tasks that no worker could run at the last check, while there were workers."""
        self._worker_count = 0
        """The number of workers at the last check."""
        self._joined_at = float("-inf")
        """When the number of workers was last seen to grow."""
        self._lacking_since: dict[Requirement, float] = {}
        """When a check first found that no worker can run tasks of a requirement, until a worker can."""
        self._reported: set[Requirement] = set()
        """The requirements that were reported."""
        self._no_worker_since: float | None = None
        """When tasks began to wait without any worker. None: there is a worker, or no task waits. Infinity: this was
        reported."""

    def check(self, now: float) -> None:
        """Report waiting tasks that no worker can run, once until a worker can."""
        workers = [worker for worker in self._tables.workers if not worker.is_retiring]
        if workers or not self._tables.counts.waiting:
            self._no_worker_since = None
        elif self._no_worker_since is None:
            self._no_worker_since = now
        elif 0 <= self._no_worker_since <= now - NO_WORKER_SECONDS:
            self._report_no_worker()
            self._no_worker_since = float("inf")
        if len(workers) > self._worker_count:
            self._joined_at = now
        self._worker_count = len(workers)
        lacking: dict[Requirement, int] = {}
        lanes: dict[Requirement, Lane] = {}
        for lane in self._unservable_lanes(workers) if workers else ():
            key = lane.client.incarnation, lane.capabilities, lane.kind, lane.resources, lane.gang_size
            lacking[key] = lacking.get(key, 0) + lane.waiting + lane.further_calls
            lanes[key] = lane
        self._lacking_since = {key: self._lacking_since.get(key, now) for key in lacking}
        self._reported.intersection_update(lacking)
        reports: dict[int, list[Requirement]] = {}
        for key in lacking:
            if key not in self._reported and not self._may_join(key, now):
                self._reported.add(key)
                reports.setdefault(key[0], []).append(key)
        for incarnation, keys in reports.items():
            for key in keys[:MAX_REPORTS]:
                self._report(incarnation, self._text(lanes[key], lacking[key], workers))
            further = keys[MAX_REPORTS:]
            if further:
                self._report(incarnation, _further_text(sum(lacking[key] for key in further), len(further)))
        self.task_count = sum(lacking.values())

    def _report_no_worker(self) -> None:
        """Report to the operator, and to clients with waiting tasks unless an autoscaler starts hosts for them."""
        reason = "all workers retire" if len(self._tables.workers) else "no worker is connected"
        self._operator_log.warning(f"{self._tables.counts.waiting_calls} task(s) wait: {reason}")
        if any(agent.pools for agent in self._tables.agents):
            return
        for client in self._tables.clients:
            if client.waiting:
                self._outbox.add(effects.Notice(client.route, f"{client.waiting_calls} task(s) wait: {reason}"))

    def _may_join(self, key: Requirement, now: float) -> bool:
        """Whether a cluster may be starting, whose next workers could run tasks of a requirement."""
        return now < min(self._joined_at, self._lacking_since[key]) + JOINING_SECONDS

    def _report(self, incarnation: int, text: str) -> None:
        """Report to the operator and to the client."""
        client = self._tables.clients.find(incarnation)
        if client is None:
            self._operator_log.warning(text)
        else:
            self._operator_log.client_warning(text)
            self._outbox.add(effects.Notice(client.route, text))

    def _unservable_lanes(self, workers: list[Worker]) -> list[Lane]:
        """Return lanes with waiting tasks that none of these workers can run."""
        can_run = self._core.placement.can_ever_run
        waiting = (lane for lane in self._queues.lanes() if lane.waiting)
        return [lane for lane in waiting if not (can_run(lane, workers) or self._may_serve(lane))]

    def _text(self, lane: Lane, waiting: int, workers: list[Worker]) -> str:
        size, resources = lane.gang_size, lane.resources
        what = f"gang(s) of {size} tasks" if size else "task(s)"
        most = self._gang_reservation.count_able(lane, size) if size else 0
        if most:
            needs = f" with {resources_text(resources)} each" if resources else ""
            can = f"the connected hosts can never run so many at once: at most {most}"
            return f"{waiting} {what}{needs} wait: {can}"
        return f"{waiting} {what} wait: {self._reason(lane.capabilities, lane.kind, resources, workers)}"

    def _reason(self, capabilities: Capabilities, kind: str, resources: Resources, workers: list[Worker]) -> str:
        """Say what is missing: a worker, or the resources of a host."""
        if resources and self._lacks_resources(resources):
            return lacking_text(self._core, resources, workers)
        lack = described_need(self._tables, capabilities, kind, workers)
        if not lack and not resources:  # a host takes its environment, and has no Python for it
            lack = _described_kind(split_kind(kind)[0], workers)
        return f"no connected worker {lack}" if lack else lacking_text(self._core, resources, workers)

    def _lacks_resources(self, resources: Resources) -> bool:
        """Whether no host has these resources, free or not."""
        hosts = islice(self._core.bookings.with_any(resources), MAX_HOSTS)
        return not any(host.could_have(resources) for host in hosts)


def _further_text(waiting: int, needs: int) -> str:
    why = "`scaler_client why TASK` says what each lacks"
    return f"{waiting} more task(s) with {needs} other needs wait that no connected worker can run: {why}"


def described_need(tables: Tables, capabilities: Capabilities, kind: str, workers: list[Worker]) -> str:
    """Describe the missing worker, with the option that makes one. Empty: there is one."""
    parts = []
    plain, environment = split_kind(kind)
    having = [each for each in workers if all(each.capabilities.get(name, 0) >= least for name, least in capabilities)]
    taking = [each for each in workers if environment and _takes(tables, each, environment)]
    if environment:
        lacks_capabilities = not any(each in taking for each in having) and bool(taking or not having)
    else:
        lacks_capabilities = not any(each.can_serve(capabilities, kind) for each in workers)
    if capabilities and lacks_capabilities:
        texts = [f"{name}={amount}" for name, amount in sorted(capabilities)]
        parts.append(f"has {', '.join(texts)} (scaler_cluster --capabilities {','.join(texts)})")
    if environment and not any(each in taking for each in having or workers):
        known = tables.environments.find(environment)
        level = "" if known is None else LEVEL_OPTIONS.get(known.level, "")
        place = "" if known is None or not known.platform else f" on {known.platform}"
        parts.append(f"takes the modules or packages of this client (scaler_cluster --environments{level}{place})")
    elif not environment and not any(worker.can_serve(frozenset(), kind) for worker in workers):
        parts.append(_described_kind(plain, workers))
    return " and ".join(parts)


def _takes(tables: Tables, worker: Worker, environment: str) -> bool:
    """Whether the worker has this environment, or its host allows it."""
    if worker.environment == environment:
        return True
    agent, known = tables.agents.find(worker.agent), tables.environments.find(environment)
    if agent is None or known is None or not known.is_declared:
        return False
    return agent.level >= known.level and known.platform in ("", agent.platform)


def _described_kind(kind: str, workers: list[Worker]) -> str:
    """Describe a worker that can run functions of this kind. Python's kinds are `cloudpickle 3.11`."""
    name, _, version = kind.partition(" ")
    if name == _PYTHON_KIND:
        kinds = {split_kind(kind)[0].partition(" ") for worker in workers for kind in worker.kinds}
        there = sorted(other for own, _, other in kinds if own == _PYTHON_KIND)[:_MAX_VERSIONS]
        has = f"; the workers have {', '.join(there)}" if there else ""
        return f"has Python {version}, as the program has{has}"
    return f"can run functions of kind {kind or '(none)'}"


def _offered_text(resources: Resources, offered: set[str]) -> str:
    """Name what hosts have if no host has one of these resources, because its name may be misspelt. Else empty."""
    if not offered or offered.issuperset(name for name, _ in resources if name != CPUS):
        return ""
    names = sorted(offered)
    further = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f"; hosts offer {', '.join(names[:MAX_NAMES])}{further}"


def _meant_text(resources: Resources, offered: set[str]) -> str:
    """Return ` (did you mean gpu?)` if no host has some of these resources, but one with a similar name. Else empty."""
    wanted = {name for name, _ in resources}
    others = sorted((offered | {CPUS}) - wanted)
    found = [_similar_name(name, others) for name in sorted(wanted - offered - {CPUS})]
    meant = ", ".join(dict.fromkeys(filter(None, found)))
    return f" (did you mean {meant}?)" if meant else ""


def _similar_name(name: str, others: list[str]) -> str:
    """Return the name that differs only in case, or else is most similar; empty: none. Names with digits are not
    compared: `h100` is no misspelt `a100`."""
    from difflib import get_close_matches  # not at the top: most schedulers never need it

    key = name.lower()
    by_key = {other.lower(): other for other in others}
    if key in by_key:
        return by_key[key]
    if _has_digit(key):
        return ""
    plain = [other for other in by_key if not _has_digit(other)]
    close = get_close_matches(key, plain[:MAX_COMPARED], 1, MIN_SIMILARITY)
    return by_key[close[0]] if close else ""


def _has_digit(name: str) -> bool:
    return any(map(str.isdigit, name))


def lacking_text(core: CoreState, resources: Resources, workers: list[Worker]) -> str:
    """Say which resources no host has, by which option a host offers them or which name was probably
    meant, and what the nearest host lacks."""
    wanted = resources_text(resources)
    best: tuple[float, str, str] | None = None
    offered: set[str] = set()
    agents = {worker.agent for worker in workers}
    for host in islice(core.bookings.hosts.values(), MAX_HOSTS):
        agent = core.tables.agents.find(host.agent)
        if agent is None or agent.is_retiring or host.agent not in agents:
            continue
        offered.update(host.pools)
        parts = []
        missing = 0.0
        slots = host.slots or len(list(core.tables.workers.of_agent(host.agent)))
        for name, amount in resources:
            total = (host.cpus or slots * UNIT) if name == CPUS else 0
            if name in host.pools:
                total = host.pools[name].total
            if total < amount:
                parts.append(f"{name}={shown_amount(total)}" if total else f"no {name}")
                missing += (amount - total) / amount
        if parts and (best is None or (missing, agent.host) < best[:2]):
            best = missing, agent.host, ", ".join(parts)
    if best is None:
        return f"no host has {wanted} together with the workers that the tasks need"
    option = f" (scaler_cluster --resources {wanted.replace(', ', ',')})"
    advice = _meant_text(resources, offered) or option
    return f"no host has {wanted}{advice}; the nearest, {best[1]}, has {best[2]}{_offered_text(resources, offered)}"
