"""The client: what applications use."""

from __future__ import annotations

import os
import platform
import random
import socket
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, TypeVar

from . import __version__, messages
from . import serializer as default_serializer
from .addresses import ADDRESS_VARIABLE, parse_connect_address
from .agent import Agent
from .custom_serializer import Serializer, call_dumper, check_serializer
from .functions import FunctionTable
from .future import TaskFuture
from .mapping import run_map
from .session import Session, refusal_text

T = TypeVar("T")


class Client:
    """A connection to a scheduler, for any number of threads.

    Args:
        address: the scheduler's, as in `tcp://127.0.0.1:2345`; None takes it from SCALER_ADDRESS.
        profiling: not available in this version; True is refused.
        timeout_seconds: how long to wait for the scheduler, at the start and whenever it is gone.
        heartbeat_interval_seconds: how often the scheduler hears that the client lives.
        serializer: how functions, arguments and results become bytes; None: cloudpickle.

    Raises:
        ValueError: there is no address, or it is none.
        ConnectionError: no scheduler answers at the address in time, or it refuses the client.
    """

    def __init__(
        self,
        address: str | None = None,
        profiling: bool = False,
        timeout_seconds: float = 60.0,
        heartbeat_interval_seconds: float = 2.0,
        serializer: Serializer | type | None = None,
    ) -> None:
        if profiling:
            raise ValueError("profiling is not available in this version")
        own = _own_serializer(serializer)
        self._address = parse_connect_address(_given_address(address))
        _check_positive("timeout_seconds", timeout_seconds)
        _check_positive("heartbeat_interval_seconds", heartbeat_interval_seconds)
        session = Session(_hello(), str(self._address), heartbeat_interval_seconds, timeout_seconds, time.monotonic())
        self._agent = Agent(self._address, session)
        self._functions = FunctionTable(self._agent.forget_function, own)
        self._dump_call = default_serializer.dump_call if own is None else call_dumper(own)
        try:
            self._join(session, timeout_seconds)
        except BaseException:
            self._agent.close("the client did not join")
            raise

    def _join(self, session: Session, timeout_seconds: float) -> None:
        if not self._agent.wait_joined(timeout_seconds):
            raise ConnectionError(f"no scheduler answers at {self._address} within {timeout_seconds:g} seconds")
        if session.refused is not None:
            raise ConnectionError(refusal_text(str(self._address), session.refused))

    @property
    def address(self) -> str:
        """The scheduler's address."""
        return str(self._address)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> TaskFuture[T]:
        """Have `fn(*args, **kwargs)` called on a worker.

        Returns:
            Its future, a `concurrent.futures.Future`.

        Raises:
            TypeError: the function or an argument can't be pickled, or `fn` can't be called.
            ClientClosedError: the client is disconnected, or belongs to a parent process.
        """
        future: TaskFuture[T] = TaskFuture(self._agent, self._functions.get(fn), self._dump_call(args, kwargs))
        self._agent.submit(future)
        return future

    def map(self, fn: Callable[..., T], iterable: Iterable[Iterable[Any]]) -> list[T]:
        """Call `fn(*arguments)` on the workers for each tuple of arguments, and wait for all.

        Returns:
            The results, in the order of the arguments.

        Raises:
            TypeError: as for submit, or an item of the iterable is no tuple of arguments.
            BaseException: what the first failed task raised; the tasks that have not begun are then cancelled.
        """
        return run_map(self._agent, self._functions.get(fn), self._dump_call, iterable)

    def disconnect(self) -> None:
        """Leave the scheduler; unfinished tasks are cancelled. A second call does nothing."""
        self._agent.close("the client is disconnected")

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.disconnect()

    def __repr__(self) -> str:
        return f"<Client of {self._address}>"


def _given_address(address: str | None) -> str:
    given = address or os.environ.get(ADDRESS_VARIABLE)
    if not given:
        raise ValueError(f"no scheduler address: give Client(address=...) or set {ADDRESS_VARIABLE}")
    if not isinstance(given, str):
        raise TypeError(f"address {given!r} is not a string")
    return given


def _own_serializer(given: Any) -> Serializer | None:
    if given is not None:
        check_serializer(given)
    own: Serializer | None = given
    return own


def _check_positive(name: str, value: float) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < float("inf"):
        raise ValueError(f"{name} must be a number of seconds above 0, not {value!r}")


def _hello() -> messages.Hello:
    return messages.Hello(
        role=messages.Role.CLIENT,
        incarnation=random.SystemRandom().getrandbits(62) + 1,
        language_version=platform.python_version(),
        version=__version__,
        host=socket.gethostname(),
        pid=os.getpid(),
    )
