"""Nested clients of workers with keys. A client with a worker's key may only submit tasks for the tasks of one worker.

The hello of such a client waits until a worker of the same key has joined and holds a task of a connected client.
After a restart of the scheduler, the worker and the client of that task may join later than the nested client. The
nested client uses the share of that client, so a worker's key has no share of its own.
"""

from __future__ import annotations

from collections.abc import Container

from scaler_scheduler.core.errors import ProtocolError
from scaler_scheduler.core.events import CLIENT, Hello, Submit
from scaler_scheduler.core.state.records import Client
from scaler_scheduler.core.tables import Tables

WAIT_SECONDS = 5.0
"""How long a hello waits for its worker. Workers try to connect every 250 ms."""

PARENT_SECONDS = 10.0
"""How long a nested client may submit after its worker held a task. A task may end before the message with its last
children is read, because workers and nested clients have different connections."""

WAITING_LIMIT = 1000
"""Hellos that may wait."""

_CHECK_SECONDS = 0.25


class NestedHellos:
    """The waiting hellos of nested clients, and the check of what nested clients submit."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.waiting: dict[bytes, tuple[Hello, float]] = {}
        """Hellos by connection, with the time of the first."""
        self._next_check = 0.0

    def defer(self, event: Hello, now: float) -> bool:
        """Whether the hello must wait for its worker. Beyond a limit it is dropped: its client sends another one at its
        next heartbeat."""
        if not event.user or not event.worker or event.role != CLIENT or self._has_parent(event.worker):
            self.waiting.pop(event.route, None)
            return False
        if len(self.waiting) < WAITING_LIMIT or event.route in self.waiting:
            _, since = self.waiting.get(event.route, (event, now))
            self.waiting[event.route] = event, since
        return True

    def pop_decided(self, now: float) -> list[tuple[Hello, bool]]:
        """Remove and return the hellos that are decided, each with whether its worker is there."""
        if now < self._next_check or not self.waiting:
            return []
        self._next_check = now + _CHECK_SECONDS
        decided = []
        for route, (event, since) in list(self.waiting.items()):
            worker = self._tables.workers.find(event.worker)
            is_own = worker is not None and worker.user == event.user
            if is_own and self._has_parent(event.worker):
                decided.append((event, True))
            elif worker is None and now >= since + WAIT_SECONDS or worker is not None and not is_own:
                decided.append((event, False))
            else:
                continue  # a worker without tasks keeps the connection of its nested client
            del self.waiting[route]
        return decided

    def drop(self, users: Container[str]) -> None:
        """Forget the hellos of these users."""
        for route in [route for route, (event, _) in self.waiting.items() if event.user in users]:
            del self.waiting[route]

    def note_parent(self, client: Client, now: float) -> None:
        """Note whether the worker of a nested client holds a task now."""
        if self._has_parent(client.worker):
            client.parent_until = now + PARENT_SECONDS

    def check_submit(self, client: Client, event: Submit, now: float) -> None:
        """Check that a nested client submits for a task of its worker.

        Raises:
            ProtocolError: the worker has held no task for a while.
        """
        if not client.user:
            return
        self.note_parent(client, now)
        if now >= client.parent_until:
            text = f"tasks {event.ids[0]} to {event.ids[-1]} are rejected" if event.ids else "a submit is rejected"
            raise ProtocolError(
                f"{text}: a client with a worker's key can submit only while its worker holds a task; this worker "
                f"has held none for {PARENT_SECONDS:g} s",
                event.ids,
            )

    def _has_parent(self, worker: int) -> bool:
        found = self._tables.workers.find(worker)
        return found is not None and found.parent_client is not None


def missing_worker_text(event: Hello) -> str:
    """Return the error text for a nested client whose worker is not there."""
    return (
        f"no worker {event.worker} of this key has joined: a client with a worker's key works only inside a task "
        "(clients outside of tasks need a client's key: authorize --as client)"
    )
