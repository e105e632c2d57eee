"""Plans in which tasks at every depth wait for children that die, exceed time limits, hold the GIL or ignore stops.

Seeds from FIRST_SEED on have them, and nothing else: no faults of peers. So no task runs again unless its own process
has ended, and no task with a time limit takes suspended tasks with it.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from scaler_client.protocol.messages import Options
from scaler_scheduler.core.limits import Limits

from .network import LinkFaults
from .plan import Plan, Work
from .scripts import FUNCTIONS, Script

FIRST_SEED = 9_000_000

LOAD_SECONDS = 6.0

MAX_DEPTH = 3

_LONG_SECONDS = 60.0

_SHORT = (0.0002, 0.002, 0.015, 0.1)


def draw_nested_plan(seed: int) -> Plan:
    """Return a plan of one or two hosts for parents, their children, and plain tasks beside them."""
    chance = random.Random(f"nested {seed}")
    writer = _Writer(chance)
    clients = []
    for _ in range(chance.choice((1, 2))):
        times = sorted(chance.uniform(0.0, LOAD_SECONDS / 2) for _ in range(chance.randint(1, 4)))
        clients.append([Work(at, [writer.script(0) for _ in range(chance.choice((1, 4, 12)))]) for at in times])
        clients[-1].append(writer.cancelled())
    if chance.random() < 0.4:
        clients.append(writer.burst())
    return Plan(
        seed=seed,
        limits=Limits(
            client_timeout_seconds=8.0,
            worker_timeout_seconds=30.0,
            queue_size=chance.choice((8, 1000)),
            task_retries=chance.choice((0, 1, 3)),
        ),
        link_faults=LinkFaults(latency=0.0005),
        heartbeat_seconds=1.0,
        timeout_seconds=60.0,
        step_seconds=0.0001,
        slow_share=0.0,
        load_seconds=LOAD_SECONDS,
        hosts=[(chance.choice((1, 1, 2, 3)), {}) for _ in range(chance.choice((1, 1, 2)))],
        clients=clients,
        faults=[],
        map_sizes={"FIRST_CALLS": 4, "_UNKNOWN_CALLS": 2, "MAX_CALLS": 20, "HANDOVER_BLOCKS": 3, "_CALLS_AHEAD": 50},
    )


class _Writer:
    """Draws tasks and their children."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._next_key = 1
        self._left = 40
        """So many tasks of the run may do worse than return."""

    def script(self, depth: int) -> Script:
        chance = self._chance
        key = self._next_key
        self._next_key += 1
        traits: dict[str, Any] = {}
        roll = chance.random()
        options = Options(retries=chance.choice((-1, 0, 0, 1)))
        if depth < MAX_DEPTH and roll < (0.6 if not depth else 0.35):
            children = tuple(self.script(depth + 1) for _ in range(chance.choice((1, 2, 3))))
            traits = {"children": children, "one_by_one": chance.random() < 0.4}
            if chance.random() < 0.2:
                options = replace(options, timeout_milliseconds=30_000)
        elif self._left > 0 and roll > 0.6:
            self._left -= 1
            limited = replace(options, timeout_milliseconds=chance.choice((100, 300)))
            options, traits = chance.choice((
                (options, {"kills": chance.choice((1, 99)), "seconds": chance.choice((0.02, 2.0))}),
                (limited, {"seconds": _LONG_SECONDS}),
                (limited, {"seconds": _LONG_SECONDS, "ignores_stop": True}),
                (limited, {"seconds": _LONG_SECONDS, "hogs": True}),
                (options, {"seconds": chance.choice((3.0, 12.0)), "hogs": True}),
                (limited, {"seconds": 0.01}),
            ))  # fmt: skip
        seconds = traits.pop("seconds", chance.choice(_SHORT) * chance.uniform(0.5, 1.5))
        function = 3 if seconds > 1 else chance.randrange(3)
        if chance.random() < 0.3:
            function = 0  # some short functions take long now and then
        if "kills" in traits and key % 3:
            function = FUNCTIONS + key  # else the scheduler soon knows every function that ends processes
        return Script(key=key, function=function, seconds=seconds, options=options, **traits)

    def cancelled(self) -> Work:
        """Tasks that only a forced cancel ends, perhaps beside suspended tasks."""
        scripts = [replace(self.script(MAX_DEPTH), seconds=_LONG_SECONDS, children=()) for _ in range(4)]
        scripts = [replace(each, kills=0, hogs=False, options=Options()) for each in scripts]
        return Work(self._chance.uniform(0.0, LOAD_SECONDS / 2), scripts, cancels=[(1.5, list(range(4)), True)])

    def burst(self) -> list[Work]:
        """Short tasks of one function. Then parents of it, and tasks of it that hold the GIL, in one message: one
        worker gets several of them."""
        short = [self._plain(seconds=0.0002) for _ in range(40)]
        mixed: list[Script] = []
        for _ in range(6):
            mixed.append(self._plain(seconds=0.0002, children=(self._plain(seconds=0.01),)))
            mixed.append(self._plain(seconds=5.0, hogs=True))
        return [Work(0.0, short), Work(LOAD_SECONDS / 2, mixed)]

    def _plain(self, **traits: Any) -> Script:
        self._next_key += 1
        return Script(key=self._next_key - 1, function=1, **traits)
