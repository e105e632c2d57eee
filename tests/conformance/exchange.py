"""What every conversation with a scheduler under test needs: scripted peers, and the steps of a task's life."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.conformance.findings import Findings, must
from tests.conformance.keys import keys_for
from tests.conformance.messages import Name
from tests.conformance.peer import Peer

VALUE, EXCEPTION, RETRYABLE, WORKER_DIED, CANCELLED, TIMED_OUT, KEPT, INPUT_LOST, STORED = 0, 1, 4, 5, 6, 7, 8, 9, 10


class Exchange:
    """Talks with a scheduler.

    Args:
        keys: a folder with the keys of all roles; empty: the scheduler has no keys.
    """

    def __init__(self, address: str, findings: Findings, keys: str = "") -> None:
        self.address = address
        self.keys = keys
        self.findings = findings
        self.kind = f"named raw conformance {random.randrange(1 << 60):x}"
        """The kind of the functions. No other worker runs it."""

    def peer(self, role: str, **hello: Any) -> Peer:
        return Peer(self.address, role, keys_for(self.keys, role, hello.get("worker", 0)), **hello)

    @contextmanager
    def pair(self) -> Iterator[tuple[Peer, Peer]]:
        """Join a client that has sent function 7, and a worker that can run it."""
        with self.peer("client") as client, self.peer("worker", kinds=[self.kind]) as worker:
            client.join()
            worker.join()
            client.say("function", b"", number=7, name="f", kind=self.kind)
            yield client, worker

    def submit(self, client: Peer, ids: list[int], payload: bytes = b"", **fields: Any) -> None:
        sizes = [len(payload)]
        client.say("submit", ids=ids, functions=[7], sizes=sizes, payload=payload * len(ids), **fields)

    def dispatched(self, worker: Peer, *ids: int) -> dict[int, Name]:
        """Return the names of these tasks, dispatched in any number of messages. No other task may be dispatched."""
        names: dict[int, Name] = {}
        while len(names) < len(ids):
            dispatch = worker.expect("dispatch")
            for name in dispatch.names():
                must(name[1] in ids and name[1] not in names, f"{name} is dispatched")
                names[name[1]] = name
        return names

    def finish(self, worker: Peer, *names: Name, outcome: int = VALUE, payload: bytes = b"") -> None:
        clients, ids, attempts = (list(column) for column in zip(*names))
        fields = {"outcomes": [outcome], "durations": [1000], "sizes": [len(payload)], "payload": payload * len(ids)}
        worker.say("results", clients=clients, ids=ids, attempts=attempts, **fields)

    def resolved(self, client: Peer, *ids: int) -> dict[int, tuple[int, bytes]]:
        """Return outcome and payload of these tasks, each resolved once. The id of the file of a kept result is left
        out."""
        answers: dict[int, tuple[int, bytes]] = {}
        while len(answers) < len(ids):
            resolved = client.expect("resolved")
            rows = zip(resolved.fields["ids"], resolved.column("outcomes"), resolved.payloads())
            for task_id, outcome, payload in rows:
                must(task_id in ids and task_id not in answers, f"task {task_id} is resolved")
                answers[task_id] = outcome, payload[:8] + payload[16:] if outcome == KEPT else payload
        return answers

    def start(self, worker: Peer, name: Name) -> None:
        worker.say("started", clients=[name[0]], ids=[name[1]], attempts=[name[2]])

    def begin(self, client: Peer, worker: Peer, task_id: int, **fields: Any) -> Name:
        """Have a task dispatched, and report that it has started."""
        self.submit(client, [task_id], **fields)
        name = self.dispatched(worker, task_id)[task_id]
        self.start(worker, name)
        client.expect("started")
        return name
