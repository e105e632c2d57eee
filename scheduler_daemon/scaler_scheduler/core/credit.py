"""How much of the scheduler's memory a client may fill: with tasks that wait, and with results that it does not take.

Both are windows in bytes, an equal share of the limit for each client. A client counts what it submits, the scheduler
what is over, and says from time to time how far it may go; nothing is said per task. (Credit-based flow control; the
cumulative form makes a lost or repeated message harmless.)
"""

from typing import List, Tuple

from scaler_scheduler.core import effects
from scaler_scheduler.core.dispatcher import Dispatcher
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.records import Client
from scaler_scheduler.core.tables import Tables

TASK_OVERHEAD = 128
"""Bytes that a task counts beside its payload; PROTOCOL.md names it, as clients count too."""

_WINDOWS_PART = 4
"""All windows together are this part of the memory limit: of tasks and results a copy is in a socket's queue, and
PyPy's heap grows to nearly twice of what lives before it is collected."""

_SMALLEST_WINDOW = 64 * 1024

_STEPS = 4
"""A client is told of its credit in steps of this part of its window, and has at least one beside its objects."""

UNLIMITED = 1 << 62
"""For nested clients: a child that had to wait for room might be what makes room."""


class Credits:
    def __init__(self, tables: Tables, dispatcher: Dispatcher, outbox: Outbox, memory_limit_bytes: int) -> None:
        self._tables = tables
        self._dispatcher = dispatcher
        self._outbox = outbox
        self._limit = memory_limit_bytes

    def window(self) -> int:
        """Bytes for each client, of tasks and of results."""
        return max(_SMALLEST_WINDOW, self._limit // _WINDOWS_PART // max(1, len(self._tables.clients)))

    def start(self, client: Client) -> Tuple[int, int]:
        """The count of a client that was just welcomed begins anew: its credit and its result window."""
        client.returned = client.sent = client.received = 0
        client.result_window = self.window()
        client.granted = UNLIMITED if client.worker else client.result_window
        self._go_on(client)
        return client.granted, client.result_window

    def settle(self) -> None:
        """Look at the clients that are about to be sent answers."""
        for client in self._outbox.clients:
            if client.sent - client.received > client.result_window and not client.is_stalled and not client.is_gone:
                client.is_stalled = True
                for lane in client.lanes.values():
                    self._dispatcher.dequeue(lane)
        self._top_up(self._outbox.clients)

    def object_came(self, client: Client) -> None:
        """The client has sent one, which may hold all of its window."""
        self._top_up([client])

    def look_at_all(self) -> None:
        """Others may have left room."""
        self._top_up(list(self._tables.clients))

    def _top_up(self, clients: List[Client]) -> None:
        window = self.window() if clients else 0
        for client in clients:
            # What its objects hold comes back when its user says so, perhaps after these very tasks: there is always
            # room for some beside them.
            reach = client.returned + max(window, client.object_bytes + window // _STEPS)
            # Told in few steps, and never withdrawn: what was granted may be on its way already.
            if reach - client.granted >= window // _STEPS and not client.is_gone:
                client.granted = reach
                self._outbox.add(effects.Credit(client.route, reach))

    def take_received(self, client: Client, received: int) -> None:
        """The client has taken so many bytes of results since its welcome."""
        client.received = max(client.received, min(received, client.sent))
        if client.sent - client.received <= client.result_window // 2:
            self._go_on(client)

    def _go_on(self, client: Client) -> None:
        if client.is_stalled:
            client.is_stalled = False
            for lane in client.lanes.values():
                if lane.waiting:
                    self._dispatcher.enqueue(lane, 0)
