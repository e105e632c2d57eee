"""What must hold between the tables after every event. Run by tests and the simulation; too slow for the daemon."""

from typing import Dict

from scaler_scheduler.core.errors import InvariantError
from scaler_scheduler.core.records import Function
from scaler_scheduler.core.scheduler import Scheduler
from scaler_scheduler.core.states import DISPATCHED, RUNNING, STATE_NAMES, WAITING


def check(scheduler: Scheduler) -> None:
    """Recount everything.

    Raises:
        InvariantError: a count or a link between two tables is wrong.
    """
    _check_waiting(scheduler)
    _check_held(scheduler)
    _check_functions(scheduler)


def _expect(name: str, counted: object, kept: object) -> None:
    if counted != kept:
        raise InvariantError(f"{name}: {kept} kept, {counted} counted")


def _check_waiting(scheduler: Scheduler) -> None:
    total = 0
    for client in scheduler.clients.by_number.values():
        waiting = sum(len(batch.waiting_rows()) for batch in client.batches)
        waiting += sum(task.state == WAITING for task in client.requeued)
        _expect(f"waiting tasks of client {client.number}", waiting, client.waiting)
        if waiting and not client.is_queued:
            raise InvariantError(f"client {client.number} has waiting tasks and stands in no queue")
        if client.is_gone and (waiting or not client.tasks):
            raise InvariantError(f"client {client.number} has left and is still kept")
        total += waiting
    _expect("waiting tasks", total, scheduler.counts.waiting)


def _check_held(scheduler: Scheduler) -> None:
    held = 0
    for worker in scheduler.workers:
        load = size = 0
        for serial, task in worker.tasks.items():
            _expect("serial number of a held task", serial, task.serial)
            if task.worker is not worker or task.state not in (DISPATCHED, RUNNING):
                raise InvariantError(f"task {task.client.number}/{task.id} is held while {STATE_NAMES[task.state]}")
            if task.client.tasks.get(task.id) is not task:
                raise InvariantError(f"task {task.client.number}/{task.id} is held and unknown to its client")
            if task.function not in worker.functions:
                raise InvariantError(f"worker {worker.number} holds a task of a function it was not sent")
            load += task.cost
            size += task.size
        _expect(f"load of worker {worker.number}", load, worker.load)
        _expect(f"payload bytes of worker {worker.number}", size, worker.bytes)
        held += len(worker.tasks)
    _expect("dispatched tasks", held, scheduler.counts.dispatched)
    for client in scheduler.clients.by_number.values():
        for task in client.tasks.values():
            holder = task.worker
            if (holder is None) != (task.state == WAITING):
                raise InvariantError(f"task {client.number}/{task.id} is {STATE_NAMES[task.state]} on {holder}")
            if holder is not None and holder.tasks.get(task.serial) is not task:
                raise InvariantError(f"task {client.number}/{task.id} is not among what its worker holds")


def _check_functions(scheduler: Scheduler) -> None:
    tasks: Dict[Function, int] = dict.fromkeys(scheduler.functions, 0)
    for client in scheduler.clients.by_number.values():
        for batch in client.batches:
            for row in batch.waiting_rows():
                tasks[batch.function_at(row)] += 1
        for task in client.tasks.values():
            tasks[task.function] += 1
    for function, count in tasks.items():
        _expect(f"tasks of function {function.number}", count, function.tasks)
