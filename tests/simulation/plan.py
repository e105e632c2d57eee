"""The plan of a seed: the peers, the tasks that clients submit, and the injected faults."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from scaler_client.protocol.messages import HostResource, Options
from scaler_scheduler.core.limits import Limits, LimitSettings

from .network import LinkFaults
from .scripts import FUNCTIONS, Script, SentObject

if TYPE_CHECKING:
    from .map_plan import Manner

FAULTS = (
    "worker killed", "host switched off", "agent stopped", "agent killed", "host joins", "host frozen", "worker frozen",
    "client killed", "client frozen", "client leaves", "scheduler killed", "scheduler stopped", "scheduler frozen",
    "connection broken", "host cut off", "client cut off", "link cut off",
)  # fmt: skip
LOUD_FAULTS = frozenset(("worker killed", "agent stopped", "host joins", "client killed", "client leaves"))
"""Faults that mislead no peer about another: peers notice them at once, or they only end work that no peer waits
for."""

DUPLICATED = (
    "Hello", "Function", "Submit", "Cancel", "Results", "Started", "Retracted", "Suspended", "Resumed", "Received",
    "WorkerDied",
)  # fmt: skip
_CAPABILITIES = ((), (), (), (), (("gpu", 1),), (("gpu", 1),), (("gpu", 1), ("linux", 2)), (("gpu", 2),))
"""The capabilities that tasks ask for. No worker has the last one."""

LIMITS = {"db": LimitSettings(most=2), "api": LimitSettings(per_second=20.0)}
"""The scheduler's limits of tasks."""

_LIMITS = {1: ("db",), 3: ("api", "db")}
"""The limits of tasks with so many retries, which are drawn anyway."""

_RESOURCES = {
    (0, 0): (("gpu", 500),),
    (0, 3): (("gpu", 1000),),
    (1, -1): (("gpu", 1000), ("license", 1000)),
    (5, -1): (("cpus", 2000),),
    (5, 0): (("cpus", 2000), ("gpu", 1500)),
    (-3, -1): (("license", 500),),
    (-3, 0): (("gpu", 250), ("license", 250)),
}
"""The resources of tasks with this priority and so many retries, which are drawn anyway."""


def host_resources(capabilities: dict[str, int]) -> tuple[HostResource, ...]:
    """What a host has. The first one has everything that tasks ask for."""
    if capabilities.get("linux") == 4 and "gpu" in capabilities:
        return HostResource("gpu", 2000, True), HostResource("license", 1000)
    return (HostResource("gpu", 1000, True),) if "gpu" in capabilities else ()


FIRST_FILE_SEED = 8_000_000
"""From this seed up to 9,000,000, plans are as those of the first seeds, and workers write results to files."""

_DURATIONS = (0.0002, 0.002, 0.015, 0.15, 1.2)
_MAX_SECONDS = 40.0
"""The run time of all tasks together, without tasks that never end by themselves."""

_LONG_SECONDS = 60.0
"""The run time of tasks that only force can end."""

ABANDONED_ONE_IN = 5
"""One parent in so many ends without waiting for its children, of which one only ends by force."""


@dataclass
class Work:
    """Tasks that a client submits together, and its later actions on them."""

    at: float
    scripts: list[Script]
    cancels: list[tuple[float, list[int], bool]] = field(default_factory=list)
    """Cancels: after so many seconds, the tasks at these positions, with force or without."""
    is_map: bool = False
    """Whether it is a map: all scripts have one function and the same options."""
    targets: list[int] | None = None
    """The rows of a graph whose results are requested. All scripts are its tasks, and cancels name these rows."""
    drops: list[tuple[float, SentObject]] = field(default_factory=list)
    """After so many seconds the client's user drops this object."""
    manner: Manner | None = None
    """How the user of a map reads the results."""
    clears_after: float | None = None
    """When the client is cleared."""
    kept: frozenset[int] = frozenset()
    """The positions of the tasks whose results stay on their hosts."""
    reads: list[tuple[float, int]] = field(default_factory=list)
    """After so many seconds the user reads the value of the kept result at this position."""
    lets_go: list[tuple[float, int]] = field(default_factory=list)
    """After so many seconds the user deletes the future of the kept task at this position."""


def add_after(works: list[Work], script: Script, at: float, pause: float) -> float:
    """Add a task that is submitted so many seconds after the last one, whose time is `at`; without a pause together
    with it. Return its time."""
    if works and not pause:
        works[-1].scripts.append(script)
    else:
        at += pause
        works.append(Work(at, [script]))
    return at


@dataclass
class Plan:
    seed: int
    limits: Limits
    link_faults: LinkFaults
    heartbeat_seconds: float
    timeout_seconds: float
    """How long a client waits without an answer."""
    step_seconds: float
    slow_share: float
    """The share of peers whose link takes 100 times as long."""
    load_seconds: float
    hosts: list[tuple[int, dict[str, int]]]
    """The number of workers and their capabilities."""
    clients: list[list[Work]]
    faults: list[tuple[float, str]]
    windows_divisor: int = 8
    """The divisor of the memory limit, as in credit.py."""
    shared_bytes: int = 1 << 40
    """Objects of at least this size are files of hosts."""
    small_bytes: int = 256
    """Objects up to this size go inside the rows that read them."""
    inline_bytes: int = 1 << 14
    """Larger objects go inside the rows if all these copies together have at most this size."""
    full_share: float = 0.0
    """The share of hosts without space for some objects."""
    kept_bytes: int = 1 << 40
    """Kept results of at least this size stay on their host."""
    write_seconds: float = 0.0
    """How long a worker writes such a file."""
    map_sizes: dict[str, int] = field(default_factory=dict)
    """Numbers of calls and blocks in scaler_client/api/map_run.py that this run has in place of the usual ones."""
    feed_sizes: dict[str, int] = field(default_factory=dict)
    """The same for scaler_client/session/map_feed.py."""
    death_timeout_seconds: float = 60.0
    """How long an agent waits without an answer."""
    gang_size: int = 0
    """The size of the largest gangs; 0: there are none."""
    wait_bounds: dict[int, float] = field(default_factory=dict)
    """After so many seconds the task of this key must have begun."""
    message_seconds: float = 0.0
    """How long the scheduler is busy with each message."""
    repeats_nothing: bool = False
    """Whether no fault explains that a task runs twice: the faults are restarts of the scheduler, or delays."""

    @property
    def has_little_room(self) -> bool:
        """Whether hosts are full of values, the scheduler's memory is scarce, and transfers are soon late."""
        return self.seed % 12 == 2

    @property
    def has_late_agents(self) -> bool:
        """Whether some agents connect later than their workers. The bounds of waits do not hold then: only agents say
        which resources their hosts have."""
        return self.seed % 4 == 3 and not self.wait_bounds

    @property
    def has_result_files(self) -> bool:
        """Whether workers write results into the directories of clients on their hosts."""
        return FIRST_FILE_SEED <= self.seed < 9_000_000

    @property
    def protects_parents(self) -> bool:
        """Whether each host has room for all successors: nothing but that process ends with it."""
        return self.seed >= 9_000_000

    @property
    def keeps_results(self) -> bool:
        """Whether some results may stay on their host."""
        return self.kept_bytes < 1 << 40

    @property
    def has_environments(self) -> bool:
        """Whether some functions belong to environments. No draw decides it: a draw would change all seeds."""
        return self.seed % 7 == 3

    @property
    def is_calm(self) -> bool:
        if self.keeps_results and self.faults:
            return False  # a host that leaves in order takes its results along
        return all(kind in LOUD_FAULTS for _, kind in self.faults) and not self.link_faults.spike_share


def draw_plain_plan(seed: int) -> tuple[Plan, Writer]:
    """Return a plan without objects and graphs, and the writer of its tasks."""
    chance = random.Random(f"plan {seed}")
    load_seconds = chance.choice((4.0, 10.0, 20.0))
    hosts = [(chance.randint(1, 3), _draw_capabilities(chance)) for _ in range(chance.choice((1, 1, 2, 2, 3)))]
    # workers can serve every task, except tasks that nobody ever can
    hosts[0] = max(2, hosts[0][0]), {"gpu": 1, "linux": 4}
    writer = Writer(chance)
    clients = [writer.program(load_seconds) for _ in range(chance.choice((1, 2, 2, 3)))]
    faults = _draw_faults(chance, load_seconds)
    plan = Plan(
        seed=seed,
        limits=_draw_limits(chance, has_common_ranks=seed % 3 == 0),
        link_faults=_draw_link_faults(chance),
        heartbeat_seconds=1.0,
        timeout_seconds=chance.choice((60.0, 60.0, 60.0, 4.0)),
        step_seconds=chance.choice((0.0001, 0.0001, 0.01)),
        slow_share=chance.choice((0.0, 0.0, 0.2)),
        load_seconds=load_seconds,
        hosts=hosts,
        clients=clients,
        faults=faults,
    )
    return plan, writer


def _draw_limits(chance: random.Random, has_common_ranks: bool) -> Limits:
    return Limits(
        client_timeout_seconds=8.0,
        worker_timeout_seconds=6.0,
        queue_size=chance.choice((2, 8, 1000)),
        task_retries=chance.choice((0, 1, 3)),
        memory_limit_bytes=chance.choice((1 << 40, 1 << 40, 1 << 18)),
        has_common_ranks=has_common_ranks,
    )


def _draw_link_faults(chance: random.Random) -> LinkFaults:
    link_faults = LinkFaults(latency=chance.choice((0.0002, 0.0005, 0.005)))
    if chance.random() < 0.3:
        link_faults.spike_share, link_faults.spike_seconds = chance.choice(((0.01, 1.0), (0.1, 0.2), (0.003, 12.0)))
    if chance.random() < 0.3:
        link_faults.duplicated_share = 0.2
        link_faults.duplicated_kinds = frozenset(DUPLICATED)
    return link_faults


def _draw_capabilities(chance: random.Random) -> dict[str, int]:
    return chance.choice(({}, {}, {"linux": 4}, {"gpu": 1}, {"gpu": 1, "linux": 1}))


def _draw_faults(chance: random.Random, load_seconds: float) -> list[tuple[float, str]]:
    roll = chance.random()
    if roll < 0.12:
        return []
    kinds = chance.sample(FAULTS, 1 if roll < 0.5 else chance.randint(2, len(FAULTS)))
    if roll < 0.25:
        kinds = chance.sample(sorted(LOUD_FAULTS), chance.randint(1, len(LOUD_FAULTS)))
    count = chance.choice((1, 2, 4, 8, 14))
    return sorted((chance.uniform(0.0, load_seconds), chance.choice(kinds)) for _ in range(count))


class Writer:
    """Draws what clients submit."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.next_key = 1
        self._budget = _MAX_SECONDS
        self._is_rough = chance.random() < 0.7
        """Whether tasks do more than return."""
        self._is_nesting = chance.random() < 0.4
        self.is_heavy = chance.random() < 0.2
        self._lengths = chance.choice(((6, 6, 4, 2, 1), (1, 0, 0, 0, 0), (0, 0, 0, 2, 1), (0, 4, 0, 0, 1)))

    def program(self, load_seconds: float) -> list[Work]:
        chance = self._chance
        return [self._work(chance.uniform(0.0, load_seconds * 0.9)) for _ in range(chance.randint(1, 5))]

    def _work(self, at: float) -> Work:
        chance = self._chance
        count = chance.choice((1, 2, 5, 12, 30))
        options = self.options() if chance.random() < 0.5 else None
        scripts = [self.script(options or self.options()) for _ in range(count)]
        work = Work(at, scripts, is_map=options is not None and chance.random() < 0.3)
        if work.is_map:
            work.scripts = scripts = [replace(script, function=scripts[0].function) for script in scripts]
        for _ in range(chance.choice((0, 0, 1, 2))):
            ids = sorted(chance.sample(range(count), chance.randint(1, count)))
            work.cancels.append((self.moment(), ids, chance.random() < 0.4))
        endless = [at for at, script in enumerate(scripts) if is_endless(script)]
        if endless:
            work.cancels.append((self.moment(), endless, True))
        return work

    def moment(self) -> float:
        """A time after a submit: at once, while the message is on its way, or while the tasks run."""
        return self._chance.choice((0.0, 0.0005, 0.002, 0.02, 0.3, 2.0)) * self._chance.uniform(0.5, 1.5)

    def options(self) -> Options:
        chance = self._chance
        if chance.random() < 0.5:
            return Options()
        retries = chance.choice((-1, -1, 0, 1, 3))
        priority = chance.choice((0, 0, 0, 1, 5, -3))
        return Options(
            priority=priority,
            retries=retries,
            limits=_LIMITS.get(retries, ()),
            resources=_RESOURCES.get((priority, retries), ()),
            release_resources=priority == 1 and retries == -1,
            timeout_milliseconds=chance.choice((0, 0, 0, 100, 1000)),
            profiling=chance.random() < 0.3,
            name=chance.choice(("", "", "named")),
            capabilities=chance.choice(_CAPABILITIES),
        )

    def script(self, options: Options, depth: int = 0) -> Script:
        chance = self._chance
        key = self.next_key
        self.next_key += 1
        traits: dict[str, Any] = {}
        roll = chance.random()
        if self._is_rough and roll < 0.3 and not depth:
            traits = self._trait()
        elif self._is_nesting and roll < 0.5 and depth < 3:
            number = chance.choice((1, 1, 2, 4))
            children = tuple(self.script(self._child_options(options), depth + 1) for _ in range(number))
            traits = {"children": children, "one_by_one": chance.random() < 0.3}
            if key % ABANDONED_ONE_IN == 0:  # no draw decides it, because a draw would change all seeds
                endless = replace(children[0], seconds=_LONG_SECONDS)
                traits |= {"children": (endless, *children[1:]), "abandons": True}
        elif depth and roll > 0.97:
            traits = {"raises": True}
        (seconds,) = chance.choices(_DURATIONS, self._lengths if self._budget > 0 else (1, 0, 0, 0, 0))
        seconds = traits.pop("seconds", seconds * chance.uniform(0.5, 1.5))
        self._budget -= seconds if seconds < _LONG_SECONDS else 0
        sizes = (0, 0, 100, 3000, 70_000) if self.is_heavy else (0, 0, 40)
        return Script(
            key=key,
            function=chance.randrange(FUNCTIONS),
            payload_bytes=chance.choice(sizes),
            result_bytes=chance.choice(sizes),
            options=options,
            seconds=seconds,
            **traits,
        )

    def _child_options(self, options: Options) -> Options:
        """Mostly the parent's options."""
        if self._chance.random() < 0.8:
            return Options(priority=options.priority)
        return Options(priority=1, retries=2, resources=_RESOURCES[5, -1])

    def _trait(self) -> dict[str, Any]:
        chance = self._chance
        return chance.choice((
            {"raises": True},
            {"retryable": chance.choice((1, 2, 5))},
            {"kills": chance.choice((1, 1, 2, 99))},
            {"grows": True, "seconds": chance.choice((0.1, 1.2))},
            {"hogs": True},
            {"hogs": True, "seconds": 9.0},  # longer than a lease
            {"hogs": True, "seconds": _LONG_SECONDS},
            {"ignores_stop": True},
            {"ignores_stop": True, "seconds": _LONG_SECONDS},
            {"seconds": _LONG_SECONDS},
            {"stop_seconds": chance.choice((0.5, 5.0))},
            {"stop_seconds": chance.choice((0.5, 1.5, 5.0)), "seconds": _LONG_SECONDS},
        ))  # fmt: skip


def is_endless(script: Script) -> bool:
    return script.seconds > _LONG_SECONDS / 4 or script.options.capabilities == _CAPABILITIES[-1]
