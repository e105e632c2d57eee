"""One run of the simulation, from a seed: all peers start, work, have faults, become idle and leave."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from unittest.mock import patch

from scaler_client.api import map_run
from scaler_client.pickling import call_rows
from scaler_client.session import map_feed
from scaler_scheduler.core.data import input_delivery, transfers
from scaler_scheduler.core.dispatch import credit, dispatch_writer
from scaler_scheduler.core.placement import near_data
from scaler_scheduler.core.state import functions, records
from scaler_scheduler.wire import decode
from scaler_worker.agent import downloads
from scaler_worker.worker import task_host

from . import faults, gang_plan, host_result_faults, nested_plan, worker_parts
from .agent_host import AgentHost
from .client_files import SimulatedFiles
from .client_host import ClientHost
from .client_maps import pack_scripts
from .clock import Clock
from .environments import Environments
from .gang_plan import ALL_CAPABILITIES
from .graph_plan import draw_plan
from .leaks import check_empty
from .network import Network
from .oracle import Oracle
from .plan import Plan, Work
from .reader_plan import reader_counts
from .scheduler_host import FIRST_KEY_SEED, SchedulerHost
from .scripts import FUNCTIONS
from .threads import SimulatedRow, SimulatedThreads, get_ident
from .trace import SimulationError, Trace
from .worker_parts import SMALL_BYTES

REST_SECONDS = 150.0
"""The longest time from the last fault until all tasks are answered."""

LEAVE_SECONDS = 30.0
"""The longest time from the leaving of the last client or agent until nothing is left of it."""

MAX_DELAY_SECONDS = 15.0
"""No message is on its way for longer."""

EARLY_SECONDS = 25.0
"""The longest time for which answers wait for clients that do not come back."""

SETTLE_SECONDS = 2.0
"""The scheduler does some checks once a second."""

_SLOW_SECONDS = 0.05
"""How long a message takes on a slow link."""


class World:
    def __init__(self, seed: int, keeps_all: bool = False) -> None:
        self.plan: Plan = draw_plan(seed)
        self.chance = random.Random(f"world {seed}")
        self.clock = Clock()
        self.trace = Trace(self.clock, keeps_all)
        self.network = Network(self.clock, self.chance, self.trace, self.plan.link_faults)
        self.oracle = Oracle(self.trace)
        self.oracle.is_calm = self.plan.is_calm
        self.oracle.task_retries = self.plan.limits.task_retries
        self.oracle.repeats_nothing = self.plan.repeats_nothing
        self.oracle.has_hogs = seed >= nested_plan.FIRST_SEED
        self.oracle.has_duplicates = self.plan.link_faults.duplicated_share > 0
        self.oracle.has_slow_peers = self.plan.slow_share > 0
        self.oracle.has_late_agents = self.plan.has_late_agents
        self.scheduler = SchedulerHost(
            self.clock,
            self.network,
            self.trace,
            self.chance,
            self.plan.limits,
            step_seconds=self.plan.step_seconds,
            message_seconds=self.plan.message_seconds,
        )
        self.scheduler.has_keys = FIRST_KEY_SEED <= seed < gang_plan.FIRST_SEED
        # As in the real world, a file is never so small that the core puts it into a row.
        self.least_file_bytes = max(self.plan.shared_bytes, self.plan.small_bytes + 1, self.plan.inline_bytes + 1)
        """Clients write objects of at least this size as files."""
        self.client_files: dict[int, SimulatedFiles] = {}
        """The files of all clients that have started, by incarnation."""
        self.scheduler.taken = self.oracle.taken
        self.environments = Environments()
        self.hosts: list[AgentHost] = []
        self.clients: list[ClientHost] = []
        self.calm_at = self.clock.now + self.plan.load_seconds
        self.threads: list[SimulatedThreads] = []
        """Incarnations of all processes that have started."""
        self.ambushes: dict[str, Callable[[AgentHost], None]] = {}
        """What happens to the next host on which something begins or ends; see host_result_faults.py."""
        self.is_ending = False
        """Whether no host comes back any more."""
        self._next_pid = 1
        self._next_host = 1

    def run(self) -> None:
        """Run the whole simulation.

        Raises:
            SimulationError: something happened that must never happen.
        """
        with ExitStack() as patched:
            for each in self._patches():
                patched.enter_context(each)
            try:
                self._run_load()
            finally:
                for threads in self.threads:
                    threads.end()

    def _patches(self) -> list[AbstractContextManager[object]]:
        """Sizes and limits that suit a short run. Small windows, and room for all objects: a rejection at the limit is
        the user's error, and no fault."""
        plan = self.plan
        limit = plan.limits.memory_limit_bytes
        sizes = {"SHARED_BYTES": plan.shared_bytes, "SMALL_BYTES": plan.small_bytes, "INLINE_BYTES": plan.inline_bytes}
        return [
            patch.multiple(input_delivery, **sizes),
            patch.object(decode, "SHARED_BYTES", 1),
            patch.multiple(functions, LARGE_BYTES=plan.kept_bytes, SMALL_BYTES=SMALL_BYTES),
            # The scheduler's memory is scarce as soon as it has 500 bytes of objects.
            patch.object(dispatch_writer, "SCARCE_DIVISOR", limit // 500 if plan.has_little_room else 2),
            patch.multiple(downloads, CHUNK_BYTES=100, FIRST_CHUNK_BYTES=20, CHUNKS_IN_FLIGHT=2),
            patch.multiple(transfers, MAX_IN=2, MAX_OUT=2, MAX_BETWEEN=1, WAITING_TASKS=2),
            patch.object(transfers, "LATE_SECONDS", 0.1 if plan.has_little_room else 1000.0),
            # In a third of the runs several small files are on their way between two hosts.
            patch.object(transfers, "WHOLE_BYTES", 1 if plan.seed % 3 else 4000),
            # Files are small, so the rate is low. In half of the runs tasks wait for hosts that have the files.
            patch.object(transfers, "FIRST_BYTES_PER_SECOND", 1000),
            patch.multiple(near_data, LEAST_BYTES=1 << 40 if plan.seed % 2 else 1, CONSIDERED_HOSTS=2),
            patch.object(threading, "get_ident", get_ident),
            patch.object(worker_parts, "thread_row", row := SimulatedRow()),
            patch.object(task_host, "thread_row", row),
            # The order of a set must not depend on memory addresses.
            patch.object(records.Worker, "__hash__", lambda worker: hash(worker.incarnation)),
            patch.object(records.Agent, "__hash__", lambda agent: hash(agent.incarnation)),
            patch.object(records.StoredObject, "__hash__", lambda stored: hash((stored.client.incarnation, stored.id))),
            patch.object(records.Task, "__hash__", lambda task: hash((task.client.incarnation, task.id))),
            patch.object(credit, "_WINDOWS_DIVISOR", plan.windows_divisor),
            patch.object(call_rows, "CALLS_EACH", max(1, plan.map_sizes["MAX_CALLS"] // 5)),
            patch.multiple(map_run, pack_calls=pack_scripts, **plan.map_sizes),
            patch.multiple(map_feed, **plan.feed_sizes) if plan.feed_sizes else nullcontext(),
            patch.object(map_feed._Row, "__hash__", lambda row: hash((row.block.first, row.begin, row.end))),
            patch.object(map_feed.MapFeed, "__hash__", lambda feed: feed.function.number),
        ]

    def _run_load(self) -> None:
        self._start()
        while self.clock.now < self.calm_at:  # some faults delay it
            self._run_until(self.calm_at)
        self.trace.note("no more faults")
        self.ambushes.clear()
        self._repair()
        self._wait_for("everything is answered", self._is_all_answered, REST_SECONDS)
        self._wait_for("nothing is left to do", self._is_at_rest, REST_SECONDS)
        self._wait_for("the scheduler knows every worker", self._is_every_worker_known, REST_SECONDS)
        for client in self.living_clients():
            client.kept.read_all()
        self._wait_for("every kept result can be read", self._is_all_answered, REST_SECONDS)
        for client in self.living_clients():
            client.user_objects.drop_all()
            client.kept.let_all_go()
        self._wait_for("nobody keeps an object", self._has_no_objects, REST_SECONDS)
        self._leave()
        self.trace.count("steps", self.clock.steps)

    # ---------------------------------------------------------------------------------------------- for those within

    def draw_incarnation(self) -> int:
        return self.chance.getrandbits(62) | 1

    def next_pid(self) -> int:
        self._next_pid += 1
        return self._next_pid

    def latency_factor(self) -> float:
        is_slow = self.chance.random() < self.plan.slow_share
        return _SLOW_SECONDS / self.plan.link_faults.latency if is_slow else 1.0

    def is_full_host(self) -> bool:
        return self.plan.full_share > 0 and self.chance.random() < self.plan.full_share

    def living_hosts(self) -> list[AgentHost]:
        return [host for host in self.hosts if not host.is_gone]

    def living_clients(self) -> list[ClientHost]:
        return [client for client in self.clients if client.process.is_alive]

    def add_host(self, workers: int, capabilities: dict[str, int], name: str = "") -> None:
        """Add a host. `name` is that of a host that has ended before."""
        if not name:
            name = f"host{self._next_host}"
            self._next_host += 1
        self.hosts.append(AgentHost(self, name, workers, capabilities))

    def reached(self, moment: str, host: AgentHost) -> None:
        """Something begins or ends on this host: inject the fault that is planned for this moment."""
        ambush = self.ambushes.pop(moment, None)
        if ambush is not None:
            self.trace.count(f"struck when {moment}")
            self.clock.after(self.chance.choice((0.0, 0.0005, 0.003, 0.03)), lambda: ambush(host))

    # --------------------------------------------------------------------------------------------------------- phases

    def _start(self) -> None:
        plan = self.plan
        self.trace.note("seed", str(plan.seed), "begins")
        self.scheduler.start()
        for workers, capabilities in plan.hosts:
            self.add_host(workers, capabilities)
        for number, program in enumerate(plan.clients, 1):
            client = ClientHost(self, f"client{number}")
            self.clients.append(client)
            client.user_objects.readers_left = reader_counts(program)
            for work in program:
                client.process.later(work.at, partial(self._work, client, work))
        for at, kind in plan.faults:
            strike = host_result_faults.inject if kind in host_result_faults.KEPT_FAULTS else faults.inject
            self.clock.after(at, partial(strike, self, kind))

    def _work(self, client: ClientHost, work: Work) -> None:
        scripts = [self.oracle.add(script) for script in work.scripts]
        bounds = self.plan.wait_bounds
        bounded = [each.key for each in scripts if each.key in bounds]
        self.oracle.begin_by.update((key, self.trace.now + bounds[key]) for key in bounded)
        if work.targets is not None:
            futures = client.submit_graph(scripts, work.targets, scripts[0].options)
        elif work.is_map:
            assert work.manner is not None
            futures = client.map(scripts, scripts[0].options, work.manner)
        else:
            futures = []
            for at, script in enumerate(scripts):
                futures.append((client.keep if at in work.kept else client.submit)(script, script.options))
            for after, at in work.reads:
                client.process.later(after, futures[at].read)
            for after, at in work.lets_go:
                client.process.later(after, futures[at].let_go)
        for after, positions, is_forced in work.cancels:
            chosen = [futures[at] for at in positions]
            client.process.later(after, partial(client.cancel, chosen, is_forced))
        for after, sent_object in work.drops:
            client.process.later(after, partial(client.user_objects.drop, sent_object.key))
        if work.clears_after is not None:
            client.process.later(work.clears_after, client.clear)
        # Not if waits are bounded: with the function, the scheduler forgets how long its tasks take.
        if self.chance.random() < 0.3 and not self.plan.wait_bounds:
            number = self.chance.randrange(FUNCTIONS)
            client.process.later(self.chance.uniform(0.0, 3.0), partial(client.forget_function, number))

    def _repair(self) -> None:
        """Make sure that workers can serve every task."""
        if self.plan.gang_size:
            self.add_host(self.plan.gang_size, ALL_CAPABILITIES)
        elif not any(ALL_CAPABILITIES.items() <= host.capabilities.items() for host in self.living_hosts()):
            self.add_host(2, ALL_CAPABILITIES)  # some tasks take two slots

    def _leave(self) -> None:
        for client in self.living_clients():
            if self.chance.random() < 0.8:
                client.close()
            else:
                client.kill()
        self._wait_for("nothing is left of the clients", self._has_no_clients, LEAVE_SECONDS)
        self.is_ending = True
        for host in self.living_hosts():
            host.stop()
        self._wait_for("the agents are gone", lambda: not self.living_hosts(), LEAVE_SECONDS)
        self._wait_for("nothing is left of them", lambda: not self.scheduler.peers(), LEAVE_SECONDS)
        self._run_until(self.clock.now + MAX_DELAY_SECONDS)  # a peer's hello may come after its end
        self._wait_for("nothing is left of those", lambda: not self.scheduler.peers(), LEAVE_SECONDS)
        self._wait_for("no answer waits for its client", lambda: not self.scheduler.core.tables.early, EARLY_SECONDS)
        self._run_until(self.clock.now + SETTLE_SECONDS)
        check_empty(self.scheduler.core, self.scheduler.fresh_core())

    def _run_until(self, end: float) -> None:
        while self.clock.step(end):
            pass

    def _wait_for(self, what: str, condition: Callable[[], str | bool], seconds: float) -> None:
        end = self.clock.now + seconds
        while not condition():
            # Not after every step, because the check is long.
            self._run_until(min(end, self.clock.now + 0.25))
            self.oracle.check_waits()
            if self.clock.now >= end and not condition():
                raise SimulationError(f"not within {seconds:g} s: {what}; {self._open_work()}")

    # --------------------------------------------------------------------------------------------------------- states

    def _is_all_answered(self) -> bool:
        return not any(client.futures for client in self.living_clients()) and all(
            not client.session.pending
            and not len(client.session.feeds)
            and not client.maps
            and not client.kept.is_reading
            for client in self.living_clients()
        )

    def _is_at_rest(self) -> bool:
        # A duplicated Submit brings back a task that no client waits for, and that perhaps no worker can run.
        return self.scheduler.work() == (self.scheduler.unschedulable() if self.oracle.has_duplicates else 0)

    def _is_every_worker_known(self) -> bool:
        known = self.scheduler.core.tables.workers
        return all(known.find(each) is not None for host in self.living_hosts() for each in host.workers)

    def _has_no_clients(self) -> bool:
        return not self.scheduler.client_traces()

    def _has_no_objects(self) -> bool:
        return not self._objects()

    def _objects(self) -> str:
        """Describe which peer keeps how many objects."""
        ids = [stored.id for client in self.scheduler.core.tables.clients for stored in client.objects.values()]
        counts: dict[str, object] = {"the scheduler": ids}
        files = sum(len(each) for each in self.client_files.values() if each.is_alive)
        counts["files of clients"] = files
        counts.update((client.name, len(client.session.objects)) for client in self.living_clients())
        for host in self.living_hosts():
            counts[host.name] = len(host.files) + host.session.object_bytes
            counts.update((worker.name, len(worker.session.objects._objects)) for worker in host.workers.values())
        return ", ".join(f"{name}: {count}" for name, count in counts.items() if count)

    def _open_work(self) -> str:
        open_futures = [future for future in self.oracle.open_futures() if self._is_waited_for(future.owner)]
        tasks = ", ".join(f"{future.script.key} of {future.owner} (id {future.task_id})" for future in open_futures[:5])
        return f"{len(open_futures)} tasks: {tasks}; scheduler: {self.scheduler.summary()}; objects: {self._objects()}"

    def is_worked_on(self, key: int) -> bool:
        """Whether some worker has begun this task and has not ended it."""
        return any(worker.works_on(key) for host in self.living_hosts() for worker in host.workers.values())

    def _is_waited_for(self, owner: str) -> bool:
        return any(client.name == owner for client in self.living_clients())
