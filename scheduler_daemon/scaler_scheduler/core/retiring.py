"""Host agents that are about to end: their workers end what they have begun, what they have queued goes to others, and
the scheduler fetches the kept results that only they have."""

from typing import Iterator

from scaler_scheduler.core.dispatcher import Dispatcher
from scaler_scheduler.core.handing_over import HandingOver
from scaler_scheduler.core.records import Agent, Worker
from scaler_scheduler.core.tables import Tables
from scaler_scheduler.core.withdrawals import Withdrawals


def retire(
    agent: Agent, tables: Tables, dispatcher: Dispatcher, withdrawals: Withdrawals, handing_over: HandingOver
) -> None:
    """From now on give its workers nothing, ask for what they have not begun, and for what only their host has."""
    agent.is_retiring = True
    for worker in _workers_of(agent, tables):
        dispatcher.withdraw(worker)
        worker.is_retiring = True
        withdrawals.take_back(worker.tasks.values())
    handing_over.begin(agent)


def is_drained(agent: Agent, tables: Tables) -> bool:
    """Whether none of its workers holds a task."""
    return not any(worker.tasks or worker.unclaimed for worker in _workers_of(agent, tables))


def _workers_of(agent: Agent, tables: Tables) -> Iterator[Worker]:
    return (worker for worker in tables.workers if worker.agent == agent.incarnation)
