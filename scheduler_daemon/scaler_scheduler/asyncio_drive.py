"""asyncio's loops, and uvloop, as what drives the daemon's step."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .event_loops import Stepper


def run_asyncio(daemon: Stepper, wake_receiver: int) -> None:
    asyncio.run(_drive(daemon, wake_receiver))


def run_uvloop(daemon: Stepper, wake_receiver: int) -> None:
    import uvloop

    loop = uvloop.new_event_loop()
    try:
        loop.run_until_complete(_drive(daemon, wake_receiver))
    finally:
        loop.close()


async def _drive(daemon: Stepper, wake_receiver: int) -> None:
    loop = asyncio.get_running_loop()
    wake = asyncio.Event()
    loop.add_reader(daemon.router.fileno, wake.set)
    loop.add_reader(wake_receiver, wake.set)
    try:
        while not daemon.is_stopping:
            # ZeroMQ's descriptor tells of changes only, and sending may swallow one: before the next wait there must
            # be a step that found nothing to receive and nothing to send.
            wake.clear()
            while daemon.step() and not daemon.is_stopping:
                await asyncio.sleep(0)
            try:
                await asyncio.wait_for(wake.wait(), daemon.seconds_to_wait())
            except asyncio.TimeoutError:
                pass
    finally:
        loop.remove_reader(daemon.router.fileno)
        loop.remove_reader(wake_receiver)
