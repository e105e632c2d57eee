"""What drives the daemon's step: a plain loop on the socket, or asyncio's loops. The core does not know which."""

from __future__ import annotations

from typing import Callable, Dict, List, Optional, Protocol

from ..net.router import Router


class SteppedDaemon(Protocol):
    """What a loop needs of the daemon."""

    router: Router
    is_stopping: bool

    def step(self, first: Optional[List[bytes]] = None) -> bool: ...

    def wait(self) -> Optional[List[bytes]]: ...

    def seconds_to_wait(self) -> float: ...


EventLoop = Callable[[SteppedDaemon, int], None]
"""Runs until `is_stopping`; the second argument is a file descriptor that becomes readable when that changes."""


def run_blocking(daemon: SteppedDaemon, wake_receiver: int) -> None:
    """The default: fewest layers between socket and step. One receive that waits is one call where a poll is three."""
    while not daemon.is_stopping:
        daemon.step(daemon.wait())


def run_asyncio(daemon: SteppedDaemon, wake_receiver: int) -> None:
    import asyncio  # not at the top: it takes a quarter of the scheduler's start

    asyncio.run(_drive(daemon, wake_receiver))


def run_uvloop(daemon: SteppedDaemon, wake_receiver: int) -> None:
    import uvloop

    loop = uvloop.new_event_loop()
    try:
        loop.run_until_complete(_drive(daemon, wake_receiver))
    finally:
        loop.close()


async def _drive(daemon: SteppedDaemon, wake_receiver: int) -> None:
    import asyncio

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


LOOPS: Dict[str, EventLoop] = {"zmq": run_blocking, "builtin": run_asyncio, "uvloop": run_uvloop}
