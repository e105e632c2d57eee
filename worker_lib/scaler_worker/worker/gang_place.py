"""A task's place in its gang: the exchange of values with the other members, and the variables of torch.distributed."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from scaler_client.errors import GangError
from scaler_client.pickling import serializer
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Payload
from scaler_worker.worker.connection import Connection
from scaler_worker.worker.interruption import Interruption
from scaler_worker.worker.session import WorkerSession

START_SECONDS = 60.0
"""How long a member waits for the others to begin. The scheduler sends all of them in one step."""

VALUE_BYTES = 64 << 10
"""The largest value of a member. The scheduler refuses larger ones."""

ROUND_BYTES = 1 << 20
"""The most bytes of the values of all members."""

EAGER_SECONDS = 0.05
"""For so long a member looks for the answer itself. Later the long-task watcher serves the connection."""

LOOK_SECONDS = 0.001
"""Between two such looks."""

CHECK_SECONDS = 0.1
"""How often a waiting member looks whether it is stopped, or its time is over."""

Load = Callable[[Payload], Any]


class GangPlace:
    """One member of a gang, while this worker runs it."""

    def __init__(
        self,
        place: messages.GangMember,
        session: WorkerSession,
        connection: Connection,
        interruption: Interruption,
        find_address: Callable[[], str],
    ) -> None:
        """
        Args:
            place: the scheduler's message about the member.
            session: the session of the worker.
            connection: its connection.
            interruption: raises the error in stopped tasks.
            find_address: returns the address by which other hosts reach this one; empty: unknown.
        """
        self.name = place.client, place.id, place.attempt
        self.rank = place.rank
        self.hosts: Sequence[str] = tuple(place.hosts)
        self._session = session
        self._connection = connection
        self._interruption = interruption
        self._find_address = find_address
        self._round = 0
        self._failure = ""
        """Why no further exchange is possible; empty: it is possible."""
        self._variables: dict[str, str] = {}
        self._before: dict[str, str | None] = {}

    def loader(self, load: Load | None) -> Load:
        """Return a function that waits until all members have begun, and then loads the arguments of the task."""

        def begin_and_load(payload: Payload) -> Any:
            self._begin()
            return (load or serializer.loads)(payload)

        return begin_and_load

    def _begin(self) -> None:
        """Wait until all members have begun, and set the variables of torch.distributed.

        Raises:
            GangError: they have not begun in time.
        """
        own = f"{self._own_address()} {_free_port()}" if self.rank == 0 else ""
        try:
            values = self.exchange(own.encode(), START_SECONDS)
        except TimeoutError as error:
            raise GangError(f"not all members of the gang have begun within {START_SECONDS:g} s") from error
        address, _, port = values[0].decode().partition(" ")
        host = self.hosts[self.rank]
        self._variables = {
            "MASTER_ADDR": address,
            "MASTER_PORT": port,
            "RANK": str(self.rank),
            "WORLD_SIZE": str(len(self.hosts)),
            "LOCAL_RANK": str(self.hosts[: self.rank].count(host)),
            "LOCAL_WORLD_SIZE": str(self.hosts.count(host)),
        }
        self.set_variables()

    def set_variables(self) -> None:
        """Set the variables of torch.distributed: the task begins, or runs again after its wait for other tasks."""
        for name, value in self._variables.items():
            self._before[name] = os.environ.get(name)
            os.environ[name] = value

    def restore_variables(self) -> None:
        """Set the variables as they were before."""
        before, self._before = self._before, {}
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def end(self) -> None:
        """Note that the task is over."""
        self.restore_variables()
        with self._connection.lock:
            self._session.end_member(self.name)

    def exchange(self, value: bytes, timeout: float | None) -> Sequence[bytes]:
        """Give a value to all members, and wait for theirs (`nested.gang.GangMember`)."""
        most = min(VALUE_BYTES, ROUND_BYTES // len(self.hosts))
        if len(value) > most:
            raise ValueError(f"a value of {len(value)} bytes: a member of this gang may give {most}")
        if self._failure:
            raise RuntimeError(self._failure)
        number = self._round
        self._round += 1
        begun = time.monotonic()
        latch = threading.Lock()
        latch.acquire()
        with self._connection.lock:
            self._session.latches[self.name] = latch
            self._session.give(self.name, number, value)
            self._connection.exchange()
        while True:
            waited = time.monotonic() - begun
            seconds = LOOK_SECONDS if waited < EAGER_SECONDS else CHECK_SECONDS
            if timeout is not None:
                seconds = min(seconds, max(0.0, timeout - waited))
            latch.acquire(timeout=seconds)
            with self._connection.lock:
                self._interruption.raise_if_due(self.name)
                if waited < EAGER_SECONDS:
                    self._connection.exchange()
                answer = self._session.exchanged.get(self.name)
                if answer is not None and answer.round == number:
                    if answer.ended:
                        self._failure = (
                            f"member {answer.ended - 1} of the gang has ended without this call of member {self.rank}: "
                            f"all members must make the same calls in the same order"
                        )
                        raise RuntimeError(self._failure)
                    return [bytes(each) for each in answer.values]
                if timeout is not None and waited >= timeout:
                    # The members no longer agree on the number of the next exchange.
                    self._failure = "an exchange of this gang has timed out before: its members are out of step"
                    raise TimeoutError(f"not all members of the gang have come within {timeout:g} s")

    def _own_address(self) -> str:
        """The address by which the other members reach this host."""
        is_alone = len(set(self.hosts)) == 1
        address = self._find_address()
        if address and (is_alone or not address.startswith("127.")):
            return address
        return "127.0.0.1" if is_alone else socket.gethostname()


def _free_port() -> int:
    """Return a TCP port of this host that is free now."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
