"""Objects, graphs and shutting down for `AsyncClient`: what is long to compute is computed in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..io import objects
from ..pickling.references import ObjectRef
from .async_future import LoopEvent
from .blocking_call import in_thread
from .data_api import begin_shut_down, name_and_value, raise_refusal
from .graph import Plan

if TYPE_CHECKING:
    from .client import Client


async def send_object(client: Client, first: Any, second: Any, name: str) -> ObjectRef:
    """What `Client.send_object` does."""
    name, value = name_and_value(first, second, name)
    task = client._current_task()
    parent = None if task is None else task.name
    send = in_thread(lambda: objects.send_object(client._io_thread, value, name, client._serializer, parent))
    return await asyncio.wrap_future(send)


async def get(client: Client, graph: Mapping[Any, Any], keys: Iterable[Any]) -> dict[Any, Any]:
    """What `Client.get` does. Cancelled, it cancels what has not begun."""
    task = client._current_task()  # which the thread below is not
    plan = await asyncio.wrap_future(in_thread(lambda: Plan(client, graph, keys, task)))
    news = LoopEvent(client._io_thread)
    plan.submit(news.set)
    try:
        while plan.is_open:
            await news.wait()
            news.clear()
        plan.raise_failure()
    except BaseException:
        plan.cancel_rest()
        raise
    return await asyncio.wrap_future(in_thread(plan.values))


async def shut_down(client: Client) -> None:
    """What `Client.shutdown` does, but for leaving."""
    over = LoopEvent(client._io_thread)
    refusals = begin_shut_down(client._io_thread, over.set)
    await over.wait()
    raise_refusal(refusals)
