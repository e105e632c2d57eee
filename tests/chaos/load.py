"""python -m tests.chaos.load ADDRESS LOG TIMES NUMBER SEED: the steady load of one client.

It goes on until standard input ends, waits until everything has been resolved, and prints an `Outcome` as JSON. The
moments at which results came are written to the file TIMES, as doubles.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import queue
import random
import sys
import threading
import time
from array import array
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any

from tests.chaos.work import answer_to, endless, flaky, parent, parents_answer, work

from scaler_client import Client, TaskTimeoutError

OPEN_TASKS = 60
"""Of those that are submitted one by one, so many are open at a time."""

MAP_ROWS = 300
CHILDREN = 4
LONG_RETRIES = 30
"""A task of up to 200 ms meets a killer in one of eight executions; with three retries one in some thousands would
fail, as it should."""

PATIENCE_SECONDS = 60.0
"""From the end of the load until what is not resolved counts as lost."""


@dataclasses.dataclass
class Outcome:
    submitted: int = 0
    """Rows of maps included; tasks that tasks have submitted are not."""
    done: int = 0
    lost: list[str] = dataclasses.field(default_factory=list)
    resolved_twice: list[str] = dataclasses.field(default_factory=list)
    wrong: list[str] = dataclasses.field(default_factory=list)
    failed: list[str] = dataclasses.field(default_factory=list)


class Load:
    """What one client submits, and what it gets."""

    def __init__(self, client: Client, log: str, number: int, seed: int) -> None:
        self._client = client
        self._log = log
        self._number = number
        self._random = random.Random(seed)
        self._patient = client.options(retries=LONG_RETRIES)
        self._retrying = client.options(retries=LONG_RETRIES, retry_on=(OSError,), priority=1)
        self._limited = client.options(retries=LONG_RETRIES, timeout=0.1)
        self._room = threading.Semaphore(OPEN_TASKS)
        self._stop = threading.Event()
        self._to_cancel: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._calls: collections.Counter[str] = collections.Counter()
        self._open: dict[str, Future[Any]] = {}
        self.outcome = Outcome()
        self.times = array("d")
        self._lock = threading.Lock()
        """Of the three above, and of the outcome."""

    def run(self, wait_for_end: Callable[[], object]) -> None:
        threads = [
            threading.Thread(target=each, daemon=True) for each in (self._submit_on, self._map_on, self._cancel_on)
        ]
        for thread in threads:
            thread.start()
        wait_for_end()
        self._stop.set()
        deadline = time.monotonic() + PATIENCE_SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
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
                self._submit(f"{self._number}-{number}", number)

    def _submit(self, task: str, value: int) -> None:
        kind = self._random.random()
        seconds = self._random.uniform(0.01, 0.2)
        expected: Any = answer_to(value)
        with self._lock:
            self.outcome.submitted += 1
            if kind < 0.80:
                future = self._client.submit(work, self._log, task, 0.0, value)
            elif kind < 0.90:
                future = self._patient.submit(work, self._log, task, seconds, value)
            elif kind < 0.97:
                future = self._retrying.submit(flaky, self._log, task, 0.0, value)
            elif kind < 0.99:
                expected = parents_answer(CHILDREN, value)
                future = self._patient.submit(parent, self._log, task, self._patient, CHILDREN, value)
            elif kind < 0.995:
                expected = TaskTimeoutError
                future = self._limited.submit(endless, self._log, task)
            else:
                expected = CancelledError
                future = self._patient.submit(endless, self._log, task)
                self._to_cancel.put(future)
            self._open[task] = future
        future.add_done_callback(lambda done: self._resolved(task, done, expected))

    def _resolved(self, task: str, future: Future[Any], expected: Any) -> None:
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
            if is_right:
                self.outcome.done += 1
            elif isinstance(result, BaseException):
                self.outcome.failed.append(f"{task}: {result!r}")
            else:
                self.outcome.wrong.append(f"{task}: {result!r} in place of {expected!r}")
        self._room.release()

    def _cancel_on(self) -> None:
        while not (self._stop.is_set() and self._to_cancel.empty()):
            try:
                future = self._to_cancel.get(timeout=0.1)
            except queue.Empty:
                continue
            # Some run by then, others wait.
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
        try:
            results = self._client.map(work, [(self._log, task, 0.0, row) for row, task in enumerate(tasks)])
            wrong = [task for row, task in enumerate(tasks) if results[row] != answer_to(row)]
            failed = []
        except Exception as error:
            wrong, failed = [], [f"{tasks[0]} and others: {error!r}"]
        with self._lock:
            self.times.extend([time.monotonic()] * len(tasks))
            del self.outcome.lost[-len(tasks) :]
            self.outcome.wrong += wrong
            self.outcome.failed += failed
            self.outcome.done += 0 if failed else len(tasks) - len(wrong)


def main() -> None:
    address, log, times, number, seed = sys.argv[1:]
    with Client(address) as client:
        load = Load(client, log, int(number), int(seed))
        print("ready", flush=True)
        load.run(sys.stdin.read)
        with open(times, "wb") as file:
            load.times.tofile(file)
        print(json.dumps(dataclasses.asdict(load.outcome)), flush=True)


if __name__ == "__main__":
    main()
