"""Objects and graphs in a third of the plans: objects that clients send, and tasks that read them and each other's
results.

They are drawn from a random generator of their own, and replace other work. A quarter of all plans has graphs whose
results stay on their host, and faults of these hosts.
"""

from __future__ import annotations

import random
from dataclasses import replace

from scaler_client.protocol.messages import Options

from . import load_plan, nested_plan, restart_plan
from .gang_plan import add_gangs
from .host_result_faults import KEPT_FAULTS, LONG_FAULTS
from .kept_plan import keep_tasks
from .map_plan import add_maps
from .plan import FIRST_FILE_SEED, Plan, Work, Writer, draw_plain_plan, is_endless
from .reader_plan import add_readers
from .scripts import Script, SentObject, Source

_SHARE = 1 / 3
_KEPT_SHARE = 1 / 4
_NET_SHARE = 1 / 5
_MAX_OBJECTS = 4
"""The most objects that a client refers to."""


ROOM_BYTES = 1 << 30
"""More bytes than the objects of any client have."""


def draw_plan(seed: int) -> Plan:
    """Return the plan of a seed."""
    if seed >= nested_plan.FIRST_SEED:
        return nested_plan.draw_nested_plan(seed)
    if restart_plan.FIRST_SEED <= seed < FIRST_FILE_SEED:
        return restart_plan.draw_restart_plan(seed)
    if load_plan.FIRST_SEED <= seed < FIRST_FILE_SEED:
        return load_plan.draw_load_plan(seed)
    plan, writer = draw_plain_plan(seed)
    chance = random.Random(f"graphs {seed}")
    if chance.random() < _SHARE:
        _add_graphs(plan, writer, chance)
    chance = random.Random(f"kept results {seed}")
    if chance.random() < _KEPT_SHARE:
        _keep_results(plan, writer, chance)
    add_maps(plan, writer, seed)
    chance = random.Random(f"nets {seed}")
    if chance.random() < _NET_SHARE:
        _add_nets(plan, writer, chance)
    add_readers(plan, writer, seed)
    keep_tasks(plan, writer, seed)
    add_gangs(plan, writer, seed)
    return plan


def _add_nets(plan: Plan, writer: Writer, chance: random.Random) -> None:
    """Add nets of short tasks of one function: stencils, whose rows become ready together."""
    _make_room(plan)
    for program in plan.clients:
        for _ in range(chance.choice((1, 2))):
            function = chance.randint(0, 2)
            width = chance.choice((1, 2, 2, 3, 5))
            scripts: list[Script] = []
            for step in range(chance.choice((5, 20, 40))):
                for place in range(width):
                    near = range(max(0, place - 1), min(width, place + 2)) if step else ()
                    script = Script(
                        key=writer.next_key,
                        function=function,
                        seconds=chance.choice((0.0003, 0.0006, 0.001, 0.002)) * chance.choice((1, 1, 1, 1, 1, 1, 1, 9)),
                        raises=chance.random() < 0.005,
                        retryable=int(chance.random() < 0.02),
                        kills=int(chance.random() < 0.01),
                        result_bytes=chance.choice((20, 40, 200, 2000)),
                        options=Options(),
                        inputs=tuple(scripts[(step - 1) * width + other] for other in near),
                    )
                    writer.next_key += 1
                    scripts.append(script)
            work = Work(
                chance.uniform(0.0, plan.load_seconds * 0.9),
                scripts,
                targets=[*range(len(scripts) - width, len(scripts))],
            )
            if chance.random() < 0.3:
                work.cancels.append((chance.uniform(0.0, 0.05), [0], chance.random() < 0.5))
            program.append(work)


def _keep_results(plan: Plan, writer: Writer, chance: random.Random) -> None:
    _add_graphs(plan, writer, chance, keeps=True)
    plan.shared_bytes = plan.kept_bytes = chance.choice((60, 150, 150, 1000))
    plan.write_seconds = chance.choice((0.0002, 0.005, 0.1))
    plan.hosts += [(chance.randint(1, 2), {}) for _ in range(max(0, chance.choice((2, 2, 3)) - len(plan.hosts)))]
    plan.faults = _draw_faults(plan, chance)
    if any(kind in LONG_FAULTS for _, kind in plan.faults):
        plan.timeout_seconds = chance.choice((plan.timeout_seconds, 300.0))
        plan.death_timeout_seconds = chance.choice((60.0, 300.0, 300.0))


def _draw_faults(plan: Plan, chance: random.Random) -> list[tuple[float, str]]:
    """Faults of one kind or of several, alone or beside those of other plans."""
    roll = chance.random()
    if roll < 0.1:
        return []
    if roll < 0.2:
        return plan.faults
    kinds = chance.sample(KEPT_FAULTS, 1 if roll < 0.5 else chance.randint(2, len(KEPT_FAULTS)))
    count = chance.choice((1, 2, 4, 8, 14))
    begins = [work.at for program in plan.clients for work in program if work.targets is not None] or [0.0]
    # Most faults are injected while some graph is running.
    faults = [(chance.choice(begins) + chance.uniform(-0.1, 2.0), chance.choice(kinds)) for _ in range(count)]
    faults = [(min(max(0.0, at), plan.load_seconds * 0.95), kind) for at, kind in faults]
    return sorted(faults + plan.faults[: chance.choice((0, 0, 2))])


def _make_room(plan: Plan) -> None:
    if plan.limits.memory_limit_bytes < ROOM_BYTES:
        plan.windows_divisor *= ROOM_BYTES // plan.limits.memory_limit_bytes
        plan.limits.memory_limit_bytes = ROOM_BYTES


def _add_graphs(plan: Plan, writer: Writer, chance: random.Random, keeps: bool = False) -> None:
    """Add graphs. `keeps`: more and larger graphs, most of whose results stay on hosts."""
    _make_room(plan)
    plan.shared_bytes = chance.choice((100, 100, 1000, 1 << 40))
    plan.small_bytes = chance.choice((0, 0, 60, 256))
    plan.inline_bytes = chance.choice((0, 0, 500, 1 << 14))
    plan.full_share = chance.choice((0.0, 0.0, 0.0, 0.0, 0.5))
    for program in plan.clients:
        graph_writer = _GraphWriter(chance, writer, keeps)
        program[:] = [work for work in program if chance.random() < 0.4]
        for _ in range(chance.choice((1, 2, 3))):
            program.append(graph_writer.work(chance.uniform(0.0, plan.load_seconds * 0.9)))


class _GraphWriter:
    """Draws what one client does with objects and graphs."""

    def __init__(self, chance: random.Random, writer: Writer, keeps: bool) -> None:
        self._chance = chance
        self._writer = writer
        self._keeps = keeps
        self._sent_objects: list[SentObject] = []
        self._clears = chance.random() < 0.2

    def work(self, at: float) -> Work:
        chance = self._chance
        sent_objects = self._some_objects()
        work = (
            self._graph(at, sent_objects)
            if chance.random() < (0.9 if self._keeps else 0.6)
            else self._reading(at, sent_objects)
        )
        asked = range(len(work.scripts if work.targets is None else work.targets))
        for _ in range(chance.choice((0, 0, 0, 0, 1) if self._keeps else (0, 0, 1, 2))):
            chosen = sorted(chance.sample(asked, chance.randint(1, len(asked))))
            work.cancels.append((self._writer.moment(), chosen, chance.random() < 0.4))
        endless = [at for at in asked if is_endless(work.scripts[at if work.targets is None else work.targets[at]])]
        if endless:
            work.cancels.append((self._writer.moment(), endless, True))
        work.drops = [(self._moment(), sent_object) for sent_object in sent_objects if chance.random() < 0.7]
        if self._clears and chance.random() < 0.4:
            work.clears_after = self._moment()
        return work

    def _moment(self) -> float:
        return 0.0 if self._chance.random() < 0.3 else self._writer.moment()

    def _some_objects(self) -> list[SentObject]:
        chance = self._chance
        sent_objects = chance.sample(self._sent_objects, chance.randint(0, len(self._sent_objects)))
        for _ in range(chance.choice((0, 1, 1, 2))):
            sizes = (0, 40, 200, 2000, 70_000) if self._writer.is_heavy else (0, 40, 200, 2000)
            sent_objects.append(
                SentObject(self._writer.next_key, tuple(chance.choices(sizes, k=chance.choice((1, 1, 2, 3)))))
            )
            self._writer.next_key += 1
        self._sent_objects = [*self._sent_objects, *sent_objects][-_MAX_OBJECTS:]
        return sent_objects

    def _reading(self, at: float, sent_objects: list[SentObject]) -> Work:
        """Tasks that read objects."""
        chance, writer = self._chance, self._writer
        options = writer.options()
        scripts = []
        for _ in range(chance.choice((1, 2, 5, 12))):
            inputs = chance.choices(sent_objects, k=chance.choice((0, 1, 1, 2, 3))) if sent_objects else []
            scripts.append(replace(writer.script(options), inputs=tuple(inputs)))
        is_map = chance.random() < 0.3
        if is_map:
            scripts = [replace(script, function=scripts[0].function) for script in scripts]
        return Work(at, scripts, is_map=is_map)

    def _graph(self, at: float, sent_objects: list[SentObject]) -> Work:
        chance, writer = self._chance, self._writer
        options = writer.options()
        if self._keeps and chance.random() < 0.7:
            options = Options()
        scripts: list[Script] = []
        reach = chance.choice((1, 2, 5, 100))
        """How far back a task looks for its inputs. This makes chains, nets, and inputs with many readers."""
        for _ in range(chance.choice((3, 8, 20, 40, 60) if self._keeps else (1, 2, 3, 5, 8, 20, 40))):
            read = chance.choice((0, 1, 1, 2, 2, 3) if self._keeps else (0, 1, 1, 2, 3))
            inputs: list[Source] = chance.choices(scripts[-reach:], k=read) if scripts else []
            if sent_objects and chance.random() < 0.3:
                inputs += chance.choices(sent_objects, k=chance.choice((1, 1, 2)))
            scripts.append(self._node(writer.script(options), tuple(inputs)))
        targets = {len(scripts) - 1, *chance.sample(range(len(scripts)), chance.randint(0, min(3, len(scripts))))}
        if self._keeps and chance.random() < 0.7:
            read_by_others = {each.key for script in scripts for each in script.inputs}
            targets |= {row for row, script in enumerate(scripts) if script.key not in read_by_others}
        keys = {script.key for target in targets for script in scripts[target].needed}
        rows = [row for row, script in enumerate(scripts) if script.key in keys]
        places = [place for place, row in enumerate(rows) if row in targets]
        return Work(at, [scripts[row] for row in rows], targets=places)

    def _node(self, script: Script, inputs: tuple[Source, ...]) -> Script:
        """Make a task of a graph. Few are special, and none runs for ever, because no script would end it."""
        chance = self._chance
        result_bytes = chance.choice((script.result_bytes, 40, 200, 2000))
        if self._keeps:
            return self._kept_node(script, inputs)
        if chance.random() < 0.15 and not _is_long(script):
            return replace(script, inputs=inputs, result_bytes=result_bytes)
        return Script(
            key=script.key,
            function=script.function,
            seconds=min(script.seconds, chance.choice((0.002, 0.02, 0.2))),
            raises=chance.random() < 0.03,
            payload_bytes=script.payload_bytes,
            result_bytes=result_bytes,
            options=script.options,
            inputs=inputs,
        )

    def _kept_node(self, script: Script, inputs: tuple[Source, ...]) -> Script:
        """Make a task whose result is large in most cases."""
        chance = self._chance
        if chance.random() < 0.05 and not _is_long(script):
            return replace(script, inputs=inputs, result_bytes=2000)
        return Script(
            key=script.key,
            function=script.function,
            seconds=chance.choice((0.0, 0.005, 0.05, 0.3)) * chance.uniform(0.5, 1.5),
            raises=chance.random() < 0.003,
            result_bytes=chance.choice((0, 100, 200, 2000, 2000, 2000)),
            options=script.options,
            inputs=inputs,
        )


def _is_long(script: Script) -> bool:
    return script.seconds > 5.0
