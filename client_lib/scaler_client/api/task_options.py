"""The options of tasks: checks the arguments of `Client.options`, and converts them for the wire."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..commands.options import MAX_CAPABILITIES, MAX_CAPABILITY_NAME_LENGTH
from ..commands.resource_amounts import CPUS, MAX_NAMES, checked_resource_name, resource_amount, shown
from ..graphs.order import PYTHON
from ..pickling.retry_policy import RetryOn, TaskPolicy
from ..protocol.messages import Options
from ..protocol.utf8_text import checked_text

MAX_TIMEOUT_SECONDS = 1e9
"""About 30 years."""

DEFAULT_RETRY_ON_RETRIES = 3
"""How often a task may run again if `retry_on` is given and `retries` is not."""

MAX_LIMITS = 16
"""The most limits of a task."""

MAX_LIMIT_NAME_LENGTH = 64
"""In characters; no scheduler defines a limit with a longer name."""

MOST_MEMBERS = 1024
"""The largest gang that a scheduler takes."""

_MAX_INT32 = 2**31 - 1
_MIN_INT32 = -(2**31)
_MAX_UINT32 = 2**32 - 1

_PLAIN = Options()


@dataclass(frozen=True)
class TaskOptions:
    """The options of a client's tasks. None: the option was not given."""

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
    """The library that analyses graphs in the client."""
    stream_output: bool = False
    keep: bool = False
    limits: tuple[str, ...] = ()
    """Sorted."""
    resources: tuple[tuple[str, int], ...] = ()
    """Names and thousandths, sorted by name, without `cpus`."""
    cpus: int = 0
    """Thousandths; 0: one worker."""
    release_resources: bool = False
    shared_inputs: bool = False
    leave_processes: bool = False
    _wire_cache: dict[tuple[int, int, bool, bool], Options | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __reduce__(self) -> Any:
        parts = (self.timeout, self.retries, self.retry_on, self.priority, self.name, self.capabilities, self.profiling)
        return TaskOptions, (
            *parts,
            self.graph_backend,
            self.stream_output,
            self.keep,
            self.limits,
            self.resources,
            self.cpus,
            self.release_resources,
            self.shared_inputs,
            self.leave_processes,
        )

    @property
    def policy(self) -> TaskPolicy:
        """The options that travel with the function."""
        return TaskPolicy(self.retry_on, self.leave_processes)

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
        keep: Any = None,
        limit: Any = None,
        resources: Any = None,
        cpus: Any = None,
        release_resources: Any = None,
        shared_inputs: Any = None,
        leave_processes: Any = None,
    ) -> TaskOptions:
        """Check new options, and return a copy of these options with the new values. None keeps a value.

        Raises:
            TypeError: an option has a wrong type; the text names it.
            ValueError: an option is out of range; the text names it.
        """
        given: dict[str, Any] = {}
        if timeout is not None:
            given["timeout"] = _checked_timeout(timeout)
        if retries is not None:
            given["retries"] = _checked_integer("retries", retries, 0, _MAX_INT32)
        if retry_on is not None:
            given["retry_on"] = _checked_retry_on(retry_on)
        if priority is not None:
            given["priority"] = _checked_integer("priority", priority, _MIN_INT32, _MAX_INT32)
        if name is not None:
            given["name"] = checked_text("name", _checked_type("name", name, str, "a string"))
        if capabilities is not None:
            given["capabilities"] = _checked_capabilities(capabilities)
        if profiling is not None:
            given["profiling"] = checked_bool("profiling", profiling)
        if keep is not None:
            given["keep"] = checked_bool("keep", keep)
        if limit is not None:
            given["limits"] = _checked_limits(limit)
        if resources is not None:
            given |= _checked_resources(resources)
        if cpus is not None:
            amount = resource_amount(CPUS, cpus)
            if given.get("cpus", amount) != amount:
                raise ValueError(f"cpus is {shown(cpus)}, and resources[{CPUS!r}] is another number")
            given["cpus"] = amount
        if release_resources is not None:
            given["release_resources"] = checked_bool("release_resources", release_resources)
        if shared_inputs is not None:
            given["shared_inputs"] = checked_bool("shared_inputs", shared_inputs)
        if leave_processes is not None:
            given["leave_processes"] = checked_bool("leave_processes", leave_processes)
        replaced = dataclasses.replace(self, **given)
        if len(replaced.resources) + bool(replaced.cpus) > MAX_NAMES:
            raise ValueError(f"resources must be at most {MAX_NAMES} with cpus, not {len(replaced.resources) + 1}")
        return replaced

    def to_wire(
        self, depth: int = 0, priority: int = 0, profiling: bool | None = None, stream_output: bool = False
    ) -> Options | None:
        """Return the options to send with a task. The same arguments return the same object.

        Args:
            depth: the depth of the task: 0 outside of tasks.
            priority: the default priority: the priority of the submitting task.
            profiling: whether to measure this task; None: the option counts.
            stream_output: whether the client of the submitting task shows the output of that task; then it shows the
                output of this task too.

        Returns:
            The options; None if all have their defaults.
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
            limits=self.limits,
            resources=tuple(sorted((*self.resources, (CPUS, self.cpus)))) if self.cpus else self.resources,
            release_resources=self.release_resources and bool(self.resources or self.cpus),
        )


def checked_bool(name: str, value: Any) -> bool:
    """Return the value.

    Raises:
        TypeError: the value is not a bool; the text has the name.
    """
    checked: bool = _checked_type(name, value, bool, "True or False")
    return checked


def _checked_type(name: str, value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {what}, not {shown(value)}")
    return value


def _checked_timeout(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"timeout must be a number of seconds, not {shown(value)}")
    if not 0 < value <= MAX_TIMEOUT_SECONDS:
        limits = f"above 0 and at most {MAX_TIMEOUT_SECONDS:g} seconds"
        raise ValueError(f"timeout must be {limits}, not {shown(value)}")
    return float(value)


def _checked_integer(name: str, value: Any, lowest: int, highest: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {shown(value)}")
    if not lowest <= value <= highest:
        raise ValueError(f"{name} must be from {lowest} to {highest}, not {shown(value)}")
    return int.__index__(value)  # a plain int, for example of an IntEnum: Cap'n Proto takes no subclasses


def _checked_retry_on(value: Any) -> RetryOn:
    classes = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(each, type) and issubclass(each, BaseException) for each in classes):
        raise TypeError(f"retry_on must be an exception class or a tuple of them, not {shown(value)}")
    return classes


def checked_gang(size: Any, options: TaskOptions) -> None:
    """Check the size of a gang, and the options of its view.

    Raises:
        TypeError: the size is no whole number.
        ValueError: the size is out of range, or gangs do not have one of these options.
    """
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"size must be a whole number, not {shown(size)}")
    if not 1 <= size <= MOST_MEMBERS:
        raise ValueError(f"size must be 1 to {MOST_MEMBERS}, not {shown(size)}")
    for name in ("keep", "profiling"):
        if getattr(options, name):
            raise ValueError(f"a gang can't have the option {name}: use a view without it")


def _checked_limits(value: Any) -> tuple[str, ...]:
    if isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable):
        raise TypeError(f"limit must be a name or several names, not {shown(value)}")
    names = [value] if isinstance(value, str) else list(value)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"limits must be named by strings, not {shown(name)}")
        if not name:
            raise ValueError("limits must have names, not ''")
        checked_text("a limit's name", name)
        if len(name) > MAX_LIMIT_NAME_LENGTH or not name.isprintable() or re.search(r"[\s,=]", name):
            wanted = f"1 to {MAX_LIMIT_NAME_LENGTH} printable characters without blanks, ',' and '='"
            raise ValueError(f"{shown(name)} is no name of a limit: {wanted}")
    if len(set(names)) > MAX_LIMITS:
        raise ValueError(f"a task can have {MAX_LIMITS} limits, not {len(set(names))}")
    return tuple(sorted(set(names)))


def _checked_resources(value: Any) -> dict[str, Any]:
    """Return the fields for these resources."""
    if not isinstance(value, Mapping):
        raise TypeError(f"resources must be a dict of names and amounts, not {shown(value)}")
    amounts: dict[str, int] = {}
    for name, amount in value.items():
        if not isinstance(name, str):
            raise TypeError(f"resources must be named by strings, not {shown(name)}")
        amounts[checked_resource_name(name)] = resource_amount(name, amount)
    if len(amounts) > MAX_NAMES:
        raise ValueError(f"a task can ask for {MAX_NAMES} resources, not {len(amounts)}")
    cpus = {"cpus": amounts.pop(CPUS)} if CPUS in amounts else {}
    return {"resources": tuple(sorted(amounts.items())), **cpus}


def _checked_capabilities(value: Any) -> tuple[tuple[str, int], ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"capabilities must be a dict of names and amounts, or names alone, not {shown(value)}")
    given = []
    for name, amount in value.items() if isinstance(value, Mapping) else ((name, 1) for name in value):
        if not isinstance(name, str):
            raise TypeError(f"capabilities must be named by strings, not {shown(name)}")
        if not name:
            raise ValueError("capabilities must have names, not ''")
        name = checked_text("a capability's name", name)
        if len(name) > MAX_CAPABILITY_NAME_LENGTH:
            limit = f"at most {MAX_CAPABILITY_NAME_LENGTH} characters"
            raise ValueError(f"capabilities must have names of {limit}, not {shown(name)}")
        given.append((name, _checked_integer(f"capabilities[{name!r}]", amount, 1, _MAX_UINT32)))
    if len(dict(given)) > MAX_CAPABILITIES:
        raise ValueError(f"capabilities must be at most {MAX_CAPABILITIES}, not {len(dict(given))}")
    return tuple(sorted(dict(given).items()))
