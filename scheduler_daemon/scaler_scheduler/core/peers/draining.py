"""Host agents that are about to end: their workers end what they have begun, what they have queued goes to others, and
the scheduler fetches the kept results that only they have."""

from typing import Iterator

from scaler_scheduler.core.completion.cancellation import Withdrawals
from scaler_scheduler.core.completion.evacuation import HandingOver
from scaler_scheduler.core.dispatch.dispatcher import Dispatcher
from scaler_scheduler.core.state.records import Agent, Worker
from scaler_scheduler.core.state.tables import Tables


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
