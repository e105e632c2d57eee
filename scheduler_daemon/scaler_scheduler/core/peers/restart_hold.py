"""After a restart, resubmitted tasks are held for a moment, so that workers have time to reconnect. Some of these tasks
run on workers, which name them in their hello. Without the hold, an idle worker that reconnects first would get such a
task and run it a second time. Only clients that another scheduler has welcomed can have such tasks; tasks of other
clients are not held.

A worker whose task holds the GIL reconnects late. Its agent names this task meanwhile. As long as an agent names a task
of a worker that has not reconnected, all these clients are held: the worker may have suspended tasks and answers too,
which only the worker itself can name.
"""

from scaler_scheduler.core.placement.share_queue import ShareQueues
from scaler_scheduler.core.state.records import PAUSE_RESTART_HOLD, Client
from scaler_scheduler.core.state.transitions import BLOCKED, WAITING
from scaler_scheduler.core.tables import Tables

HOLD_SECONDS = 1.0
"""Seconds from the first client that reconnects, and from the last moment at which messages had to wait. Workers try to
connect every 250 ms, and check for a connection every 200 ms."""

MOST_HOLD_SECONDS = 30.0
"""The longest hold: for a scheduler that is too slow for the messages of its peers, and for tasks that hold the GIL."""

LOOK_SECONDS = 0.1
"""How often it looks whether the workers of named tasks have joined."""


class RestartHold:
    """Holds the tasks of clients that another scheduler has welcomed before."""

    def __init__(self, queues: ShareQueues, tables: Tables, incarnation: int) -> None:
        """`incarnation` is this scheduler's own."""
        self._queues = queues
        self._tables = tables
        self._incarnation = incarnation
        self._end = float("inf")
        """When the hold ends."""
        self._last_end = float("inf")
        """When it ends at the latest."""
        self._held: list[Client] = []

    @property
    def is_holding(self) -> bool:
        """Whether tasks are held."""
        return bool(self._held)

    @property
    def deadline(self) -> float:
        """When `release` is due."""
        return self._end if self._held else float("inf")

    def hold(self, client: Client, scheduler: int, now: float) -> None:
        """Hold the tasks of a new client if another scheduler welcomed it last. `scheduler` 0: no scheduler did."""
        if scheduler in (0, self._incarnation):
            return
        if not self._held:
            self._end = min(self._end, now + HOLD_SECONDS)
            self._last_end = min(self._last_end, now + MOST_HOLD_SECONDS)
        if now < self._end:
            self._queues.pause(client, PAUSE_RESTART_HOLD)
            self._held.append(client)

    def extend(self, now: float) -> None:
        """Hold them for longer, because messages have to wait: the hellos of workers may be among them."""
        if self._held:
            self._end = min(max(self._end, now + HOLD_SECONDS), self._last_end)

    def _is_awaited(self, name: tuple[int, int]) -> bool:
        """Whether no worker that has joined has named this task, as far as its client is here. Members of gangs begin
        again in any case."""
        if name in self._tables.unclaimed or name in self._tables.early:
            return False
        client = self._tables.clients.find(name[0])
        if client is None:
            return True
        task = client.tasks.get(name[1])
        if task is not None:
            return task.state in (WAITING, BLOCKED) and not task.options.gang_size
        return any(lane.batches.find(name[1]) for lane in client.lanes.values() if not lane.gang_size)

    def release(self, now: float) -> None:
        """Dispatch the held tasks from now on, unless workers are awaited."""
        awaited = (self._is_awaited(name) for agent in self._tables.agents for name in agent.awaited)
        if now < self._last_end and any(awaited):
            self._end = min(now + LOOK_SECONDS, self._last_end)
            return
        held, self._held = self._held, []
        for client in held:
            self._queues.resume(client, PAUSE_RESTART_HOLD)
