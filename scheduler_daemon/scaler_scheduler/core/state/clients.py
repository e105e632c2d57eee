"""The table of clients."""

from __future__ import annotations

from collections.abc import Iterator

from scaler_scheduler.core.state.records import Client
from scaler_scheduler.core.state.shares import ShareTable


class ClientTable:
    """The clients by incarnation, by connection, and by the worker that they live in."""

    def __init__(self) -> None:
        self.by_incarnation: dict[int, Client] = {}
        """All clients, including clients that have left and still have tasks on workers."""
        self.by_route: dict[bytes, Client] = {}
        self._nested: dict[int, dict[int, Client]] = {}
        """Nested clients by the incarnation of their worker, then by their own incarnation."""
        self.shares = ShareTable()

    def __iter__(self) -> Iterator[Client]:
        return iter(list(self.by_route.values()))

    def __len__(self) -> int:
        return len(self.by_route)

    def find(self, incarnation: int) -> Client | None:
        return self.by_incarnation.get(incarnation)

    def nested_in(self, worker: int) -> list[Client]:
        """The nested clients of this worker's tasks."""
        return list(self._nested.get(worker, {}).values())

    def add(self, client: Client) -> None:
        self.by_incarnation[client.incarnation] = client
        client.share.owner_count += not client.worker
        self._connect(client)

    def reconnect(self, client: Client, route: bytes) -> None:
        """Move the client to a new connection. It may have been marked as gone."""
        if client.is_gone:
            client.is_gone = False
            client.share.owner_count += not client.worker
        else:
            del self.by_route[client.route]
        client.route = route
        self._connect(client)

    def _connect(self, client: Client) -> None:
        self.by_route[client.route] = client
        if client.worker:
            self._nested.setdefault(client.worker, {})[client.incarnation] = client

    def mark_gone(self, client: Client) -> None:
        """Mark the client as gone. Its record stays until `remove_if_done`, as workers may still hold its tasks."""
        client.is_gone = True
        client.share.owner_count -= not client.worker
        del self.by_route[client.route]
        if client.worker:
            nested = self._nested[client.worker]
            del nested[client.incarnation]
            if not nested:
                del self._nested[client.worker]

    def remove_if_done(self, client: Client) -> None:
        """Drop the record of a client that has left, once no worker holds a task of it."""
        if client.is_gone and not client.tasks:
            del self.by_incarnation[client.incarnation]
            self.shares.remove_client(client.share)

    def expired(self, now: float) -> list[Client]:
        """Return the clients whose lease has run out."""
        return [client for client in self.by_route.values() if client.deadline <= now]
