"""The workers that have room for tasks."""

from __future__ import annotations

from scaler_scheduler.core.placement.bookings import Bookings, is_useful
from scaler_scheduler.core.placement.free_workers import FreeWorkers, Need
from scaler_scheduler.core.placement.share_queue import ShareQueues
from scaler_scheduler.core.state.records import Worker, WorkerProfile


class WorkerPool:
    """The lists of workers that have room for tasks."""

    def __init__(self, bookings: Bookings, queues: ShareQueues) -> None:
        self.idle = FreeWorkers()
        """Workers that hold no task."""
        self.partial = FreeWorkers()
        """Workers that hold a task and had room for more when they were listed."""
        self.filling: dict[WorkerProfile, Worker] = {}
        """Of each profile the worker that got tasks last. It gets more until its portion is full: a message to an idle
        worker costs more than little work."""
        self.long_running: dict[Worker, None] = {}
        """Workers that are known to run a long task, and may have other tasks queued behind it."""
        self.reserved: set[Need] = set()
        """The needs of lanes that have found no idle worker in this run. Workers that can serve them get no other tasks
        in this run, so that they become idle."""
        self._bookings = bookings
        self._queues = queues

    def __bool__(self) -> bool:
        return bool(self.idle or self.partial)

    def add(self, worker: Worker) -> None:
        """List a worker that can take more tasks, unless it retires, is unreachable or gives way to another one."""
        if worker.is_retiring or worker.is_unreachable or worker.is_changing or worker.is_holder:
            return
        held = worker.task_count
        if self._bookings.hosts and self._is_kept(worker, held):
            return
        if worker.is_ready:
            if held or worker not in self.partial:
                return
            self.partial.remove(worker)  # it has no task left
        worker.is_ready = True
        (self.partial if held else self.idle).add(worker)
        if worker.has_parents and not held:  # a suspended task goes on later if its process runs another task
            self.idle.make_oldest(worker)

    def _is_kept(self, worker: Worker, held: int) -> bool:
        """Whether a worker gets no tasks: it is set aside, or its host lacks workers to set aside."""
        bookings = self._bookings
        if worker in bookings.aside_of:
            return True
        host = bookings.short.get(worker.agent)
        if host is None:
            return False
        if worker.is_ready:
            self.take(worker)
        if not held:
            kept = host.reservation
            if kept is not None and not is_useful(kept, worker):
                return False
            bookings.set_aside(worker, host)
        return True

    def take(self, worker: Worker) -> Worker:
        """Remove a free worker from its list, and return it."""
        if not worker.is_ready:
            self._bookings.take_aside(worker)
            return worker
        worker.is_ready = False
        (self.partial if worker in self.partial else self.idle).remove(worker)
        return worker

    def replace(self, worker: Worker, other: Worker) -> Worker:
        """Take another worker in the place of one that was taken, and return it."""
        if other is not worker:
            self.add(worker)
            self.take(other)
        return other

    def pass_over(self, worker: Worker) -> None:
        """List a worker that was taken, so that the next task goes to another host."""
        self.add(worker)
        self.idle.make_oldest(worker)
        self._forget_filling(worker)

    def note_long(self, worker: Worker) -> None:
        """Note that the worker is known to run a long task."""
        self.long_running[worker] = None
        self._queues.has_news = True

    def mark_busy(self, worker: Worker) -> None:
        """Note that the worker resumes a suspended task, so it may be busy for long."""
        self.note_long(worker)
        if worker.task_count:
            self._bookings.take_aside(worker)
        if worker.is_ready and worker.task_count and worker not in self.partial:
            self.idle.remove(worker)
            self.partial.add(worker)

    def remove(self, worker: Worker) -> None:
        """Remove the worker from all lists. The listed workers share the waiting tasks."""
        self.long_running.pop(worker, None)
        self._forget_filling(worker)
        if worker.is_ready:
            self.take(worker)
        self._bookings.take_aside(worker)

    def _forget_filling(self, worker: Worker) -> None:
        if self.filling.get(worker.profile) is worker:
            del self.filling[worker.profile]
