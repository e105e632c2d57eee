"""The maps of a plan: how their users read the results, the sizes of their rows, and maps of many short calls.

They are drawn from a random generator of their own.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from scaler_client.protocol.messages import Options

from .plan import Plan, Work, Writer, is_endless
from .scripts import FUNCTIONS, Script

_SHARE = 1 / 3
"""The share of plans with maps of many calls."""


@dataclass(frozen=True)
class Manner:
    """How a user runs a map."""

    fails_fast: bool = True
    """Whether it is `map`, not `imap`."""
    is_ordered: bool = True
    buffer: int | None = None
    row_calls: int | None = None
    """The number of calls of a row; None: by their run time."""


def add_maps(plan: Plan, writer: Writer, seed: int) -> None:
    """Draw the manner of each map. A third of the plans gets more maps, with many calls."""
    chance = random.Random(f"maps {seed}")
    if chance.random() < _SHARE:
        plan.feed_sizes = {
            "MIN_ROWS": chance.choice((1, 1, 4, 64)),
            "MAX_ROWS": chance.choice((2, 8, 4096)),
            "AHEAD_NS": chance.choice((4_000_000, 40_000_000)),
        }
        for program in plan.clients:
            for _ in range(chance.choice((1, 1, 2))):
                at = chance.choice([*[at for at, _ in plan.faults], chance.uniform(0.0, plan.load_seconds * 0.9)])
                program.append(_work(chance, writer, max(0.0, at - chance.choice((0.0, 0.005, 0.05)))))
    plan.map_sizes = {
        "FIRST_CALLS": chance.choice((1, 4, 4, 64)),
        "_UNKNOWN_CALLS": chance.choice((2, 16)),
        "MAX_CALLS": chance.choice((3, 20, 2048)),
        "HANDOVER_BLOCKS": chance.choice((1, 3, 8)),
        "_CALLS_AHEAD": chance.choice((10, 50, 1 << 17)),
    }
    for program in plan.clients:
        for work in program:
            if work.is_map and work.manner is None:
                work.manner = draw_manner(chance)


def draw_manner(chance: random.Random) -> Manner:
    """Draw how a user runs a map."""
    fails_fast = chance.random() < 0.4
    return Manner(
        fails_fast=fails_fast,
        is_ordered=fails_fast or chance.random() < 0.7,
        buffer=None if fails_fast else chance.choice((None, None, 1, 5, 40)),
        row_calls=chance.choice((None, 2, 5, 30)),
    )


def _work(chance: random.Random, writer: Writer, at: float) -> Work:
    options = Options() if chance.random() < 0.8 else Options(priority=chance.choice((1, -3)))
    function = chance.randrange(FUNCTIONS)
    seconds = chance.choice(((0.0,), (0.0002,), (0.002,), (0.0002, 0.0002, 0.015), (0.0002, 0.15)))
    strange = chance.choice((0.0, 0.02, 0.05, 0.15))
    """The share of calls that do more than return."""
    result_bytes = chance.choice((0, 0, 40, 3000, 300_000))
    is_deadly = chance.random() < 0.2
    """Whether many calls end their workers, and others fail behind them."""
    scripts = []
    for _ in range(chance.choice((15, 40, 100))):
        traits: dict[str, Any] = {}
        if is_deadly and chance.random() < 0.15:
            traits = {"kills": 1} if chance.random() < 0.6 else {"raises": True, "seconds": 0.05}
        elif chance.random() < strange:
            traits = chance.choice((
                {"raises": True}, {"raises": True}, {"kills": 1}, {"kills": 1}, {"kills": 99}, {"kills": 99},
                {"hogs": True, "seconds": 0.5},
                {"seconds": 1.2}, {"stop_seconds": 0.5}, {"ignores_stop": True}, {"grows": True, "seconds": 0.1},
            ))  # fmt: skip
        traits.setdefault("seconds", chance.choice(seconds) * chance.uniform(0.5, 1.5))
        scripts.append(Script(writer.next_key, function, result_bytes=result_bytes, options=options, **traits))
        writer.next_key += 1
    work = Work(at, scripts, is_map=True)
    if is_deadly:
        work.manner = Manner(fails_fast=False, row_calls=chance.choice((2, 5)))
    if chance.random() < 0.15 or any(map(is_endless, scripts)):
        work.cancels.append((writer.moment(), [0], chance.random() < 0.4))
    return work
