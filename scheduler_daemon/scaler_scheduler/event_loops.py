"""What drives the daemon's step: a plain loop on the socket, or asyncio's loops. The core does not know which."""

from __future__ import annotations

from typing import Callable, Dict, List, Optional, Protocol

from .sockets import Router


class Stepper(Protocol):
    """What a loop needs of the daemon."""

    router: Router
    is_stopping: bool

    def step(self, first: Optional[List[bytes]] = None) -> bool: ...

    def wait(self) -> Optional[List[bytes]]: ...

    def seconds_to_wait(self) -> float: ...


Loop = Callable[[Stepper, int], None]
"""Runs until `is_stopping`; the second argument is a file descriptor that becomes readable when that changes."""


def run_waiting(daemon: Stepper, wake_receiver: int) -> None:
    """The default: fewest layers between socket and step. One receive that waits is one call where a poll is three."""
    while not daemon.is_stopping:
        daemon.step(daemon.wait())


def run_asyncio(daemon: Stepper, wake_receiver: int) -> None:
    from . import asyncio_drive  # not at the top: asyncio takes a quarter of the scheduler's start

    asyncio_drive.run_asyncio(daemon, wake_receiver)


def run_uvloop(daemon: Stepper, wake_receiver: int) -> None:
    from . import asyncio_drive

    asyncio_drive.run_uvloop(daemon, wake_receiver)


LOOPS: Dict[str, Loop] = {"zmq": run_waiting, "builtin": run_asyncio, "uvloop": run_uvloop}
