"""Host agents that are about to end.

Their workers finish the running tasks, queued tasks go to other workers, and the scheduler fetches the kept results
that only these hosts have.
"""

from typing import Iterator

from scaler_scheduler.core.completion.cancellation import Cancellation
from scaler_scheduler.core.completion.evacuation import Evacuation
from scaler_scheduler.core.dispatch.dispatcher import Dispatcher
from scaler_scheduler.core.state.records import Agent, Worker
from scaler_scheduler.core.state.tables import Tables


def retire(
    agent: Agent, tables: Tables, dispatcher: Dispatcher, cancellation: Cancellation, evacuation: Evacuation
) -> None:
    """Give its workers no more tasks, retract their queued tasks, and fetch the results that only their host has."""
    agent.is_retiring = True
    for worker in _workers_of(agent, tables):
        dispatcher.remove_worker(worker)
        worker.is_retiring = True
        cancellation.rebalance(worker.tasks.values())
    evacuation.evacuate(agent)


def is_drained(agent: Agent, tables: Tables) -> bool:
    """Whether none of its workers holds a task."""
    return not any(worker.tasks or worker.unclaimed for worker in _workers_of(agent, tables))


def _workers_of(agent: Agent, tables: Tables) -> Iterator[Worker]:
    return (worker for worker in tables.workers if worker.agent == agent.incarnation)
