"""Host agents that are about to end: their workers end what they have begun, what they have queued goes to others."""

from typing import Iterator

from scaler_scheduler.core.dispatcher import Dispatcher
from scaler_scheduler.core.records import Agent, Worker
from scaler_scheduler.core.tables import Tables
from scaler_scheduler.core.withdrawals import Withdrawals


def retire(agent: Agent, tables: Tables, dispatcher: Dispatcher, withdrawals: Withdrawals) -> None:
    """From now on give its workers nothing, and ask for what they have not begun."""
    agent.is_retiring = True
    for worker in _workers_of(agent, tables):
        dispatcher.withdraw(worker)
        worker.is_retiring = True
        withdrawals.take_back(worker.tasks.values())


def is_drained(agent: Agent, tables: Tables) -> bool:
    """Whether none of its workers holds a task."""
    return not any(worker.tasks or worker.unclaimed for worker in _workers_of(agent, tables))


def _workers_of(agent: Agent, tables: Tables) -> Iterator[Worker]:
    return (worker for worker in tables.workers if worker.agent == agent.incarnation)
