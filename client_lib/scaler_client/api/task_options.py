"""What `Client.options` takes: checked when it is given, turned into what travels once."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..graphs.order import PYTHON
from ..pickling.retry_policy import RetryOn
from ..protocol.messages import Options
from ..protocol.utf8_text import checked_text

MAX_TIMEOUT_SECONDS = 1e9
"""About 30 years."""

DEFAULT_RETRY_ON_RETRIES = 3
"""How often a task is tried again on its exceptions where only those are named."""

_HIGHEST_32_BITS = 2**31 - 1
_LOWEST_32_BITS = -(2**31)
_HIGHEST_AMOUNT = 2**32 - 1
_MAX_NUMBER_LENGTH = 40
"""Characters that an error repeats of a wrong one."""

_PLAIN = Options()


@dataclass(frozen=True)
class TaskOptions:
    """Options of a client's tasks; None where they were not given."""

    timeout: float | None = None
    """Seconds."""
    retries: int | None = None
    retry_on: RetryOn = ()
    priority: int | None = None
    name: str = ""
    capabilities: tuple[tuple[str, int], ...] = ()
    """Sorted by name."""
    profiling: bool = False
    graph_backend: str = PYTHON
    """Which way graphs are analysed in the client."""
    stream_output: bool = False
    _wire_cache: dict[tuple[int, int, bool, bool], Options | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __reduce__(self) -> Any:
        parts = (self.timeout, self.retries, self.retry_on, self.priority, self.name, self.capabilities, self.profiling)
        return TaskOptions, (*parts, self.graph_backend, self.stream_output)

    def replace_given(
        self,
        *,
        timeout: Any = None,
        retries: Any = None,
        retry_on: Any = None,
        priority: Any = None,
        name: Any = None,
        capabilities: Any = None,
        profiling: Any = None,
    ) -> TaskOptions:
        """These with others in their place; None leaves one as it is.

        Raises:
            TypeError, ValueError: an option is of a wrong type or out of range; the text names it.
        """
        given: dict[str, Any] = {}
        if timeout is not None:
            given["timeout"] = _checked_timeout(timeout)
        if retries is not None:
            given["retries"] = _checked_integer("retries", retries, 0, _HIGHEST_32_BITS)
        if retry_on is not None:
            given["retry_on"] = _checked_retry_on(retry_on)
        if priority is not None:
            given["priority"] = _checked_integer("priority", priority, _LOWEST_32_BITS, _HIGHEST_32_BITS)
        if name is not None:
            given["name"] = checked_text("name", _checked_type("name", name, str, "a string"))
        if capabilities is not None:
            given["capabilities"] = _checked_capabilities(capabilities)
        if profiling is not None:
            given["profiling"] = checked_bool("profiling", profiling)
        return dataclasses.replace(self, **given)

    def to_wire(
        self, depth: int = 0, priority: int = 0, profiling: bool | None = None, stream_output: bool = False
    ) -> Options | None:
        """What travels with a task; None where it asks for nothing. The same object for the same arguments.

        Args:
            depth: the task's.
            priority: where none was given: that of the task that submits it.
            profiling: for this task alone.
            stream_output: whether the output of the task that submits it is wanted: then its own is too.
        """
        wants_output = self.stream_output or stream_output
        key = (depth, priority, self.profiling if profiling is None else profiling, wants_output)
        try:
            return self._wire_cache[key]
        except KeyError:
            options = self._build_wire(*key)
            return self._wire_cache.setdefault(key, None if options == _PLAIN else options)

    def _build_wire(self, depth: int, priority: int, profiling: bool, stream_output: bool) -> Options:
        retries = self.retries
        if retries is None:
            retries = DEFAULT_RETRY_ON_RETRIES if self.retry_on else -1
        return Options(
            priority=priority if self.priority is None else self.priority,
            depth=depth,
            retries=retries,
            timeout_milliseconds=0 if self.timeout is None else math.ceil(self.timeout * 1000),
            profiling=profiling,
            name=self.name,
            capabilities=self.capabilities,
            stream_output=stream_output,
        )


def checked_bool(name: str, value: Any) -> bool:
    """Raises TypeError, which has the name, where it isn't a bool."""
    checked: bool = _checked_type(name, value, bool, "True or False")
    return checked


def number_text(value: float) -> str:
    """A number that is out of range, for an error: Python refuses to write integers of thousands of digits."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= _MAX_NUMBER_LENGTH else f"{text[:_MAX_NUMBER_LENGTH]}..."


def _checked_type(name: str, value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {what}, not {value!r}")
    return value


def _checked_timeout(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"timeout must be a number of seconds, not {value!r}")
    if not 0 < value <= MAX_TIMEOUT_SECONDS:
        limits = f"above 0 and at most {MAX_TIMEOUT_SECONDS:g} seconds"
        raise ValueError(f"timeout must be {limits}, not {number_text(value)}")
    return float(value)


def _checked_integer(name: str, value: Any, lowest: int, highest: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if not lowest <= value <= highest:
        raise ValueError(f"{name} must be from {lowest} to {highest}, not {number_text(value)}")
    return int.__index__(value)  # of an IntEnum, for one, the number: Cap'n Proto takes exact ones alone


def _checked_retry_on(value: Any) -> RetryOn:
    classes = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(each, type) and issubclass(each, BaseException) for each in classes):
        raise TypeError(f"retry_on must be an exception class or a tuple of them, not {value!r}")
    return classes


def _checked_capabilities(value: Any) -> tuple[tuple[str, int], ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"capabilities must be a dict of names and amounts, or names alone, not {value!r}")
    given = []
    for name, amount in value.items() if isinstance(value, Mapping) else ((name, 1) for name in value):
        if not isinstance(name, str):
            raise TypeError(f"capabilities must be named by strings, not {name!r}")
        if not name:
            raise ValueError("capabilities must have names, not ''")
        name = checked_text("a capability's name", name)
        given.append((name, _checked_integer(f"capabilities[{name!r}]", amount, 1, _HIGHEST_AMOUNT)))
    return tuple(sorted(dict(given).items()))
