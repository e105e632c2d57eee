"""What attempts hold: tokens of limits and bookings of resources.

An attempt takes them with its dispatch. They come back when its worker says that this attempt is over, or when the
worker is lost. So an attempt that no longer counts, and may still run, keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from scaler_scheduler.core.events import Claim, Options
from scaler_scheduler.core.placement.bookings import Booking, Bookings
from scaler_scheduler.core.placement.task_limits import TaskLimit, TaskLimits
from scaler_scheduler.core.state.records import Task, Worker
from scaler_scheduler.core.state.timers import Clock

Attempt = tuple[int, int, int]
"""A client's incarnation, a task's id, and the number of the attempt."""


class Holding:
    """What some attempts hold: tasks of one client with the same attempt number, at one worker."""

    __slots__ = ("attempt", "booking", "client", "ids", "limits")

    def __init__(
        self, client: int, attempt: int, ids: Iterable[int], limits: tuple[TaskLimit, ...], booking: Booking | None
    ) -> None:
        self.client = client
        self.attempt = attempt
        self.ids = set(ids)
        """The tasks. Never empty."""
        self.limits = limits
        self.booking = booking


class Holdings:
    """What all attempts of one scheduler hold.

    Rows that were dispatched together share a record, and messages about many rows are compared with it as sets: one
    record an attempt doubled the scheduler's time for tasks with resources (`make bench ONLY=scheduler`).
    """

    def __init__(self, task_limits: TaskLimits, bookings: Bookings, clock: Clock) -> None:
        self._task_limits = task_limits
        self._bookings = bookings
        self._clock = clock
        self.held: dict[int, list[Holding]] = {}
        """By the worker's incarnation. No worker has an empty list."""

    def find(self, worker: int, name: Attempt) -> Holding | None:
        """What this attempt holds at the worker with this incarnation."""
        client, task_id, attempt = name
        for holding in self.held.get(worker, ()):
            if holding.client == client and holding.attempt == attempt and task_id in holding.ids:
                return holding
        return None

    def take(
        self, worker: Worker, client: int, ids: Sequence[int], attempts: Sequence[int], options: Options,
        booking: Booking | None,
    ) -> None:  # fmt: skip
        """Let tasks that were just dispatched hold the booking, and tokens of their limits.

        Args:
            worker: their worker.
            client: the incarnation of their client.
            ids: their ids.
            attempts: the number of the attempt of each.
            options: theirs.
            booking: the resources that they share; None: they have none.
        """
        limits = self._task_limits.named(options.limits)
        for limit in limits:
            for _ in ids:
                limit.take(options.weight, self._clock.now)
        if booking is not None:
            booking.attempts += len(ids)
        holdings = self.held.setdefault(worker.incarnation, [])
        if attempts.count(attempts[0]) == len(attempts):
            last = holdings[-1] if holdings else None
            if last is not None and not limits and last.booking is booking:
                if last.client == client and last.attempt == attempts[0]:
                    last.ids.update(ids)
                    return
            holdings.append(Holding(client, attempts[0], ids, limits, booking))
        else:
            holdings += [
                Holding(client, attempt, (task_id,), limits, booking) for task_id, attempt in zip(ids, attempts)
            ]

    def restore(self, worker: Worker, claims: Mapping[Attempt, Claim]) -> None:
        """Book what a worker names when it joins again."""
        for (client, task_id, attempt), claim in claims.items():
            booking = self._bookings.restore(worker, claim)
            booking.attempts = 1
            holdings = self.held.setdefault(worker.incarnation, [])
            holdings.append(Holding(client, attempt, (task_id,), (), booking))

    def take_running(self, task: Task, worker: Worker) -> None:
        """Give a task that its worker runs already tokens of its limits, and resources if the worker has named none and
        the task cannot have released them."""
        name = task.client.incarnation, task.id, task.attempt
        holding = self.find(worker.incarnation, name)
        if holding is None and not task.options.limits and task.options.release_resources:
            return
        if holding is None:
            holding = Holding(task.client.incarnation, task.attempt, (task.id,), (), None)
            self.held.setdefault(worker.incarnation, []).append(holding)
        if holding.booking is None and task.options.resources and not task.options.release_resources:
            holding.booking = self._bookings.book_unnamed(worker, task.options.resources)
            holding.booking.attempts = 1
        if not holding.limits:
            holding.limits = self._task_limits.named(task.options.limits)
            for limit in holding.limits:
                limit.take(task.options.weight, self._clock.now)

    def give_back(self, worker: Worker, clients: Sequence[int], ids: Sequence[int], attempts: Sequence[int]) -> None:
        """Take back what attempts hold: the worker says that they are over. Unknown ones are ignored.

        Args:
            worker: the worker.
            clients: the incarnation of each one's client, or one element for all.
            ids: the tasks.
            attempts: the number of each attempt, or one element for all.
        """
        holdings = self.held.get(worker.incarnation)
        if holdings is None:
            return
        if len(clients) == len(attempts) == 1:
            self._remove(worker, holdings, clients[0], attempts[0], ids)
        else:
            rows = len(ids)
            all_clients = clients if len(clients) == rows else list(clients) * rows
            all_attempts = attempts if len(attempts) == rows else list(attempts) * rows
            for client, task_id, attempt in zip(all_clients, ids, all_attempts):
                self._remove(worker, holdings, client, attempt, (task_id,))
        if not holdings:
            del self.held[worker.incarnation]

    def _remove(self, worker: Worker, holdings: list[Holding], client: int, attempt: int, ids: Sequence[int]) -> None:
        """Remove attempts with the same client and number."""
        for at in range(len(holdings) - 1, -1, -1):
            holding = holdings[at]
            if holding.client == client and holding.attempt == attempt:
                before = len(holding.ids)
                holding.ids.difference_update(ids)
                count = before - len(holding.ids)
                if count:
                    if not holding.ids:
                        del holdings[at]
                    self._end(holding, worker, count)

    def worker_lost(self, worker: Worker) -> None:
        """Take everything of a worker back that is lost, or joins again and names what it runs."""
        for holding in self.held.pop(worker.incarnation, ()):
            self._end(holding, worker, len(holding.ids))

    def _end(self, holding: Holding, worker: Worker, count: int) -> None:
        for limit in holding.limits:
            self._task_limits.give_back(limit, count)
        booking = holding.booking
        if booking is not None:
            booking.attempts -= count
            if not booking.attempts:
                self._bookings.end(booking, worker)

    def release(self, worker: Worker, name: Attempt) -> None:
        """Take the resources of an attempt back for good, and leave it the tokens of its limits."""
        client, task_id, attempt = name
        holding = self.find(worker.incarnation, name)
        if holding is None or holding.booking is None:
            return
        holdings = self.held[worker.incarnation]
        holding.ids.discard(task_id)
        if not holding.ids:
            holdings.remove(holding)
        self._end(Holding(client, attempt, (), (), holding.booking), worker, 1)
        if holding.limits:
            holdings.append(Holding(client, attempt, (task_id,), holding.limits, None))
        if not holdings:
            del self.held[worker.incarnation]

    def suspend(self, worker: Worker, name: Attempt) -> None:
        """Take the cpus of an attempt back that waits for tasks of its own."""
        holding = self.find(worker.incarnation, name)
        if holding is not None and holding.booking is not None:
            self._bookings.suspend(holding.booking, worker)

    def resume(self, worker: Worker, name: Attempt) -> None:
        """Give such an attempt its cpus again."""
        holding = self.find(worker.incarnation, name)
        if holding is not None and holding.booking is not None:
            self._bookings.resume(holding.booking)
