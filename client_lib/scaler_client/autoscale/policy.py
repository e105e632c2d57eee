"""The decisions of `scaler_autoscaler`: which hosts to request, to drain and to end. Sans-IO.

Snapshots and the providers' lists go in with the time, decisions come out. A policy that starts anew finds its hosts by
their names: it decides nothing about a pool before its provider has listed its hosts once.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .backoff import Backoff
from .capacity import Planner, PoolPlan
from .demand import AgentLoad, Demand, Need
from .hosts import REPEAT_SECONDS, Change, Host, HostState, HostTable
from .pools import Pool

DRAIN_GRACE_SECONDS = 60.0
"""A host that has not ended by itself this long after its `retire_seconds` is ended by force."""

SAFE_DRAIN_SHARE = 0.25
"""A host drains only while each of its tasks should end within this share of its `retire_seconds`. Run times vary."""

SPARE_FACTOR = 1.25
"""While tasks of a steady load wait, its number of workers is multiplied by this factor, to work off the backlog."""

_START, _HOSTS = "start", "hosts"
"""What may fail in a pool, beside other calls of its provider."""

_FAILURES = (Change.NEVER_CAME, Change.DIED_AT_BOOT, Change.LOST)


@dataclass(frozen=True)
class Start:
    """Request these hosts."""

    pool: str
    names: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Drain:
    """Ask these hosts to drain: they end when their running tasks have ended."""

    pool: str
    names: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Kill:
    """End these hosts by force: no task of a living worker runs on them."""

    pool: str
    names: tuple[str, ...]
    reason: str


Decision = Start | Drain | Kill


@dataclass(frozen=True)
class PoolCounts:
    """The hosts of one pool: present hosts by state, and former hosts since the start of the policy."""

    pool: str
    wanted: int
    booting: int
    there: int
    draining: int
    """Hosts that drain or end by force."""
    failed: int
    """Hosts that failed: their start failed, they never came, died at boot or were lost."""
    late: int
    """Hosts that came later than 1.25 times the boot time of the pool."""
    left: int
    """Hosts that left at their time limit."""
    rests: bool
    """Whether the pool requests no hosts now, because too many hosts failed."""
    problem: str = ""
    """Why calls of the provider, or hosts of the pool, fail: the newest error. Empty: they do not fail."""
    problem_seconds: float = 0.0
    """For how long this call, or hosts, have failed."""


@dataclass
class _PoolState:
    """What the policy remembers of one pool."""

    pool: Pool
    backoff: Backoff
    wanted: int = 0
    late: int = 0
    left: int = 0
    rests: bool = False
    kind: str = ""
    problems: dict[str, tuple[str, float]] = field(default_factory=dict)
    """What fails, by the call of its provider, or `_HOSTS`: the newest error, and when the first one came. The call
    that failed last is the last one."""
    window: deque[tuple[float, int]] = field(default_factory=deque)
    """Times and numbers of wanted hosts, in descending order of the numbers: the first is the most of the window."""

    def note(self, call: str, error: str, now: float) -> None:
        """Note that this fails, or that it works: the error is empty then."""
        _, since = self.problems.pop(call, ("", now))
        if error:
            self.problems[call] = error, since

    def kept(self, now: float, wanted: int, idle_seconds: float) -> int:
        """Add a number of wanted hosts. Returns the largest one of the last `idle_seconds`."""
        while self.window and self.window[-1][1] <= wanted:
            self.window.pop()
        self.window.append((now, wanted))
        while self.window[0][0] <= now - idle_seconds and len(self.window) > 1:
            self.window.popleft()
        return self.window[0][1]


@dataclass(frozen=True)
class _Figures:
    """Counters of one snapshot, to compute rates from."""

    at: float
    submitted: int
    done: int
    run_seconds: float
    busy: dict[str, float]
    """Busy workers by pool. A host whose tasks have all of a resource has no free worker."""
    running: int
    """The tasks that run on these hosts."""


class AutoscalePolicy:
    """Decides how many hosts each pool has.

    Args:
        pools: the pools; each name once.
        target_seconds: the time in which all waiting and running tasks should end.
        idle_seconds: a host ends when it was not needed for this time.
        draw: returns six random lower-case letters and digits, for names.
        now: seconds of any monotonic clock, as in all calls.

    Raises:
        ValueError: two pools have one name.
    """

    def __init__(
        self, pools: Sequence[Pool], *, target_seconds: float, idle_seconds: float, draw: Callable[[], str], now: float
    ) -> None:
        names = [pool.name for pool in pools]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{names.count(name)} pools have the name {name}")
        self.pools = tuple(pools)
        self.hosts = HostTable(pools)
        self._target_seconds = target_seconds
        self._idle_seconds = idle_seconds
        self._draw = draw
        self._states = {pool.name: _PoolState(pool, Backoff(60.0 + 2 * pool.boot_seconds)) for pool in pools}
        self._figures: deque[_Figures] = deque()
        self._started_at = now

    # ---------------------------------------------------------------------------------------------------------- inputs

    def started(self, pool: str, names: Iterable[str], now: float) -> None:
        """Note that the provider has accepted the request for these hosts."""
        self._states[pool].note(_START, "", now)
        for name in names:
            host = self.hosts.by_name.get(name)
            if host is not None and host.started_at is None:
                host.started_at = now

    def start_failed(self, pool: str, names: Iterable[str], reason: str, now: float) -> None:
        """Note that the provider could not start these hosts, and why."""
        state = self._states[pool]
        state.note(_START, f"hosts could not be started: {reason}", now)
        for name in names:
            host = self.hosts.by_name.get(name)
            if host is not None and host.state is HostState.BOOTING:
                self.hosts.remove(host)
                self.hosts.note_failure(host)
                state.backoff.failed(now)

    def note_call(self, pool: str, call: str, error: str, now: float) -> None:
        """Note the outcome of a call of the provider that is no start, for `counts`.

        Args:
            pool: the pool's name.
            call: any name of the call, such as "list".
            error: what failed, and why; empty: it worked.
            now: the time.
        """
        self._states[pool].note(call, error, now)

    def listed(
        self, pool: str, names: Iterable[str], begun_at: float, now: float, last_lines: Mapping[str, str] | None = None
    ) -> list[str]:
        """Apply a provider's list.

        Args:
            pool: the pool's name.
            names: the hosts that exist, booting hosts included.
            begun_at: when the provider began to list.
            now: the time.
            last_lines: by the names of hosts that have ended, the ends of their logs. None: they are not known.

        Returns:
            The changes, as lines for a log.
        """
        changes = self.hosts.listed(self._states[pool].pool, names, begun_at, now, last_lines or {})
        return [line for host, change in changes if (line := self._count(host, change, now))]

    # ------------------------------------------------------------------------------------------------------- decisions

    def decide(self, demand: Demand, now: float) -> tuple[list[Decision], list[str]]:
        """Decide by a new snapshot.

        Returns:
            The decisions, and lines for a log about hosts that came late, failed or left, and pools that rest.
        """
        resting = {name for name, state in self._states.items() if state.rests}
        changes = self.hosts.seen(demand.agents, now) + self.hosts.expire(now)
        lines = [line for host, change in changes if (line := self._count(host, change, now))]
        for host in self.hosts.by_name.values():
            if host.load is not None and host.load.kind:
                self._states[host.pool.name].kind = host.load.kind
        decisions: list[Decision] = self._end_failed(now)
        self._note_figures(demand, now)
        plans = self._plan(demand, now)
        steady = self._steady_workers()
        for pool in self.pools:
            if self.hosts.is_listed(pool):
                decisions += self._decide_pool(pool, plans[pool.name], steady.get(pool.name, 0.0), demand, now)
        for name, state in self._states.items():
            if state.rests and name not in resting:
                seconds, failed = state.backoff.until - now, state.backoff.failures
                lines.append(f"pool {name} rests for {seconds:.0f} s: {_hosts(failed)} failed since the start")
        return decisions, lines

    def withdraw(self, decisions: Iterable[Decision]) -> None:
        """Forget decisions that were not carried out (a dry run): the hosts are as they were before."""
        for decision in decisions:
            for name in decision.names:
                host = self.hosts.by_name.get(name)
                if host is not None and isinstance(decision, Start):
                    self.hosts.remove(host)
                elif host is not None:
                    host.state = HostState.BOOTING if host.load is None else HostState.THERE

    def counts(self, now: float | None = None) -> list[PoolCounts]:
        """The hosts of each pool now. Without the time, it is not known for how long problems last."""
        found = []
        for name, state in self._states.items():
            by_state = dict.fromkeys(HostState, 0)
            for host in self.hosts.of_pool(state.pool):
                by_state[host.state] += 1
            problem, since = next(reversed(state.problems.values()), ("", now or 0.0))
            found.append(
                PoolCounts(
                    pool=name,
                    wanted=state.wanted,
                    booting=by_state[HostState.BOOTING],
                    there=by_state[HostState.THERE],
                    draining=by_state[HostState.DRAINING] + by_state[HostState.ENDING],
                    failed=state.backoff.failures,
                    late=state.late,
                    left=state.left,
                    rests=state.rests,
                    problem=problem,
                    problem_seconds=0.0 if now is None else now - since,
                )
            )
        return found

    def _count(self, host: Host, change: Change, now: float) -> str:
        """Count a change of a host. Returns a line for a log; empty: the change is usual."""
        state = self._states[host.pool.name]
        age = f"{now - host.asked_at:.0f} s after its request"
        if change in (Change.CAME, Change.CAME_LATE):
            state.backoff.came(now)
            state.note(_HOSTS, "", now)
            if change is Change.CAME:
                return ""
            state.late += 1
            return f"host {host.name} came late, {age}: {host.pool.boot_seconds:.0f} s are usual"
        if change is Change.LEFT:
            state.left += 1
        said = f"; the end of its log: {host.last_lines}" if host.last_lines else ""
        line = "" if change is Change.ENDED else f"host {host.name} {change.value}, {age}{said}"
        if change in _FAILURES:
            self.hosts.note_failure(host)
            state.backoff.failed(now)
            state.note(_HOSTS, line, now)
        return line

    def _end_failed(self, now: float) -> list[Decision]:
        """End hosts by force that failed, or that did not drain in time."""
        late: dict[str, list[Host]] = {}
        for host in self.hosts.by_name.values():
            limit = host.pool.retire_seconds + DRAIN_GRACE_SECONDS
            if host.state is HostState.DRAINING and now - host.end_at > limit:
                host.state, host.end_at = HostState.ENDING, -math.inf
            if host.state is HostState.ENDING and now - host.end_at > REPEAT_SECONDS:
                host.end_at = now
                late.setdefault(host.pool.name, []).append(host)
        return [
            Kill(pool, _names(hosts), f"end {_hosts(len(hosts))} of pool {pool} that failed or did not drain in time")
            for pool, hosts in late.items()
        ]

    def _plan(self, demand: Demand, now: float) -> dict[str, PoolPlan]:
        kinds = {name: state.kind for name, state in self._states.items()}
        planner = Planner(self.pools, self._target_seconds, kinds)
        own = self.hosts.by_name
        others = [load for load in demand.agents if load.name not in own and self.hosts.pool_of(load.name) is None]
        needs = _with_arriving(demand, SPARE_FACTOR * self._arriving() * self._target_seconds)
        return planner.place(needs, own.values(), others, lambda pool: self._room(pool, now))

    def _room(self, pool: Pool, now: float) -> int:
        """Return how many hosts of the pool may be requested now."""
        state = self._states[pool.name]
        hosts = self.hosts.of_pool(pool)
        state.rests = state.backoff.rests(now, sum(1 for host in hosts if host.can_serve))
        if state.rests or not self.hosts.is_listed(pool):
            return 0
        room = max(0, pool.most - len(hosts))
        if state.backoff.is_probing:
            return min(room, int(not any(host.state is HostState.BOOTING for host in hosts)))
        return room

    def _note_figures(self, demand: Demand, now: float) -> None:
        """Remember the counters of this snapshot for the last `idle_seconds`."""
        busy: dict[str, float] = {}
        running = 0
        for host in self.hosts.by_name.values():
            if host.load is not None and host.can_serve:
                busy[host.pool.name] = busy.get(host.pool.name, 0.0) + _busy_workers(host.load)
                running += len(host.load.remaining)
        figures = self._figures
        if figures and (demand.submitted < figures[-1].submitted or demand.done < figures[-1].done):
            figures.clear()  # another scheduler, or functions were forgotten
        figures.append(_Figures(now, demand.submitted, demand.done, demand.run_seconds, busy, running))
        while len(figures) > 2 and figures[1].at <= now - self._idle_seconds:
            figures.popleft()

    def _arriving(self) -> float:
        """Return the work in seconds that arrives in a second: the number of workers that a steady load needs.

        Of both halves of the last `idle_seconds`, the one with fewer arrivals counts: in a burst it is zero.
        """
        figures = list(self._figures)
        first, last = figures[0], figures[-1]
        if last.at - first.at < 0.5 * self._idle_seconds or last.done == first.done:
            return 0.0
        middle = next(each for each in figures if each.at >= (first.at + last.at) / 2)
        rates = [
            (late.submitted - early.submitted) / (late.at - early.at)
            for early, late in ((first, middle), (middle, last))
            if late.at > early.at
        ]
        mean = max(0.0, last.run_seconds - first.run_seconds) / (last.done - first.done)
        return min(rates) * mean

    def _steady_workers(self) -> dict[str, float]:
        """Return by pool how many workers a steady load keeps busy: the mean of the last `idle_seconds`.

        The backlog of a steady load is small, so it alone would end hosts that are busy all the time. A burst is not
        steady: no tasks come, so nothing but the backlog counts.
        """
        figures = list(self._figures)
        if len(figures) < 2:
            return {}
        means: dict[str, float] = {}
        for each in figures[1:]:
            for name, count in each.busy.items():
                means[name] = means.get(name, 0.0) + count / (len(figures) - 1)
        total = sum(each.running for each in figures[1:]) / (len(figures) - 1)
        share = min(1.0, self._arriving() / total) if total else 0.0
        return {name: count * share for name, count in means.items()}

    def _decide_pool(self, pool: Pool, plan: PoolPlan, steady: float, demand: Demand, now: float) -> list[Decision]:
        state = self._states[pool.name]
        hosts = self.hosts.of_pool(pool)
        serving = [host for host in hosts if host.can_serve]
        decisions: list[Decision] = []
        leaving = [host for host in serving if host.state is HostState.THERE and now >= host.leaves_at()]
        if leaving:
            text = (
                f"drain {_hosts(len(leaving))} of pool {pool.name}: near the limit of {pool.time_limit_seconds:.0f} s"
            )
            decisions.append(self._drain(pool, leaving, text, now))
            serving = [host for host in serving if host.can_serve]
        by_work = plan.wanted(pool)
        by_rate = math.ceil(steady / pool.workers - 0.01)
        state.wanted = wanted = min(pool.most, max(pool.least, by_work, min(by_rate, len(serving))))
        kept = max(state.kept(now, wanted, self._idle_seconds), pool.least)
        missing = min(max(plan.new_hosts, wanted - len(serving)), self._room(pool, now))
        figures = self._described(pool, demand, serving, wanted, by_rate)
        if missing > 0:
            numbers = self.hosts.free_numbers(pool, missing)
            random = self._draw()
            names = tuple(pool.host_name(number, random) for number in numbers)
            for name, number in zip(names, numbers):
                self.hosts.add(pool, name, number, now)
            decisions.append(Start(pool.name, names, f"start {_hosts(len(names))} of pool {pool.name}: {figures}"))
        elif len(serving) > kept and now - self._started_at >= self._idle_seconds:
            chosen = _cheapest_to_end(serving, len(serving) - kept, plan.has_waiting)
            if chosen:
                text = f"{_hosts(len(chosen))} of pool {pool.name}: {figures}, {kept} wanted in the last "
                text += f"{self._idle_seconds:.0f} s"
                booting = [host for host in chosen if host.state is HostState.BOOTING]
                there = [host for host in chosen if host.state is HostState.THERE]
                if there:
                    decisions.append(self._drain(pool, there, f"drain {text}", now))
                for host in booting:
                    host.state, host.end_at = HostState.ENDING, now
                if booting:
                    decisions.append(Kill(pool.name, _names(booting), f"end while they boot: {text}"))
        return decisions

    def _drain(self, pool: Pool, hosts: list[Host], reason: str, now: float) -> Drain:
        for host in hosts:
            host.state, host.end_at = HostState.DRAINING, now
        return Drain(pool.name, _names(hosts), reason)

    def _described(self, pool: Pool, demand: Demand, serving: list[Host], wanted: int, by_rate: int) -> str:
        """Describe the numbers of a decision."""
        known = sum(need.known_seconds for need in demand.needs)
        unknown = sum(need.unknown for need in demand.needs)
        running = sum(len(load.remaining) for load in demand.agents)
        booting = sum(1 for host in serving if host.state is HostState.BOOTING)
        return (
            f"{demand.waiting} tasks wait ({known:.0f} s of work, {unknown} of unknown length), {running} run, target "
            f"{self._target_seconds:.0f} s; {wanted} hosts of {pool.workers} workers wanted ({by_rate} by the steady "
            f"load), {len(serving) - booting} there, {booting} booting, most {pool.most}"
        )


def _with_arriving(demand: Demand, seconds: float) -> list[Need]:
    """Raise the work of all needs together to at least these seconds, by their number of tasks.

    Without it, a steady load would keep a backlog for ever: the hosts that do the backlog also do what arrives.
    """
    waiting = demand.waiting
    return [
        replace(need, known_seconds=max(need.known_seconds, seconds * need.tasks / waiting)) if seconds else need
        for need in demand.needs
    ]


def _busy_workers(load: AgentLoad) -> float:
    """Return the busy workers of a host, or more if its tasks have a larger part of a resource."""
    parts = [load.booked.get(name, 0.0) / amount for name, amount in load.resources.items() if amount > 0]
    return max(len(load.remaining), load.workers * min(1.0, max(parts, default=0.0)))


def _cheapest_to_end(hosts: list[Host], count: int, has_waiting: bool) -> list[Host]:
    """Choose hosts whose end costs least: those that boot, then those with the least work, then the fewest bytes.

    While tasks wait that these hosts can run, a busy host stays: its workers would be missed.
    """

    def cost(host: Host) -> tuple[bool, float, int, int]:
        load = host.load
        if load is None:
            return host.state is not HostState.BOOTING, 0.0, 0, -host.number
        return True, max(load.remaining, default=0.0) + len(load.remaining), load.value_bytes, -host.number

    def may_end(host: Host) -> bool:
        load = host.load
        if load is None or not load.remaining:
            return True
        return not has_waiting and max(load.remaining) <= SAFE_DRAIN_SHARE * host.pool.retire_seconds

    return sorted(filter(may_end, hosts), key=cost)[:count]


def _names(hosts: Iterable[Host]) -> tuple[str, ...]:
    return tuple(host.name for host in hosts)


def _hosts(count: int) -> str:
    return f"{count} host{'' if count == 1 else 's'}"
