"""The event loops that drive the daemon: a plain loop on the socket, or asyncio. The core does not depend on the
choice."""

from __future__ import annotations

from typing import Callable, Protocol

from ..net.router import Router


class SteppedDaemon(Protocol):
    """The parts of the daemon that an event loop needs."""

    router: Router
    is_stopping: bool

    def step(self, first: list[bytes] | None = None) -> bool: ...

    def wait(self) -> list[bytes] | None: ...

    def seconds_to_wait(self) -> float: ...


EventLoop = Callable[[SteppedDaemon, int], None]
"""Runs until `is_stopping` is set. The second argument is a file descriptor that becomes readable then."""


def run_blocking(daemon: SteppedDaemon, wake_receiver: int) -> None:
    """The default, with the fewest layers between socket and step: one blocking receive. A poll takes three calls."""
    while not daemon.is_stopping:
        daemon.step(daemon.wait())


def run_asyncio(daemon: SteppedDaemon, wake_receiver: int) -> None:
    """Drive the daemon by Python's asyncio."""
    import asyncio  # not at the top: the import takes a quarter of the scheduler's start

    asyncio.run(_drive(daemon, wake_receiver))


def run_uvloop(daemon: SteppedDaemon, wake_receiver: int) -> None:
    """Drive the daemon by asyncio on uvloop."""
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
            # ZeroMQ's descriptor is edge-triggered, and a send may consume the edge. So a wait is safe only after a
            # step that received and sent nothing.
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


LOOPS: dict[str, EventLoop] = {"zmq": run_blocking, "builtin": run_asyncio, "uvloop": run_uvloop}
