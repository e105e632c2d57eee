"""One connection to a scheduler, shared by a client and its views, or by all clients in a worker process."""

from __future__ import annotations

import getpass
import itertools
import logging
import os
import platform
import random
import socket
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import __version__
from ..commands.addresses import DATA_ADDRESS_AUTO, DATA_ADDRESS_VARIABLE, Address, parse_data_address
from ..commands.key_files import CLIENT, WORKER
from ..commands.program_name import client_name
from ..environments.environment import Environment
from ..errors import UnauthorizedError
from ..monitor.newest_snapshot import NewestSnapshot
from ..net.curve import load_keys, warn_about_secrets
from ..net.file_limit import file_shortage
from ..net.host_lookup import host_problem, warn_if_unresolved
from ..pickling.custom_serializer import Serializer
from ..pickling.functions import FunctionTable, HasName
from ..protocol import messages
from ..protocol.snapshots import Snapshot
from ..session.session import Session, State, refusal_text, rejection_text
from .io_thread import IoThread

SILENCE_WARNING_SECONDS = 5.0
"""A warning is logged if the scheduler has not answered for this long."""

LOOKUP_DELAY_SECONDS = 0.25
"""The host name is looked up if the scheduler has not answered for this long, to warn of an unknown host."""

_log = logging.getLogger(__name__)


class Connection:
    """Connects to a scheduler, and returns when the scheduler has accepted the client.

    Args:
        address: the scheduler's address.
        timeout_seconds: how long to wait for the scheduler, now and after a loss of the connection.
        heartbeat_interval_seconds: the wanted time between two heartbeats.
        worker: the incarnation of the worker whose tasks this client serves; 0: the client is not nested.
        keys: the folder of keys; None: the folder in SCALER_KEYS; empty: no keys.
        data_address: where agents get large objects; None: as in SCALER_DATA_ADDRESS, or any free port; empty: nowhere.
        environment: the name of the worker's environment, which its children run in; empty: none.
        read_environment: reads the client's own environment while the connection is made; None: it has none.

    Raises:
        ModulesError: the environment's modules cannot be read.
        PackagesError: its packages cannot be used.
        ConnectionError: no scheduler answers in time, or it refuses the client.
        UnauthorizedError: the scheduler does not accept the client's key, or its keys do not match.
        KeyFileError: the folder of keys lacks a file that a client needs.
        OSError: too few file descriptors are left for a client; the text names the limit.
    """

    def __init__(
        self,
        address: Address,
        timeout_seconds: float,
        heartbeat_interval_seconds: float,
        *,
        worker: int = 0,
        keys: str | None = None,
        data_address: str | None = None,
        environment: str = "",
        read_environment: Callable[[], Environment] | None = None,
    ) -> None:
        self.address = str(address)
        self._session = Session(
            _hello(worker), self.address, heartbeat_interval_seconds, timeout_seconds, time.monotonic()
        )
        self.keys = load_keys(keys, WORKER if worker else CLIENT)
        if not worker:  # a nested client needs no warning: its host agent has logged one
            warn_about_secrets(self.keys, address)
        self.io_thread = IoThread(
            address, self._session, self.keys, is_nested=worker != 0, data_address=_data_address(data_address)
        )
        self._watch = NewestSnapshot(address)
        self._numbers = itertools.count(1)
        self._functions: dict[type | None, FunctionTable] = {}
        self._tables: weakref.WeakSet[FunctionTable] = weakref.WeakSet()
        self._environment: HasName | None = _NamedEnvironment(environment) if environment else None
        try:
            if read_environment is not None:
                self.use_environment(read_environment())
            if not self._wait_joined(address, timeout_seconds):
                why = self._session.rejection
                raise ConnectionError(
                    rejection_text(self.address, why) if why else _timeout_text(address, timeout_seconds)
                )
            if self._session.refused is not None:
                is_unauthorized = self._session.refused.reason == messages.NOT_AUTHORIZED
                kind = UnauthorizedError if is_unauthorized else ConnectionError
                raise kind(refusal_text(self.address, self._session.refused))
        except BaseException:
            self.io_thread.close("the client did not join")
            raise

    def _wait_joined(self, address: Address, timeout_seconds: float) -> bool:
        # If the scheduler answers at once, its host was found, and no lookup is needed.
        if timeout_seconds > LOOKUP_DELAY_SECONDS and not self.io_thread.wait_joined(LOOKUP_DELAY_SECONDS):
            warn_if_unresolved(address, _log)
        left = timeout_seconds - SILENCE_WARNING_SECONDS
        if left > 0 and not self.io_thread.wait_joined(SILENCE_WARNING_SECONDS) and not self._session.rejection:
            _log.warning("no scheduler answers at %s yet; giving up in %.0f s", self.address, left)
        return self.io_thread.wait_joined(max(left, 0) or timeout_seconds)

    @property
    def scheduler(self) -> int:
        """The scheduler's incarnation; 0: it has not answered yet."""
        welcome = self._session.scheduler
        return 0 if welcome is None else welcome.incarnation

    @property
    def scheduler_version(self) -> str:
        """The version of the scheduler; empty: it has not answered yet."""
        welcome = self._session.scheduler
        return "" if welcome is None else welcome.version

    @property
    def worker_count(self) -> int:
        """The number of connected workers, as the scheduler has told it last."""
        return self._session.feeds.worker_count

    @property
    def has_joined(self) -> bool:
        """Whether the scheduler has accepted the client and still knows it."""
        return self._session.state is State.JOINED

    @property
    def open_tasks(self) -> int:
        """The number of tasks without an answer."""
        return self._session.tasks.count()

    def latest_snapshot(self) -> Snapshot | None:
        """Return the latest snapshot of a scheduler on this machine; None for other schedulers. See `Watch`."""
        return self._watch.latest(self.scheduler)

    def wait_for_snapshot(self, seconds: float, is_wanted: Callable[[Snapshot], bool]) -> Snapshot | None:
        """Wait for a snapshot that `is_wanted` accepts; None: there was none in time. See `Watch`."""
        return self._watch.wait(self.scheduler, seconds, is_wanted)

    def close(self, reason: str) -> None:
        """Leave the scheduler; unfinished tasks are cancelled. Further calls do nothing."""
        self.io_thread.close(reason)
        self._watch.close()

    def close_when_unused(self, after: Callable[[], None] | None) -> None:
        """Leave the scheduler when the open tasks are done: the client was dropped. The garbage collector calls this.

        Args:
            after: called in the I/O thread when the client has left; None: nothing is.
        """

        def end() -> None:
            self._watch.close()
            if after is not None:
                after()

        self.io_thread.end_when_unused(end)

    def functions(self, serializer: Serializer | type | None) -> FunctionTable:
        """Return the table of functions for clients with this serializer."""
        if serializer is not None and not isinstance(serializer, type):
            # Each unpickled client has a different serializer object, so such a table is dropped with its client.
            return self._made_table(serializer)
        table = self._functions.get(serializer)
        if table is None:
            table = self._functions.setdefault(serializer, self._made_table(serializer))
        return table

    def use_environment(self, environment: Environment) -> None:
        """Let functions that are submitted from now on belong to this environment.

        Raises:
            ClientClosedError: the client is disconnected.
        """
        self.io_thread.call_soon(lambda session: session.use_environment(environment))
        self._environment = environment
        for table in list(self._tables):
            table.set_environment(environment)

    def _made_table(self, serializer: Any) -> FunctionTable:
        io_thread = self.io_thread
        table = FunctionTable(io_thread.forget_function, serializer, self._numbers, io_thread.hosts.versions)
        if self._environment is not None:
            table.set_environment(self._environment)
        self._tables.add(table)
        return table


@dataclass(frozen=True)
class _NamedEnvironment:
    """The environment of a worker. Its contents are with the client whose tasks it runs."""

    name: str


def _data_address(given: str | None) -> Address | str:
    """Return the data address that was given, or that of the environment.

    Raises:
        ValueError: it is no data address.
    """
    if given is not None:
        return parse_data_address(given)
    try:
        return parse_data_address(os.environ.get(DATA_ADDRESS_VARIABLE, DATA_ADDRESS_AUTO))
    except ValueError as error:
        raise ValueError(f"{DATA_ADDRESS_VARIABLE}: {error}") from None


def _timeout_text(address: Address, seconds: float) -> str:
    problem = file_shortage() or host_problem(address) or f"`scaler_client doctor {address}` looks for the reason"
    return f"no scheduler answers at {address} within {seconds:g} seconds: {problem}"


def _hello(worker: int) -> messages.Hello:
    host, pid = socket.gethostname(), os.getpid()
    return messages.Hello(
        role=messages.Role.CLIENT,
        incarnation=random.SystemRandom().getrandbits(62) + 1,
        language_version=platform.python_version(),
        version=__version__,
        host=host,
        pid=pid,
        name="" if worker else client_name(pid, host),  # the scheduler names a nested client after its worker
        worker=worker,
        account=_account(),
    )


def _account() -> str:
    """The user of this process; without a name: its number."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # KeyError: before Python 3.13
        return str(os.getuid()) if hasattr(os, "getuid") else ""
