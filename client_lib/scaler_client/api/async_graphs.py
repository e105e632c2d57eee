"""Objects, graphs and shutdown for `AsyncClient`. Pickling and analysing graphs happen in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..io import objects
from ..pickling.references import ObjectRef
from .data_api import parse_send_object, raise_if_refused, request_shutdown
from .event_loop import LoopEvent, run_in_thread
from .graph import GraphPlan
from .task_options import checked_bool

if TYPE_CHECKING:
    from .client import Client


async def send_object(client: Client, first: Any, second: Any, name: str, shared: bool) -> ObjectRef:
    """Do what `Client.send_object` does; pickle in a thread."""
    name, value = parse_send_object(first, second, name)
    is_shared = checked_bool("shared", shared)
    task = client._current_task()
    parent = None if task is None else task.name
    io_thread, serializer = client._io_thread, client._serializer
    send = run_in_thread(lambda: objects.send_object(io_thread, value, name, serializer, parent, is_shared=is_shared))
    return await asyncio.wrap_future(send)


async def get(client: Client, graph: Mapping[Any, Any], keys: Iterable[Any]) -> dict[Any, Any]:
    """Do what `Client.get` does; if cancelled, cancel or stop the nodes."""
    task = client._current_task()  # read in this thread, because the thread below runs no task
    plan = await asyncio.wrap_future(run_in_thread(lambda: GraphPlan(client, graph, keys, task)))
    changed = LoopEvent(client._io_thread)
    plan.submit(changed.set)
    if client._keeps_results:
        return dict(zip(plan.keys, plan.futures))
    try:
        while plan.is_open:
            await changed.wait()
            changed.clear()
        plan.raise_failure()
        return await asyncio.wrap_future(run_in_thread(plan.values))
    except BaseException as error:
        plan.cancel_rest(force=isinstance(error, asyncio.CancelledError))
        raise
    finally:
        del plan  # breaks the reference cycle of exception, traceback, frame and future


async def shutdown_scheduler(client: Client) -> None:
    """Do what `Client.shutdown` does, except disconnecting."""
    answered = LoopEvent(client._io_thread)
    refusals = request_shutdown(client._io_thread, answered.set)
    await answered.wait()
    raise_if_refused(refusals)
