"""Waiting tasks that no connected worker can run. They are reported once to the operator log and to the client, until a
worker can run them."""

from __future__ import annotations

from collections.abc import Callable

from scaler_scheduler.core import effects
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.events import Capabilities
from scaler_scheduler.core.state.environments import split_kind
from scaler_scheduler.core.state.records import Lane, Worker

NO_WORKER_SECONDS = 5.0
"""If tasks wait for this long without any worker, the log reports it. Before that, a cluster may be starting."""

_PYTHON_KIND = "cloudpickle"
_MAX_VERSIONS = 8

Requirement = tuple[int, Capabilities, str]
"""A client, and the capabilities and the kind of functions that its tasks need."""


class Unschedulable:
    """Reports waiting tasks that no worker can run."""

    def __init__(self, core: CoreState, may_serve: Callable[[Lane], bool]) -> None:
        """`may_serve` says whether a worker could run a lane's tasks after a change of its environment."""
        self._may_serve = may_serve
        self._tables = core.tables
        self._dispatcher = core.dispatcher
        self._outbox = core.outbox
        self._operator_log = core.operator_log
        self.task_count = 0
        """The number of waiting tasks that no worker could run at the last check, while there were workers."""
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
            reason = "all workers retire" if len(self._tables.workers) else "no worker is connected"
            self._operator_log.warning(f"{self._tables.counts.waiting_calls} task(s) wait: {reason}")
            self._no_worker_since = float("inf")
        lacking: dict[Requirement, int] = {}
        for lane in self._unservable_lanes(workers) if workers else ():
            key = lane.client.incarnation, lane.capabilities, lane.kind
            lacking[key] = lacking.get(key, 0) + lane.waiting + lane.further_calls
        for key, waiting in lacking.items():
            if key not in self._reported:
                self._report(key[0], f"{waiting} task(s) wait: no connected worker {_described(*key[1:], workers)}")
        self._reported = set(lacking)
        self.task_count = sum(lacking.values())

    def _report(self, incarnation: int, text: str) -> None:
        """Report to the operator and to the client."""
        self._operator_log.warning(text)
        client = self._tables.clients.find(incarnation)
        if client is not None:
            self._outbox.add(effects.Notice(client.route, text))

    def _unservable_lanes(self, workers: list[Worker]) -> list[Lane]:
        """Return lanes with waiting tasks that none of these workers can run."""
        return [
            lane
            for lane in self._dispatcher.queues.lanes()
            if lane.waiting
            and not any(worker.can_serve(lane.capabilities, lane.kind) for worker in workers)
            and not self._may_serve(lane)
        ]


def _described(capabilities: Capabilities, kind: str, workers: list[Worker]) -> str:
    """Describe the missing worker."""
    parts = []
    if capabilities:
        parts.append("has " + ", ".join(f"{name}={amount}" for name, amount in sorted(capabilities)))
    plain, environment = split_kind(kind)
    if environment:
        parts.append("takes the modules or packages of this client (scaler_cluster --environments)")
    elif not any(worker.can_serve(frozenset(), kind) for worker in workers):
        parts.append(_described_kind(plain, workers))
    return " and ".join(parts)


def _described_kind(kind: str, workers: list[Worker]) -> str:
    """Describe a worker that can run functions of this kind. Python's kinds are `cloudpickle 3.11`."""
    name, _, version = kind.partition(" ")
    if name == _PYTHON_KIND:
        kinds = {kind.partition(" ") for worker in workers for kind in worker.kinds}
        there = sorted(other for own, _, other in kinds if own == _PYTHON_KIND)[:_MAX_VERSIONS]
        has = f"; the workers have {', '.join(there)}" if there else ""
        return f"has Python {version}, as the program has{has}"
    return f"can run functions of kind {kind or '(none)'}"
