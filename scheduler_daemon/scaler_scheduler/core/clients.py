"""The table of clients."""

from typing import Dict, Iterator, List, Optional

from scaler_scheduler.core.records import Client


class ClientTable:
    def __init__(self) -> None:
        self.by_number: Dict[int, Client] = {}
        self.by_route: Dict[bytes, Client] = {}
        self._by_incarnation: Dict[int, Client] = {}

    def __iter__(self) -> Iterator[Client]:
        return iter(list(self.by_route.values()))

    def __len__(self) -> int:
        return len(self.by_route)

    def find(self, incarnation: int) -> Optional[Client]:
        return self._by_incarnation.get(incarnation)

    def add(self, client: Client) -> None:
        self.by_number[client.number] = client
        self.by_route[client.route] = client
        self._by_incarnation[client.incarnation] = client

    def move(self, client: Client, route: bytes) -> None:
        """The client has a new connection."""
        del self.by_route[client.route]
        client.route = route
        self.by_route[route] = client

    def leave(self, client: Client) -> None:
        """The client is gone; it stays under its number, for answers that are still on their way, until `bury`."""
        client.is_gone = True
        del self.by_route[client.route]
        del self._by_incarnation[client.incarnation]

    def bury(self, client: Client) -> None:
        """Drop the record of a client that has left once no worker holds a task of it."""
        if client.is_gone and not client.tasks:
            del self.by_number[client.number]

    def overdue(self, now: float) -> List[Client]:
        return [client for client in self.by_route.values() if client.deadline <= now]
