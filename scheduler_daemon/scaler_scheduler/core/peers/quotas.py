"""Quotas of one peer. A message that exceeds a quota is rejected with an error that names the limit."""

from scaler_scheduler.core import events
from scaler_scheduler.core.dispatch.credit import TASK_OVERHEAD
from scaler_scheduler.core.errors import ProtocolError
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.state.records import Client
from scaler_scheduler.core.tables import Tables

SUBMIT_EXCESS_BYTES = 64 << 20
"""Bytes that a client may submit in excess of its credit. A client that counts stays below this, except after lost
results."""

NESTED_FACTOR = 4
"""A nested client may have open tasks of this many times the memory limit, because its credit is unlimited."""

REMEMBERED_FUNCTIONS = 64
"""The number of rejected functions whose names are kept for a client, for the errors of their tasks."""


class Quotas:
    """Checks messages against the limits of one peer."""

    def __init__(self, limits: Limits, tables: Tables) -> None:
        self._limits = limits
        self._tables = tables
        self._second = 0
        self._hellos = 0
        """The number of hellos in this second."""

    def check_hello(self, event: events.Hello, now: float) -> None:
        """Check the rate of hellos and the number of peers. Raises ProtocolError."""
        if int(now) != self._second:
            self._second, self._hellos = int(now), 0
        self._hellos += 1
        if self._hellos > self._limits.hellos_a_second:
            most = _plural(self._limits.hellos_a_second, "hello")
            raise ProtocolError(f"more than {most} in a second (--hello-rate-limit): send the hello again")
        tables = self._tables
        if len(tables.clients) + len(tables.workers) + len(tables.agents) < self._limits.peers:
            return
        known = tables.clients.find(event.incarnation) or tables.workers.find(event.incarnation)
        if known is None and tables.agents.find(event.incarnation) is None:
            there = f"there {'is' if self._limits.peers == 1 else 'are'} {_plural(self._limits.peers, 'peer')} already"
            raise ProtocolError(f"{there}, the most that this scheduler serves (--peer-limit)")

    def check_rows(self, count: int) -> None:
        """Check the number of rows of one message. Raises ProtocolError."""
        if count > self._limits.batch_rows:
            raise ProtocolError(
                f"a batch of {count} rows exceeds the limit of {self._limits.batch_rows} (--batch-limit)"
            )

    def count_submit(self, client: Client, event: events.Submit) -> None:
        """Count a submit.

        Raises:
            ProtocolError: the submit exceeds the client's credit by far, or the client has too many open tasks.
        """
        rows = len(event.ids)
        weight = len(event.payload) + TASK_OVERHEAD * rows
        for payload in event.large.values():
            weight += len(payload)
        which = f"tasks {event.ids[0]} to {event.ids[-1]} are rejected"
        # At the limit itself one more batch is accepted, because the client's last credit may have allowed it.
        if client.waiting + len(client.tasks) >= self._limits.client_tasks + self._limits.batch_rows:
            most_tasks = f"{_plural(self._limits.client_tasks, 'open task')} (--client-task-limit)"
            raise ProtocolError(f"{which}: a client may have {most_tasks}", event.ids)
        if client.worker:
            most = NESTED_FACTOR * max(SUBMIT_EXCESS_BYTES, self._limits.memory_limit_bytes) + client.returned_bytes
        else:
            most = client.granted_bytes + max(SUBMIT_EXCESS_BYTES, client.result_window)
        if client.submitted_bytes > most and event.ids[0] > client.highest_id:
            text = f"{which}: they are beyond the client's credit of {client.granted_bytes} bytes"
            raise ProtocolError(text, event.ids)
        client.submitted_bytes += weight

    def check_object(self, client: Client, event: events.Object) -> None:
        """Check the number and the bytes of the client's objects. Raises ProtocolError."""
        limits = self._limits
        if len(client.objects) >= limits.client_objects and event.id not in client.objects:
            most = f"{_plural(limits.client_objects, 'object')} (--client-object-limit)"
            raise ProtocolError(f"{_object(event)} is rejected: a client may have {most}")
        if client.object_bytes + event.size > limits.client_object_bytes:
            raise ProtocolError(
                f"{_object(event)} is rejected: its {event.size} bytes would take the client's objects over "
                f"{limits.client_object_bytes} bytes (--client-object-size-limit)"
            )

    def object_refusal(self, event: events.Object) -> ProtocolError:
        """Return the error for an object that does not fit into the memory limit."""
        return ProtocolError(
            f"{_object(event)} is rejected: its {event.size} bytes would take all objects over the "
            f"scheduler's memory limit of {self._limits.memory_limit_bytes} bytes (--memory-limit)"
        )

    def check_function(self, client: Client, event: events.Function) -> None:
        """Check the number of the client's functions. Raises ProtocolError."""
        if len(client.functions) < self._limits.client_functions:
            return
        if len(client.rejected_functions) >= REMEMBERED_FUNCTIONS:
            client.rejected_functions.clear()
        client.rejected_functions[event.number] = event.name
        raise ProtocolError(self._function_too_many(client, event.number))

    def unknown_function_text(self, client: Client, number: int) -> str:
        """Return the error text for a function number that is not known."""
        if len(client.functions) >= self._limits.client_functions:
            return self._function_too_many(client, number)
        return f"submit names function {number}, which this client has not sent"

    def _function_too_many(self, client: Client, number: int) -> str:
        which = client.rejected_functions.get(number) or number
        most = f"{_plural(self._limits.client_functions, 'function')} at one time (--client-function-limit)"
        return f"function {which} is rejected: a client may have {most}; a new client begins with none"


def _plural(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _object(event: events.Object) -> str:
    return f"object {event.name} ({event.id})" if event.name else f"object {event.id}"
