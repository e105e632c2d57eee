"""Printed output on its way from workers to clients: forwarded at once or dropped, never kept.

Output counts in the client's result window and may fill a part of it. So output does not block results, even if a
client acknowledges nothing. A task that prints without end costs the scheduler at most the memory of this part.
"""

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.state.records import Client
from scaler_scheduler.core.tables import Tables

_WINDOW_DIVISOR = 2
"""Output may fill the window divided by this number. A client acknowledges every quarter, so it can keep up."""


def forward_output(event: events.Output, tables: Tables, outbox: Outbox) -> None:
    """Send each client the output of its tasks, as far as its result window has room."""
    batches: dict[Client, effects.Output] = {}
    position = 0
    for row, size in enumerate(event.sizes):
        begin = position
        position += size
        client = tables.clients.by_incarnation.get(event.clients[row])
        if client is None or client.is_gone:
            tables.counts.dropped_output_rows += 1
            continue
        if not _has_room(client, size):
            tables.counts.dropped_output_rows += 1
            client.dropped_output_bytes += size - event.labels[row]
            continue
        batch = batches.get(client)
        if batch is None:
            batch = batches[client] = _new_batch(client)
        client.sent_bytes += size
        task = client.tasks.get(event.ids[row])
        batch.ids.append(event.ids[row] if task is None or task.gang is None else task.gang.lead.id)
        batch.streams.append(event.streams[row])
        batch.labels.append(event.labels[row])
        batch.sizes.append(size)
        batch.texts.append(event.text[begin:position])
    for batch in batches.values():
        outbox.add(batch)


def report_dropped(client: Client, outbox: Outbox) -> None:
    """Report dropped output to a client when its window has room again."""
    if client.dropped_output_bytes and _has_room(client, 0):
        outbox.add(_new_batch(client))


def _new_batch(client: Client) -> effects.Output:
    batch = effects.Output(client.route, client.dropped_output_bytes)
    client.dropped_output_bytes = 0
    return batch


def _has_room(client: Client, size: int) -> bool:
    return client.sent_bytes + size - client.received_bytes <= client.result_window // _WINDOW_DIVISOR
