"""The functions that a client has submitted. Each function is pickled and sent once.

A plain function, class, builtin, partial or cached function is pickled when it is first submitted. It is pickled again
if values that travel with it have changed (`captures.py`), or cloudpickle's registry of modules that are pickled by
value. Any other callable (a bound method, an object with `__call__`) has state that may change between calls, so it is
pickled at each submit. Equal bytes are sent once in any case.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import pickle
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from ..environments.module_versions import program
from ..errors import ResultPickleError, SerializerError
from ..protocol.messages import Outcome, Payload
from ..protocol.utf8_text import escaped
from . import custom_serializer, serializer
from .call_rows import ROW_LIMIT_NS
from .captures import Captures, captures_of
from .cloudpickle_ext import BY_VALUE_MODULES, CachedFunction
from .custom_serializer import RemoteCall, Serializer
from .failed_answers import TEXT_ERRORS, HostVersions, no_hosts, remote_error, text_error, unreadable_answer
from .large_payloads import LargePayloads
from .named_function import NamedFunction
from .object_frames import Answer, ResultFile
from .retry_policy import NO_POLICY, RetryingFunction, TaskPolicy

_PICKLED_ONCE = (types.FunctionType, types.BuiltinFunctionType, type, functools.partial, CachedFunction)
_RECENT_FUNCTIONS = 64
"""How many functions are kept after their last use, so that a bound method is not sent again with every call."""

_DECAY = 0.9
"""How much of the weight of earlier rows is left at each row, so that the mean follows changing run times."""


class HasName(Protocol):
    """An environment."""

    @property
    def name(self) -> str: ...


class CallTime:
    """The mean run time of a function's calls, from the latest rows."""

    __slots__ = ("_calls", "_ns")

    def __init__(self) -> None:
        self._calls = 0.0
        self._ns = 0.0

    def add(self, calls: int, run_ns: int) -> None:
        """Learn from a row.

        It counts with ROW_LIMIT_NS at most. Otherwise one call of a second would turn thousands of short calls into
        rows of one call (`make bench ONLY=sleep`).
        """
        self._calls = self._calls * _DECAY + calls
        self._ns = self._ns * _DECAY + min(run_ns, ROW_LIMIT_NS)

    @property
    def mean_ns(self) -> int:
        """The mean; 0: no call has ended yet."""
        return int(self._ns / self._calls) + 1 if self._calls else 0


class Function:
    """A function with its number at the scheduler. The scheduler forgets the function when this object is deleted."""

    __slots__ = (
        "__weakref__",
        "answers_pickles",
        "call_time",
        "host_versions",
        "environment",
        "holder",
        "kind",
        "name",
        "named_function",
        "number",
        "payload",
        "sent_in_join",
        "serializer",
    )

    def __init__(
        self,
        number: int,
        name: str,
        payload: bytes,
        own_serializer: Serializer | None = None,
        named_function: NamedFunction | None = None,
        host_versions: HostVersions = no_hosts,
        environment: HasName | None = None,
    ) -> None:
        self.serializer = own_serializer
        """The user's own serializer, whose bytes the results are; None: cloudpickle."""
        self.named_function = named_function
        """The function's name, if workers offer it by name; None: the function itself is sent."""
        self.kind = serializer.CLOUDPICKLE_KIND if named_function is None else named_function.kind
        """The kind that workers must offer, as in the protocol."""
        self.environment = "" if environment is None or named_function is not None else environment.name
        """The name of the environment whose workers run it; empty: workers without one."""
        self.holder = environment
        """Keeps the contents of the environment as long as tasks may need them."""
        self.number = number
        self.name = name
        self.payload = payload
        self.answers_pickles = own_serializer is None and named_function is None
        """Whether the payload of a value is its plain pickle."""
        self.call_time = CallTime()
        """The run time of its calls in rows that stand for several."""
        self.host_versions = host_versions
        """Returns hosts with their versions of packages, for error texts. It may wait for a short time."""
        self.sent_in_join = 0
        """The number of the session's join in which it was sent last. After another join it is sent again."""

    def read_answer(
        self, outcome: int, answer: Answer, function_name: str = "", place: str = ""
    ) -> tuple[Any, BaseException | None]:
        """Return result and exception of a task from the bytes of its answer. One of them is None.

        Args:
            outcome: a value of `Outcome`.
            answer: the payload of that outcome.
            function_name: the function that has failed, if that is a different one.
            place: where it has failed. The text of the exception or of its cause names this place.
        """
        if type(answer) is ResultFile:
            try:
                return self._read_value(answer.load())
            except Exception as error:
                return None, self._load_failure("result", error, "", "", answer.frames[0])
        if not outcome and self.answers_pickles:  # the most frequent case, with few steps (benchmarks/submit_rate.py)
            if answer == serializer.NONE:
                return None, None
            try:
                return serializer.loads(answer), None
            except Exception as error:
                return None, self._load_failure("result", error, function_name, place, answer)
        kind = TEXT_ERRORS.get(outcome)
        if kind is not None:
            return None, text_error(kind, bytes(answer).decode(), place)
        if self.named_function is not None:
            return self.named_function.read_answer(outcome, answer)
        try:
            value = serializer.loads(answer)
        except Exception as error:
            what = "result" if outcome == Outcome.VALUE else "exception"
            return None, self._load_failure(what, error, function_name, place, answer)
        if outcome == Outcome.VALUE:
            return self._read_value(value)
        return None, remote_error(outcome, value, place)

    def read_frames(self, frames: Sequence[Payload]) -> tuple[Any, BaseException | None]:
        """Return the result of a task that is a pickle and its buffers, and its exception. One of them is None."""
        try:
            value = pickle.loads(frames[0], buffers=map(bytearray, frames[1:]))  # copies, so that arrays are writable
        except Exception as error:
            return None, self._load_failure("result", error, "", "", frames[0])
        return self._read_value(value)

    def _load_failure(
        self, kind: str, error: Exception, function_name: str, place: str, answer: Payload
    ) -> ResultPickleError:
        """Return the error of an answer that can't be unpickled."""
        what = f"the {kind} of {function_name or self.name}"
        return unreadable_answer(what, error, answer, place, self.host_versions)

    def _read_value(self, value: Any) -> tuple[Any, BaseException | None]:
        if self.serializer is None:
            return value, None
        try:
            kind, payload = value
            what = f"the result of {self.name} of type {kind}"
            return custom_serializer.load(self.serializer, payload, what, "in the client"), None
        except SerializerError as error:
            return None, error


class FunctionTable:
    """Finds the Function of a callable. Any thread may use it."""

    def __init__(
        self,
        forgotten: Callable[[int], None],
        serializer: Serializer | None = None,
        numbers: Iterator[int] | None = None,
        host_versions: HostVersions = no_hosts,
    ) -> None:
        """
        Args:
            forgotten: called, in any thread, with the number of each function that was deleted.
            serializer: the user's own serializer; None: cloudpickle.
            numbers: the source of the functions' numbers. The tables of a connection share it.
            host_versions: returns hosts with their versions of packages.
        """
        self._host_versions = host_versions
        self._forgotten = forgotten
        self._serializer = serializer
        self._large = LargePayloads()
        self._numbers = itertools.count(1) if numbers is None else numbers
        self._by_identity: dict[object, tuple[weakref.ref[Any], Function]] = {}
        """Functions whose pickles never change, by the id of the callable."""
        self._capturing: dict[object, tuple[weakref.ref[Any], Function, Captures]] = {}
        """Functions that are pickled by value.

        They have a separate table, so that other functions skip the comparison.
        """
        self._by_value_modules = frozenset(BY_VALUE_MODULES)
        """The registered modules for which the pickles in these two tables were made."""
        self._by_digest: weakref.WeakValueDictionary[bytes, Function] = weakref.WeakValueDictionary()
        self._recent: deque[Function] = deque(maxlen=_RECENT_FUNCTIONS)
        self._environment: HasName | None = None
        program.watch(self)

    def get(self, fn: Callable[..., Any]) -> Function:
        """Return the Function of a callable. `get_with_policy` repeats this inline (benchmarks/submit_rate.py).

        Raises:
            TypeError: `fn` isn't callable or can't be pickled.
        """
        if self._by_value_modules != BY_VALUE_MODULES:
            self.forget_pickles()
        known = self._by_identity.get(id(fn))
        if known is not None and known[0]() is fn:
            return known[1]
        capturing = self._capturing.get(id(fn))
        if capturing is not None and capturing[0]() is fn and capturing[2].are_unchanged(fn):
            return capturing[1]
        return self._pickled(fn, id(fn), NO_POLICY)

    def get_with_policy(self, fn: Callable[..., Any], policy: TaskPolicy) -> Function:
        """Return the Function of a callable whose tasks are tried again after certain exceptions, or leave processes.

        Args:
            fn: the callable.
            policy: says which.

        Raises:
            TypeError: `fn` isn't callable or can't be pickled.
        """
        if self._by_value_modules != BY_VALUE_MODULES:
            self.forget_pickles()
        key = id(fn), policy
        known = self._by_identity.get(key)
        if known is not None and known[0]() is fn:
            return known[1]
        capturing = self._capturing.get(key)
        if capturing is not None and capturing[0]() is fn and capturing[2].are_unchanged(fn):
            return capturing[1]
        return self._pickled(fn, key, policy)

    def set_environment(self, environment: HasName | None) -> None:
        """From now on, functions belong to this environment. Functions that were sent before keep theirs.

        Args:
            environment: an object with the name of the environment; None: no environment.
        """
        self._environment = environment
        self.forget_pickles()

    def forget_pickles(self) -> None:
        """Forget all pickles: the registry of modules that are pickled by value, or a module, has changed."""
        self._by_value_modules = frozenset(BY_VALUE_MODULES)
        self._by_identity.clear()
        self._capturing.clear()

    def _pickled(self, fn: Callable[..., Any], key: object, policy: TaskPolicy) -> Function:
        if isinstance(fn, NamedFunction):
            return self._get_named(fn, policy)
        if not callable(fn):
            raise TypeError(f"{fn!r} of type {type(fn).__name__} is not callable")
        if inspect.iscoroutinefunction(fn):
            raise TypeError(f"{_name_of(fn)} is a coroutine function: submit a plain one that runs it")
        if not isinstance(fn, _PICKLED_ONCE) or _is_builtin_method(fn):
            return self._by_content(fn, policy)
        captures = captures_of(fn)  # before the pickling: a change during the pickling is seen later
        function = self._by_content(fn, policy)
        if captures is None:
            self._by_identity[key] = weakref.ref(fn, lambda gone: _drop(self._by_identity, key, gone)), function
        else:
            reference = weakref.ref(fn, lambda gone: _drop(self._capturing, key, gone))
            self._capturing[key] = reference, function, captures
        return function

    def _get_named(self, fn: NamedFunction, policy: TaskPolicy) -> Function:
        if policy.retry_on:
            raise TypeError(f"retry_on needs a Python function: {fn!r} raises no Python exceptions")
        if policy.leaves_processes:
            raise TypeError(f"leave_processes needs a Python function, not {fn!r}")
        return self._intern(fn.kind.encode(), fn.name, b"", fn)

    def _by_content(self, fn: Callable[..., Any], policy: TaskPolicy) -> Function:
        name = _name_of(fn)
        payload = self._dump(fn, name, policy)
        self._large.note_function(name, len(payload))
        digest = hashlib.blake2b(payload, digest_size=16)
        if self._environment is not None:
            digest.update(self._environment.name.encode())
        return self._intern(digest.digest(), name, payload, None)

    def _intern(self, digest: bytes, name: str, payload: bytes, named_function: NamedFunction | None) -> Function:
        function = self._by_digest.get(digest)
        if function is None:
            function = Function(
                next(self._numbers),
                name,
                payload,
                self._serializer,
                named_function,
                self._host_versions,
                self._environment,
            )
            weakref.finalize(function, self._forgotten, function.number).atexit = False
            self._by_digest[digest] = function
        self._recent.append(function)
        return function

    def _dump(self, fn: Callable[..., Any], name: str, policy: TaskPolicy) -> bytes:
        own = self._serializer
        if own is not None:
            _, payload = custom_serializer.dump(own, fn, f"function {name}", "in the client")
            fn = RemoteCall(own, name, payload)
        if policy != NO_POLICY:
            fn = RetryingFunction(fn, *policy)
        return serializer.dump_function(fn, name)


def _drop(known: dict[object, Any], key: object, gone: weakref.ref[Any]) -> None:
    entry = known.get(key)
    if entry is not None and entry[0] is gone:
        del known[key]


def _is_builtin_method(fn: Callable[..., Any]) -> bool:
    """Whether a builtin is bound to an object whose state may change, for example `some_list.count`."""
    return isinstance(fn, types.BuiltinFunctionType) and not isinstance(fn.__self__, (types.ModuleType, type))


def _name_of(fn: Callable[..., Any]) -> str:
    if isinstance(fn, functools.partial):
        return f"partial({_name_of(fn.func)})"
    name = getattr(fn, "__qualname__", None)
    return escaped(str.__str__(name) if isinstance(name, str) else type(fn).__qualname__)
