"""A worker process in random conversations: suspended tasks, stops, retracts and new hellos that cross."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.waiting import wait_until
from tests.worker import worker_process as tasks
from tests.worker.fake_scheduler import WAIT_SECONDS, FakeScheduler, of_rows

from scaler_client.protocol.messages import Outcome

STEPS = 1500
FUNCTIONS = {1: tasks.square, 2: tasks.sleep, 3: tasks.spin, 8: tasks.parent, 9: tasks.child}


class Conversation:
    """Sends random messages, and keeps the tasks that the worker has to answer."""

    def __init__(self, scheduler: FakeScheduler, seed: int) -> None:
        self.open: set[int] = set()
        self._repeated: set[int] = set()
        self.counts = dict.fromkeys(("values", "stopped", "given back", "forgotten", "kept over a hello"), 0)
        self._scheduler = scheduler
        self._random = random.Random(seed)
        self._next_id = 1000
        self._parents: set[int] = set()
        """Parents without a child."""
        self._send_functions()

    def say_something(self) -> None:
        chance = self._random.random()
        if chance < 0.25:
            self._dispatch(1, 1, 2, 3, 4)
        elif chance < 0.4:
            self._dispatch(self._random.choice([2, 3]), self._random.random() * 0.03)
        elif chance < 0.6:
            self._parents.add(self._next_id)
            self._dispatch(8, self._next_id)
        elif chance < 0.8:
            if self._parents:
                self._dispatch(9, self._parents.pop())
        elif chance < 0.9:
            self._scheduler.stop(*self._some_open())
        elif chance < 0.98:
            self._scheduler.retract(*self._some_open())
        else:
            self._scheduler.say("helloWanted")

    def listen(self, milliseconds: int) -> None:
        for kind, fields in self._scheduler.read_all(milliseconds):
            if kind == "results":
                self._take_results(fields)
            elif kind == "retracted":
                given = {task for task, is_given in zip(fields["ids"], of_rows(fields, "returned")) if is_given}
                assert given <= self.open
                self._close(given, "given back")
            elif kind == "hello":
                ids = fields["running"]["ids"]
                begun = len(ids) - fields["finished"]
                self._take_hello(set(ids[:begun]), set(ids[begun:]))

    def finish(self) -> None:
        """Wait until all tasks are answered. Parents without a child are stopped."""
        for _ in range(round(WAIT_SECONDS / 0.2)):
            if not self.open:
                return
            self._scheduler.stop(*self.open)
            self.listen(200)
        raise AssertionError(f"never answered: {self.open}")

    def has_value(self) -> bool:
        """Dispatch one more task; return whether it was answered with a value."""
        before = self.counts["values"]
        self._dispatch(1, 3)
        self.finish()
        return self.counts["values"] > before

    def _dispatch(self, function: int, *arguments: Any) -> None:
        ids = range(self._next_id, self._next_id + len(arguments))
        self._next_id += len(arguments)
        self.open.update(ids)
        self._scheduler.dispatch(function, *zip(ids, arguments))

    def _some_open(self) -> list[int]:
        return self._random.sample(sorted(self.open), min(len(self.open), 4))

    def _take_results(self, results: dict[str, Any]) -> None:
        for task, outcome in zip(results["ids"], of_rows(results, "outcomes")):
            if task in self._repeated:
                self._repeated.remove(task)
                continue
            assert task in self.open, "answered without being asked, or twice"
            self._close({task}, "values" if outcome == Outcome.VALUE else "stopped")

    def _take_hello(self, running: set[int], finished: set[int]) -> None:
        """After the welcome, the worker repeats the answers of finished tasks, or sends them if it could not before."""
        assert running <= self.open
        self._repeated |= finished - self.open
        self.counts["kept over a hello"] += len(running)
        self._close(self.open - running - finished, "forgotten")
        self._scheduler.say("welcome", protocolVersion=1, version="0.9", incarnation=5, leaseMilliseconds=60_000)
        self._send_functions()

    def _close(self, tasks: set[int], how: str) -> None:
        self.open -= tasks
        self._parents -= tasks
        self.counts[how] += len(tasks)

    def _send_functions(self) -> None:
        for number, fn in FUNCTIONS.items():
            self._scheduler.send_function(number, fn)


@pytest.mark.parametrize("seed", [1, 2])
def test_every_task_is_answered_once(seed: int) -> None:
    scheduler = FakeScheduler()
    try:
        with tasks.joined_worker(scheduler) as process:
            converse(scheduler, seed)
            process.terminate()
            assert process.wait(WAIT_SECONDS) == 0
    finally:
        scheduler.close()


def converse(scheduler: FakeScheduler, seed: int) -> None:
    conversation = Conversation(scheduler, seed)
    chance = random.Random(seed)
    for _ in range(STEPS):
        conversation.say_something()
        conversation.listen(chance.choice([0, 1, 5]))
    conversation.finish()
    assert all(conversation.counts.values()), conversation.counts
    # The worker answers further tasks. The first ones are forgotten if a hello is still on its way.
    wait_until(conversation.has_value, what="a further value")
