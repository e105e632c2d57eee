"""Credit-based flow control: how much memory of the scheduler a client may fill with waiting tasks and unread results.

Both are windows in bytes. Each client has an equal share of the memory limit. A client's objects count like its tasks,
so a client that sends an object with each task has the same limit as other clients. Objects that it holds for longer do
not delay its tasks, until objects fill the memory limit itself.

A client counts what it submits. The scheduler counts what has ended, and sends new credit from time to time; no message
is sent for each task. The counts are cumulative, so that a lost or repeated message does no harm.
"""

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.state.records import PAUSE_SLOW_CONSUMER, Client
from scaler_scheduler.core.state.shares import NO_LIMIT, Share

TASK_OVERHEAD = 128
"""Bytes that a task counts beside its payload. PROTOCOL.md states it, because clients count too."""

_WINDOWS_DIVISOR = 8
"""All windows together have the memory limit divided by this number.

A byte of a window may exist four times: as a task and as a result, each with a copy in a socket's queue. PyPy's heap
grows to nearly twice the live bytes before a collection. With a limit of 500 MB, six clients that push tasks of 1 MB
use at most 570 MB; with windows of twice the size they use 780 MB.
"""

_MIN_WINDOW_BYTES = 64 * 1024

_STEPS_PER_WINDOW = 4
_MAX_STEP_BYTES = 128 * 1024
"""New credit is sent when it has grown by a window divided by this number, or by so many bytes. So an urgent task of a
client that waits for credit is sent when some hundred small tasks have ended.
"""

UNLIMITED = 1 << 62
"""The credit of nested clients: unlimited, because only the end of a waiting child may free memory."""


def _unreturnable_bytes(client: Client, window: int) -> int:
    """Return the bytes of objects in the client's count that the client may hold for any time.

    The client's tasks must not wait for these bytes. With open tasks this is at most a window. Without open tasks it is
    all objects, because no task can end and free an object.
    """
    return client.object_bytes if not client.tasks and not client.waiting else min(client.object_bytes, window)


class Credits:
    """Grants credit to clients, and pauses clients that do not acknowledge their results."""

    def __init__(self, core: CoreState) -> None:
        self._tables = core.tables
        self._queues = core.queues
        self._outbox = core.outbox
        self._memory_limit_bytes = core.limits.memory_limit_bytes
        self._task_limit = core.limits.client_tasks
        """The most open tasks of a client. Above this, no more credit is granted."""

    def window(self) -> int:
        """The window of each client in bytes, for tasks and for results."""
        return max(_MIN_WINDOW_BYTES, self._memory_limit_bytes // _WINDOWS_DIVISOR // max(1, len(self._tables.clients)))

    def reset(self, client: Client) -> tuple[int, int]:
        """Start the count of a client that was just welcomed. Returns its credit and its result window."""
        client.submitted_bytes = client.returned_bytes = client.sent_bytes = client.received_bytes = 0
        client.highest_counted_id = -1
        client.result_window = self.window()
        client.granted_bytes = UNLIMITED if client.worker else self._first_grant(client, client.result_window)
        self._queues.resume(client, PAUSE_SLOW_CONSUMER)
        return client.granted_bytes, client.result_window

    def update_answered(self) -> None:
        """Update the clients that are about to get answers: pause slow clients, and grant credit."""
        for client in self._outbox.clients:
            self.pause_slow(client)
        self._grant(self._outbox.clients)

    def pause_slow(self, client: Client) -> None:
        """Pause a client if more results are on their way to it than fit its window."""
        if client.sent_bytes - client.received_bytes > client.result_window and not client.is_gone:
            if not client.pause_reasons & PAUSE_SLOW_CONSUMER:
                self._queues.pause(client, PAUSE_SLOW_CONSUMER)

    def update_all(self) -> None:
        """Grant credit to all clients, because other clients may have left or freed memory."""
        self._grant(list(self._tables.clients))

    def update(self, client: Client) -> None:
        """Grant credit to a client whose objects have changed."""
        self._grant([client])

    def has_room(self, client: Client, event: events.Object) -> bool:
        """Whether the object may be kept. If not, its bytes are returned to the client's credit."""
        weight = event.size + TASK_OVERHEAD
        if sum(each.object_bytes for each in self._tables.clients) + weight <= max(
            _MIN_WINDOW_BYTES, self._memory_limit_bytes
        ):
            return True
        client.returned_bytes += weight
        return False

    def _first_grant(self, client: Client, window: int) -> int:
        """The credit of a client that was just welcomed, in bytes: for one task at least, so that it can begin."""
        tasks = min(self._part_of_share(client), max(1, self._more_of_share(client.share)))
        return min(window, tasks * TASK_OVERHEAD)

    def _part_of_share(self, client: Client) -> int:
        """How many open tasks the client may have if all clients of its share have equally many."""
        share = client.share
        return min(self._task_limit, max(1, share.limits.max_waiting // share.client_count))

    def _more_of_share(self, share: Share) -> int:
        """How many more open tasks each client of a share may have. Each call of a row counts as a task."""
        if share.limits.max_waiting == NO_LIMIT:
            return NO_LIMIT
        open_tasks = 0
        for client in self._tables.clients:
            if client.share is share:
                open_tasks += client.waiting + len(client.tasks) + client.further_calls
        return (share.limits.max_waiting - open_tasks) // share.client_count

    def _grant(self, clients: list[Client]) -> None:
        window = self.window() if clients else 0
        for client in clients:
            if client.is_gone:
                continue
            step = min(window, self._part_of_share(client) * TASK_OVERHEAD) // _STEPS_PER_WINDOW
            step = min(step, _MAX_STEP_BYTES)
            more_tasks = self._task_limit - client.waiting - len(client.tasks)
            more_tasks = min(more_tasks, self._more_of_share(client.share))
            reach = client.returned_bytes + window + _unreturnable_bytes(client, window)
            reach = min(reach, client.submitted_bytes + more_tasks * TASK_OVERHEAD)
            # Grant in few steps, and never withdraw: tasks within the granted credit may be on their way.
            if reach - client.granted_bytes >= step:
                client.granted_bytes = reach
                self._outbox.add(effects.Credit(client.route, reach))

    def acknowledge(self, client: Client, received: int) -> None:
        """Note how many bytes of results the client has acknowledged since its welcome."""
        client.received_bytes = max(client.received_bytes, min(received, client.sent_bytes))
        client.unread.acknowledge(client.received_bytes)
        if client.sent_bytes - client.received_bytes <= client.result_window // 2:
            self._queues.resume(client, PAUSE_SLOW_CONSUMER)
