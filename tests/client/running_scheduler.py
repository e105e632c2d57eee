"""A fake scheduler that runs tasks in threads of the test's process, for tests of results rather than messages."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from tests.client.scheduler_stand_in import FakeScheduler

from scaler_client.pickling.call_rows import PICKLES, SINGLES, pack_answer, row_calls
from scaler_client.pickling.serializer import dump_exception, dumps, loads
from scaler_client.protocol.messages import Outcome

Name = tuple[bytes, int]
"""A peer, and its id of a function or a task."""


class RunningScheduler(FakeScheduler):
    """Runs tasks in order, `workers` at once. Cancels like the real scheduler."""

    def __init__(self, address: str = "tcp://127.0.0.1:*", incarnation: int = 5, workers: int = 2) -> None:
        self.names: list[str] = []
        """The function names of the tasks, in order of arrival."""
        self.options: list[dict[str, Any]] = []
        """The options of each batch."""
        self._functions: dict[Name, tuple[str, bytes]] = {}
        self._calls: dict[Name, Future[None]] = {}
        self._answering = threading.Lock()
        self._pool = ThreadPoolExecutor(workers)
        super().__init__(address, incarnation)
        self._worker = threading.Thread(target=self._work, daemon=True)
        self._worker.start()

    @property
    def open_tasks(self) -> int:
        """The number of tasks without an answer."""
        return len(self._calls)

    @property
    def waiting_tasks(self) -> int:
        """The number of tasks that have not begun."""
        with self._answering:
            return sum(not call.running() and not call.done() for call in self._calls.values())

    def close(self) -> None:
        super().close()
        self._received.put((b"", "over", {}, []))
        self._worker.join()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _work(self) -> None:
        while True:
            peer, kind, body, frames = self._received.get()
            if kind == "over":
                return
            if kind == "function":
                self._functions[peer, body["number"]] = body["name"], frames[0]
            elif kind == "submit":
                self._submit(peer, body)
            elif kind == "cancel":
                for task_id in body["ids"]:
                    self._cancel(peer, task_id, bool(body.get("force")))

    def _submit(self, peer: bytes, body: dict[str, Any]) -> None:
        self.options.append(body.get("options", {}))
        run = self._run_calls if body.get("options", {}).get("calls") else self._run_task
        ids = body["ids"]
        sizes, functions = (column * (len(ids) // len(column)) for column in (body["sizes"], body["functions"]))
        begin = 0
        for task_id, size, number in zip(ids, sizes, functions):
            payload = body["payload"][begin : begin + size]
            begin += size
            name, function = self._functions[peer, number]
            self.names.append(name)
            with self._answering:  # the answer must not come before the entry
                self._calls[peer, task_id] = self._pool.submit(run, peer, task_id, function, payload)

    def _cancel(self, peer: bytes, task_id: int, force: bool) -> None:
        call = self._calls.get((peer, task_id))
        if call is None:
            return
        if call.cancel() or force:
            self._answer(peer, task_id, Outcome.CANCELLED, b"")
        else:
            self._say(peer, "cancelRefused", ids=[task_id])

    def _run_task(self, peer: bytes, task_id: int, function: bytes, payload: bytes) -> None:
        self._say(peer, "started", ids=[task_id])
        arguments = loads(payload)
        args, kwargs = arguments if isinstance(arguments, list) else (arguments, {})
        try:
            answer = partial(self._answer, peer, task_id, Outcome.VALUE, dumps(loads(function)(*args, **kwargs)))
        except BaseException as error:
            answer = partial(self._answer, peer, task_id, Outcome.EXCEPTION, dump_exception(error, "remote frames"))
        answer()

    def _run_calls(self, peer: bytes, task_id: int, function: bytes, payload: bytes) -> None:
        """Run a row that stands for several calls."""
        self._say(peer, "started", ids=[task_id])
        begun = time.perf_counter_ns()
        pickles: list[bytes] = []
        outcome, failure = Outcome.VALUE, b""
        try:
            form, _, calls, _ = row_calls(payload)
            for call in calls:
                arguments = loads(call) if form == PICKLES else (call,) if form == SINGLES else call
                pickles.append(dumps(loads(function)(*arguments)))
        except BaseException as error:
            outcome, failure = Outcome.EXCEPTION, dump_exception(error, "remote frames")
        run_ns = time.perf_counter_ns() - begun
        self._answer(peer, task_id, outcome, pack_answer([], pickles, run_ns, failure))

    def _answer(self, peer: bytes, task_id: int, outcome: Outcome, payload: bytes) -> None:
        with self._answering:
            if self._calls.pop((peer, task_id), None) is not None:
                self._say(
                    peer, "resolved", ids=[task_id], outcomes=[int(outcome)], sizes=[len(payload)], payload=payload
                )
