"""python -m tests.chaos.load ADDRESS KEYS LOG TIMES NUMBER SEED: the steady load of one client, with or without keys.

It submits tasks until standard input ends, waits until all tasks are resolved, and prints an `Outcome` as JSON. It
writes the times of the results to the file TIMES, as doubles.
"""

from __future__ import annotations

import collections
import dataclasses
import importlib
import json
import queue
import random
import sys
import threading
import time
from array import array
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any

import numpy
from tests.chaos.graphs import Stored, make, random_graph, random_size, wait_without_end
from tests.chaos.work import (
    MODULE,
    answer_to,
    deadly,
    deaf,
    endless,
    flaky,
    member,
    parent,
    parents_answer,
    total_of,
    troubled,
    work,
)
from tests.integration.executions import note

from scaler_client import Client, TaskTimeoutError, WorkerDiedError
from scaler_client.futures.future import TaskFuture

OPEN_TASKS = 60
"""The number of open tasks that are submitted one by one."""

MAP_ROWS = 300
CHILDREN = 4
LONG_RETRIES = 30
"""A task of up to 200 ms meets a killer in one of eight executions. With three retries, one task in some thousands
would fail, which is right."""

OPEN_GRAPHS = 2
"""The number of open graphs whose targets are futures. One more graph is open in a `get`."""

MAX_OBJECTS = 4

LOSS_SECONDS = 600.0
"""Longer than any outage: no task may be given up because there is no scheduler."""

PATIENCE_SECONDS = 90.0
"""The time from the end of the load until an unresolved task counts as lost."""


Submitted = tuple[Future[Any], Any]
"""A future, and what it must give: a value or a class of exceptions."""


@dataclasses.dataclass
class Outcome:
    submitted: int = 0
    """Submitted tasks: with the rows of maps, without tasks of tasks."""
    done: int = 0
    graphs: int = 0
    """Graphs that have ended with the right values."""
    kinds: dict[str, int] = dataclasses.field(default_factory=dict)
    """The number of ended futures and rows, by kind."""
    lost: list[str] = dataclasses.field(default_factory=list)
    resolved_twice: list[str] = dataclasses.field(default_factory=list)
    wrong: list[str] = dataclasses.field(default_factory=list)
    failed: list[str] = dataclasses.field(default_factory=list)


class Load:
    """The load of one client, and its results."""

    def __init__(self, client: Client, log: str, number: int, seed: int, module: Any) -> None:
        self._module = module
        # No task of this load may fail because of too many deaths.
        self._client = client.options(retries=LONG_RETRIES)
        self._log = log
        self._number = number
        self._random = random.Random(seed)
        self._retrying = client.options(retries=LONG_RETRIES, retry_on=(OSError,), priority=1)
        self._limited = client.options(retries=LONG_RETRIES, timeout=0.1)
        self._room = threading.Semaphore(OPEN_TASKS)
        self._stop = threading.Event()
        self._to_cancel: queue.SimpleQueue[TaskFuture[Any] | None] = queue.SimpleQueue()
        """The futures to cancel; None behind the last."""
        self._calls: collections.Counter[str] = collections.Counter()
        self._open: dict[str, Future[Any]] = {}
        self._objects: list[Stored] = []
        """The objects that the submitting thread refers to."""
        self._graph_room = threading.Semaphore(OPEN_GRAPHS)
        self.outcome = Outcome()
        self.times = array("d")
        self._kinds: dict[str, tuple[float, Callable[[str, int], Submitted]]] = {
            "short": (70.0, self._short),
            "of an object": (4.0, self._of_an_object),
            "of a kept result": (2.0, self._of_a_kept_result),
            "of up to 200 ms": (8.0, self._longer),
            "with retry_on": (5.0, self._flaky),
            "with tasks of its own": (1.5, self._parent),
            "with tasks that end their processes": (0.5, self._troubled),
            "beyond its time limit": (0.5, self._endless),
            "asleep beyond its time limit": (0.5, self._deaf),
            "ends its process": (0.5, self._deadly),
            "stopped by a cancel": (0.5, self._cancelled),
            "with a limit": (2.0, self._with_a_limit),
            "with resources": (2.0, self._with_resources),
            "gang": (1.0, self._gang),
            "of a module": (5.0 if module is not None else 0.0, self._of_a_module),
        }
        """The share of each kind of tasks in percent or so, and what submits one."""
        self._lock = threading.Lock()
        """Guards the open tasks, the objects, the times and the outcome."""

    def run(self, wait_for_end: Callable[[], object]) -> None:
        duties = (self._submit_on, self._map_on, self._graphs_on, self._get_on)
        submitting = [threading.Thread(target=each, daemon=True) for each in duties]
        cancelling = threading.Thread(target=self._cancel_on, daemon=True)
        for thread in (*submitting, cancelling):
            thread.start()
        wait_for_end()
        self._stop.set()
        deadline = time.monotonic() + PATIENCE_SECONDS
        for thread in submitting:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._to_cancel.put(None)
        cancelling.join(max(0.0, deadline - time.monotonic()))
        while self._open and time.monotonic() < deadline:
            time.sleep(0.01)
        with self._lock:
            self.outcome.lost += list(self._open)
            self.outcome.resolved_twice += [task for task, calls in self._calls.items() if calls > 1]

    def _submit_on(self) -> None:
        number = 0
        while not self._stop.is_set():
            if self._room.acquire(timeout=0.1):
                number += 1
                self._submit(number)

    def _submit(self, value: int) -> None:
        (kind,) = self._random.choices(list(self._kinds), weights=[share for share, _ in self._kinds.values()])
        _, submit = self._kinds[kind]
        task = f"{self._number}-{value}{submit.__name__}"
        with self._lock:
            self.outcome.submitted += 1
            future, expected = submit(task, value)
            self._open[task] = future
        self._watch(kind, task, future, expected, self._room.release)

    def _short(self, task: str, value: int) -> Submitted:
        return self._client.submit(work, self._log, task, 0.0, value), answer_to(value)

    def _longer(self, task: str, value: int) -> Submitted:
        return self._client.submit(work, self._log, task, self._random.uniform(0.01, 0.2), value), answer_to(value)

    def _of_an_object(self, task: str, value: int) -> Submitted:
        self._renew_objects()
        stored = self._random.choice(self._objects)
        return self._client.submit(total_of, self._log, task, stored.reference), stored.size * stored.value

    def _of_a_kept_result(self, task: str, value: int) -> Submitted:
        size = random_size(self._random)
        kept = self._client.options(keep=True).submit(make, self._log, f"{task}-kept", 0.0, size, value % 10)
        return self._client.submit(total_of, self._log, f"{task}-keptread", kept), size * (value % 10)

    def _flaky(self, task: str, value: int) -> Submitted:
        return self._retrying.submit(flaky, self._log, task, 0.0, value), answer_to(value)

    def _parent(self, task: str, value: int) -> Submitted:
        call = (parent, self._log, task, self._client, CHILDREN, value)
        return self._client.submit(*call), parents_answer(CHILDREN, value)

    def _troubled(self, task: str, value: int) -> Submitted:
        call = (troubled, self._log, task, self._client, self._random.randrange(3), value)
        return self._client.submit(*call), answer_to(value)

    def _endless(self, task: str, value: int) -> Submitted:
        return self._limited.submit(endless, self._log, task), TaskTimeoutError

    def _deaf(self, task: str, value: int) -> Submitted:
        return self._limited.submit(deaf, self._log, task), TaskTimeoutError

    def _deadly(self, task: str, value: int) -> Submitted:
        return self._client.options(retries=0).submit(deadly, self._log, task), WorkerDiedError

    def _cancelled(self, task: str, value: int) -> Submitted:
        future = self._client.submit(endless, self._log, task)
        self._to_cancel.put(future)
        return future, CancelledError

    def _with_a_limit(self, task: str, value: int) -> Submitted:
        client = self._client.options(limit=f"lock:{value % 2}")
        return client.submit(work, self._log, task, 0.0, value), answer_to(value)

    def _with_resources(self, task: str, value: int) -> Submitted:
        client = self._client.options(resources={"slot": 0.5}, cpus=1 + value % 2)
        return client.submit(work, self._log, task, self._random.uniform(0.0, 0.05), value), answer_to(value)

    def _gang(self, task: str, value: int) -> Submitted:
        size = 2
        gang = self._client.submit_gang(member, self._log, f"{task}-gang", value, size=size)
        return gang, [size * (size - 1) // 2 + value] * size

    def _of_a_module(self, task: str, value: int) -> Submitted:
        assert self._module is not None
        return self._client.submit(self._module.answer, note, self._log, task, value), answer_to(value)

    def _renew_objects(self) -> None:
        """Send a new object, and drop the reference to the oldest one: tasks that read it may still wait."""
        size, value = random_size(self._random), self._random.randrange(10)
        reference = self._client.send_object(numpy.full(size, value))
        self._objects = [*self._objects[1 - MAX_OBJECTS :], Stored(reference, size, value)]

    def _resolved(
        self, kind: str, task: str, future: Future[Any], expected: Any, release: Callable[[], object]
    ) -> None:
        now = time.monotonic()
        try:
            result = future.result()
            is_right = result == expected
        except BaseException as error:
            result = error
            is_right = isinstance(expected, type) and isinstance(error, expected)
        with self._lock:
            self.times.append(now)
            self._calls[task] += 1
            if self._calls[task] > 1:
                return
            del self._open[task]
            self._count(kind, 1)
            if is_right:
                self.outcome.done += 1
            elif isinstance(result, BaseException):
                self.outcome.failed.append(f"{task}: {result!r}")
            else:
                self.outcome.wrong.append(f"{task}: {result!r} in place of {expected!r}")
        release()

    def _count(self, kind: str, number: int) -> None:
        self.outcome.kinds[kind] = self.outcome.kinds.get(kind, 0) + number

    def _graphs_on(self) -> None:
        """Submit graphs with futures as targets. Some graphs have a target that never ends, and is cancelled."""
        chance = random.Random(self._random.random())
        number = 0
        while not self._stop.is_set():
            if not self._graph_room.acquire(timeout=0.1):
                continue
            number += 1
            name = f"{self._number}-graph{number}"
            objects = self._objects
            stored = chance.choice(objects) if objects and chance.random() < 0.5 else None
            graph, expected = random_graph(chance, self._log, name, stored)
            answers: dict[str, Any] = dict(expected)
            if number % 5 == 1:  # the first one too, so that a short run has some
                graph["endless"] = (wait_without_end, self._log, f"{name}-endless", chance.choice(list(graph)))
                graph["reader"] = (make, self._log, f"{name}-reader", 0.0, 10, "endless")
                answers.update(endless=CancelledError, reader=CancelledError)
            self._submit_graph(name, graph, answers)

    def _submit_graph(self, name: str, graph: dict[str, Any], answers: dict[str, Any]) -> None:
        rest = [len(answers)]
        rest_lock = threading.Lock()

        def release() -> None:
            with rest_lock:
                rest[0] -= 1
                is_over = not rest[0]
            if is_over:
                with self._lock:
                    self.outcome.graphs += 1
                self._graph_room.release()

        with self._lock:
            self.outcome.submitted += len(answers)
            futures = dict(zip(answers, self._client.submit_graph(graph, list(answers))))
            self._open.update((f"{name}-{key}", future) for key, future in futures.items())
        for key, future in futures.items():
            kind = "graph's target" if answers[key] is not CancelledError else "graph's target, cancelled"
            self._watch(kind, f"{name}-{key}", future, answers[key], release)
        if "endless" in futures:
            self._to_cancel.put(futures["endless"])

    def _watch(self, kind: str, task: str, future: Future[Any], expected: Any, release: Callable[[], object]) -> None:
        future.add_done_callback(lambda done: self._resolved(kind, task, done, expected, release))

    def _get_on(self) -> None:
        chance = random.Random(self._random.random())
        number = 0
        while not self._stop.is_set():
            number += 1
            name = f"{self._number}-get{number}"
            graph, expected = random_graph(chance, self._log, name, None)
            with self._lock:
                self.outcome.submitted += len(expected)
                self.outcome.lost.append(name)
            try:
                error, values = None, self._client.get(graph, list(expected))
            except BaseException as raised:
                error, values = raised, {}
            with self._lock:
                self.times.append(time.monotonic())
                self.outcome.lost.remove(name)
                if error is not None:
                    self.outcome.failed.append(f"{name}: {error!r}")
                elif values != expected:
                    self.outcome.wrong.append(f"{name}: {values} in place of {expected}")
                else:
                    self._count("get's key", len(expected))
                    self.outcome.done += len(expected)
                    self.outcome.graphs += 1
            self._stop.wait(0.05)

    def _cancel_on(self) -> None:
        while (future := self._to_cancel.get()) is not None:
            # Some of them run by then, others wait.
            self._stop.wait(self._random.uniform(0.0, 0.1))
            if not future.cancel(force=True):
                with self._lock:
                    self.outcome.failed.append(f"{future!r} can't be cancelled")

    def _map_on(self) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            tasks = [f"{self._number}-map{number}-{row}" for row in range(MAP_ROWS)]
            with self._lock:
                self.outcome.submitted += MAP_ROWS
                self.outcome.lost += tasks
            self._map(tasks)
            self._stop.wait(0.1)

    def _map(self, tasks: list[str]) -> None:
        mapped = set(tasks)
        try:
            results = self._client.map(work, [(self._log, task, 0.0, row) for row, task in enumerate(tasks)])
            wrong = [task for row, task in enumerate(tasks) if results[row] != answer_to(row)]
            failed = []
        except Exception as error:
            wrong, failed = [], [f"{tasks[0]} and others: {error!r}"]
        with self._lock:
            self.times.extend([time.monotonic()] * len(tasks))
            self.outcome.lost = [each for each in self.outcome.lost if each not in mapped]
            self.outcome.wrong += wrong
            self.outcome.failed += failed
            self._count("row of a map", len(tasks))
            self.outcome.done += 0 if failed else len(tasks) - len(wrong)


def main() -> None:
    address, keys, log, times, number, seed = sys.argv[1:]
    # One client has a module, so that workers change between its tasks and those of the others.
    source = Path(times).with_name("chaos_module.py")
    if number == "0":
        source.write_text(MODULE)
        sys.path.insert(0, str(source.parent))
    module = importlib.import_module(source.stem) if number == "0" else None
    modules = [source] if number == "0" else []
    with Client(address, keys=keys, timeout_seconds=LOSS_SECONDS, modules=modules) as client:
        load = Load(client, log, int(number), int(seed), module)
        print("ready", flush=True)
        load.run(sys.stdin.read)
        with open(times, "wb") as file:
            load.times.tofile(file)
        print(json.dumps(dataclasses.asdict(load.outcome)), flush=True)


if __name__ == "__main__":
    main()
