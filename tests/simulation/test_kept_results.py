"""Results that stay on their hosts: the real session and the real core, with hosts that die at any time.

Whatever a program has seen done, it can still read.
"""

from __future__ import annotations

import gc
import pickle
import random
from typing import Any

import pytest
from tests.client.session.stand_ins import HELLO, new_session
from tests.client.session.test_kept_results import Caller
from tests.scheduler.core.harness import Core, plain

from scaler_client.futures.kept_results import FetchedValue, KeptFuture, fetch_values
from scaler_client.pickling.functions import Function
from scaler_client.pickling.references import CallWithInputs
from scaler_client.protocol import wire
from scaler_client.session.kept_values import KeptValues
from scaler_client.session.task_inputs import TaskInputs
from scaler_scheduler.core import effects, events
from scaler_scheduler.core.completion.host_results import HostResults
from scaler_scheduler.core.state.functions import LARGE_BYTES
from scaler_scheduler.wire.decode import decode
from scaler_scheduler.wire.encode import Identity, encode

C = b"client"
SEEDS = range(20)
IDENTITY = Identity(9, "0.1.0")


class World(Core):
    """A client, the scheduler, and hosts with one agent and one worker each."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.chance = random.Random(seed)
        self.session = new_session()
        self.caller: Any = Caller(self.session)
        self.files: dict[bytes, set[int]] = {}
        """The results that each agent has as files, by its route."""
        self.tasks: list[tuple[bytes, tuple[int, int, int], bool]] = []
        """What workers have to do: the worker, the task, and whether its result may be stored."""
        self.fetched: list[tuple[bytes, int]] = []
        self._hosts = 0
        self.start_host()
        self.start_host()
        self.pump()

    def start_host(self) -> None:
        number = self._hosts = self._hosts + 1
        self.files[b"agent %d" % number] = set()
        self.agent(b"agent %d" % number, 1000 + number)
        self.worker(b"worker %d" % number, 2000 + number, agent=1000 + number)

    def kill_host(self) -> None:
        agent = self.chance.choice(list(self.files))
        worker = agent.replace(b"agent", b"worker")
        del self.files[agent]
        self.tasks = [each for each in self.tasks if each[0] != worker]
        self.fetched = [each for each in self.fetched if each[0] != agent]
        self.feed(events.Goodbye(worker, "it is killed"), events.Goodbye(agent, "it is killed"))
        self.start_host()

    def _collect(self) -> None:
        for effect in self.scheduler.collect():
            if effect.route == C:
                self.session.handle(wire.decode([bytes(each) for each in encode(effect, IDENTITY)]), self.now)
                continue
            sent = plain(effect)
            if sent[0] == "dispatch":
                flags = sent[3] if len(sent) > 3 else {}
                for row, each in enumerate(sent[2]):
                    may_store = bool(flags.get(row, (0,))[0] & effects.FLAG_MAY_STORE)
                    self.tasks.append((sent[1], each[:3], may_store))
            elif sent[0] == "fetch objects":
                self.fetched += [(sent[1], each) for _, each in sent[2]]
            elif sent[0] == "forget objects" and sent[1] in self.files:
                self.files[sent[1]].difference_update(each for _, each in sent[2])
            self._sent.append(sent)

    def pump(self) -> None:
        while messages := self.session.pop_frames():
            self.feed(*[decode(C, [bytes(each) for each in frames]) for frames in messages])

    def step(self) -> bool:
        """Let one worker or agent do something. Returns whether there was anything to do."""
        self.pump()
        if self.tasks and (not self.fetched or self.chance.random() < 0.7):
            worker, name, may_store = self.tasks.pop(self.chance.randrange(len(self.tasks)))
            if may_store and self.chance.random() < 0.8:
                self.files[worker.replace(b"worker", b"agent")].add(name[1])
                body, outcome = LARGE_BYTES.to_bytes(8, "little"), effects.OUTCOME_STORED
            else:
                body, outcome = pickle.dumps(name[1]), effects.OUTCOME_VALUE
            self.results(worker, [name], body=body, outcome=outcome)
        elif self.fetched:
            agent, object_id = self.fetched.pop(0)
            frames = [pickle.dumps(object_id), bytes(LARGE_BYTES)]
            self.feed(events.Object(agent, object_id, "", frames, HELLO.incarnation))
        else:
            return False
        return True

    def submit(self, inputs: list[KeptFuture[Any]]) -> KeptFuture[Any]:
        call = CallWithInputs(b"p", [each.reference for each in inputs])
        function = Function(1 + self.chance.randrange(3), "f", b"code")
        future: KeptFuture[Any] = KeptFuture(self.caller, function, call, options=None, parent=None)
        self.session.submit_kept(future)
        return future


def run(seed: int) -> None:
    """Run a program of kept tasks with this seed."""
    world = World(seed)
    chance = world.chance
    alive: list[KeptFuture[Any]] = []
    values: list[tuple[int, FetchedValue[Any]]] = []
    for _ in range(120):
        draw = chance.random()
        if draw < 0.35:
            alive.append(world.submit(chance.sample(alive, min(len(alive), chance.randrange(3)))))
        elif draw < 0.45 and alive:
            del alive[chance.randrange(len(alive))]
        elif draw < 0.6 and alive:
            future = chance.choice(alive)
            values.append((future.task_id, fetch_values([future])[0]))
        elif draw < 0.68:
            world.kill_host()
        else:
            world.step()
        world.pump()
    values += [(future.task_id, fetch_values([future])[0]) for future in alive]
    for _ in range(10_000):
        if not world.step():
            break
    for task_id, value in values:
        assert value.done(), f"seed {seed}: the value of {task_id} does not come"
        assert value.result() == task_id, f"seed {seed}: the value of {task_id} is {value.result()}"
    del value
    values.clear(), alive.clear()
    del future
    gc.collect()
    while world.step():
        pass
    assert world.tables()["objects"] == 0, f"seed {seed}: results stay without a future"
    assert not any(world.files.values()), f"seed {seed}: files stay without a future: {world.files}"


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_seen_done_can_be_read(seed: int) -> None:
    run(seed)


def _nothing(*_: Any) -> None: ...


FAULTS: list[tuple[str, Any, str, Any]] = [
    ("a client does not learn of a loss", HostResults, "_tell_missing", _nothing),
    ("a lost result is not made again", TaskInputs, "make_again", _nothing),
    ("freed inputs are not freed again", TaskInputs, "_bind_kept", None),
    ("lost values are not noted", KeptValues, "note_lost", _nothing),
]


@pytest.mark.parametrize(("what", "owner", "name", "fault"), FAULTS, ids=[each[0] for each in FAULTS])
def test_deliberate_faults_are_found(
    what: str, owner: Any, name: str, fault: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fault is None:
        monkeypatch.setattr("scaler_client.session.held_objects.HeldObjects.lend", _nothing)
    else:
        monkeypatch.setattr(owner, name, fault)
    for seed in SEEDS:
        try:
            run(seed)
        except Exception:
            return
    pytest.fail(f"no seed finds that {what}")
