"""How much of the scheduler's memory a client may fill: with tasks that wait, and with results that it does not take.

Both are windows in bytes, an equal share of the limit for each client. Objects count with the tasks, for a client that
sends one with each task and lets go of it; those that it holds are in nobody's way until they fill the limit itself.
A client counts what it submits, the scheduler what is over, and says from time to time how far it may go; nothing is
said per task. (Credit-based flow control; the cumulative form makes a lost or repeated message harmless.)
"""

from typing import List, Tuple

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.state.records import PAUSE_SLOW_CONSUMER, Client

TASK_OVERHEAD = 128
"""Bytes that a task counts beside its payload; PROTOCOL.md names it, as clients count too."""

_WINDOWS_PART = 8
"""All windows together are this part of the memory limit. A byte of a window may be there four times: as a task and as
a result, each of them with a copy in a socket's queue; and PyPy's heap grows to nearly twice of what lives before it is
collected. Six clients that push tasks of 1 MB through a limit of 500 MB have it at 570 MB at the most; with windows of
twice the size it is 780 MB."""

_SMALLEST_WINDOW = 64 * 1024

_STEPS = 4
"""A client is told of its credit in steps of this part of its window."""

UNLIMITED = 1 << 62
"""For nested clients: a child that had to wait for room might be what makes room."""


def _unreturnable_bytes(client: Client, window: int) -> int:
    """What of the client's count is objects that it may hold for as long as it likes: its tasks must not wait for them.

    As much as a window beside its tasks; all of it where no task of it is left, whose end might free any.
    """
    return client.object_bytes if not client.tasks and not client.waiting else min(client.object_bytes, window)


class Credits:
    def __init__(self, core: CoreState) -> None:
        self._tables = core.tables
        self._dispatcher = core.dispatcher
        self._outbox = core.outbox
        self._memory_limit_bytes = core.limits.memory_limit_bytes
        self._task_limit = core.limits.client_tasks
        """Open ones, past which a client is granted nothing."""

    def window(self) -> int:
        """Bytes for each client, of tasks and of results."""
        return max(_SMALLEST_WINDOW, self._memory_limit_bytes // _WINDOWS_PART // max(1, len(self._tables.clients)))

    def reset(self, client: Client) -> Tuple[int, int]:
        """The count of a client that was just welcomed begins anew: its credit and its result window."""
        client.submitted_bytes = client.returned_bytes = client.sent_bytes = client.received_bytes = 0
        client.highest_counted_id = -1
        client.result_window = self.window()
        client.granted_bytes = (
            UNLIMITED if client.worker else min(client.result_window, self._task_limit * TASK_OVERHEAD)
        )
        self._dispatcher.resume(client, PAUSE_SLOW_CONSUMER)
        return client.granted_bytes, client.result_window

    def update_answered(self) -> None:
        """Look at the clients that are about to be sent answers."""
        for client in self._outbox.clients:
            if client.sent_bytes - client.received_bytes > client.result_window and not client.is_gone:
                if not client.pause_reasons & PAUSE_SLOW_CONSUMER:
                    self._dispatcher.pause(client, PAUSE_SLOW_CONSUMER)
        self._grant(self._outbox.clients)

    def update_all(self) -> None:
        """Others may have left room."""
        self._grant(list(self._tables.clients))

    def update(self, client: Client) -> None:
        """Its objects are more, or less."""
        self._grant([client])

    def has_room(self, client: Client, event: events.Object) -> bool:
        """Whether the object may be kept. Where not, its bytes are given back."""
        weight = event.size + TASK_OVERHEAD
        if sum(each.object_bytes for each in self._tables.clients) + weight <= max(
            _SMALLEST_WINDOW, self._memory_limit_bytes
        ):
            return True
        client.returned_bytes += weight
        return False

    def _grant(self, clients: List[Client]) -> None:
        window = self.window() if clients else 0
        step = min(window, self._task_limit * TASK_OVERHEAD) // _STEPS
        for client in clients:
            more_tasks = self._task_limit - client.waiting - len(client.tasks)
            reach = client.returned_bytes + window + _unreturnable_bytes(client, window)
            reach = min(reach, client.submitted_bytes + more_tasks * TASK_OVERHEAD)
            # Told in few steps, and never withdrawn: what was granted may be on its way already.
            if reach - client.granted_bytes >= step and not client.is_gone:
                client.granted_bytes = reach
                self._outbox.add(effects.Credit(client.route, reach))

    def acknowledge(self, client: Client, received: int) -> None:
        """The client has taken so many bytes of results since its welcome."""
        client.received_bytes = max(client.received_bytes, min(received, client.sent_bytes))
        if client.sent_bytes - client.received_bytes <= client.result_window // 2:
            self._dispatcher.resume(client, PAUSE_SLOW_CONSUMER)
