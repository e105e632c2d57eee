"""Exceptions as bytes, without a call of their classes.

Plain pickle stores the class and `args`, and calls the class with these. That is wrong for a class whose `__init__`
takes something else: the call fails, or makes another exception. So the state of an exception is stored: its class,
`args`, the fields of its built-in base class (such as `errno`), its attributes and its cause. A class that defines how
its objects are pickled (`__reduce__` and others) decides itself.

What cannot be pickled or loaded costs as little as possible. An attribute becomes None, and a note says so. If the
class cannot be loaded here, an instance of its nearest base class that can be loaded stands for the exception.
"""

from __future__ import annotations

import copyreg
import importlib
import io
import pickle
import threading
import types
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from ..errors import RemoteTraceback
from . import cloudpickle_ext
from .cloudpickle_ext import PROTOCOL, Pickler

MAX_DEPTH = 50
"""The most exceptions inside one another that are stored: causes, members of groups, attributes."""

MAX_TEXT = 2000
"""The most characters of an exception's text that a stand-in has."""

_HEAP_TYPE = 1 << 9
"""The flag of classes that were made while the program runs. Those of the interpreter itself do not have it."""

_HOOKS = ("__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__", "__getstate__", "__setstate__")
_NO_FIELDS = frozenset({
    "__cause__", "__context__", "__dict__", "__suppress_context__", "__traceback__", "args",
    "obj",  # of AttributeError: any object
})  # fmt: skip
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)


def dumps(value: Any) -> bytes:
    """Return the pickle of a value with exceptions in it.

    Raises:
        Exception: any error of the pickling.
    """
    if type(value) is tuple and _is_simple(value[0]):
        try:
            data = cloudpickle_ext.dumps(value)
            pickle.loads(data)
            return data
        except Exception:
            pass  # its state is pickled instead
    with io.BytesIO() as file:
        _ExceptionPickler(file, PROTOCOL).dump(value)
        return file.getvalue()


def _is_simple(value: Any) -> bool:
    """Return whether a value is an exception of the interpreter itself, without attributes and cause."""
    return (
        isinstance(value, BaseException)
        and not type(value).__flags__ & _HEAP_TYPE
        and not value.__dict__
        and _cause_of(value) is None
    )


class _Open(threading.local):
    def __init__(self) -> None:
        self.ids: set[int] = set()


_open = _Open()
"""The exceptions that this thread pickles now, each inside the one before."""


class _ExceptionPickler(Pickler):
    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, BaseException):
            return super().reducer_override(value)
        bases, text = _base_names(type(value)), _shown(value, str)
        if id(value) in _open.ids or len(_open.ids) >= MAX_DEPTH:
            return load, (b"", bases, text)
        _open.ids.add(id(value))
        try:
            return load, (_state_bytes(value), bases, text)
        finally:
            _open.ids.discard(id(value))


def load(data: bytes, bases: Sequence[tuple[str, str]], text: str) -> BaseException:
    """Return an exception from its bytes, or an instance of one of its base classes that stands for it.

    Args:
        data: what `_state_bytes` has returned; empty: it could not be pickled.
        bases: module and name of the classes from which its class is derived, itself first.
        text: the text of the exception.
    """
    reason = "it can't be pickled"
    try:
        error = pickle.loads(data) if data else None
        if isinstance(error, BaseException):
            return error
    except Exception as failure:
        reason = f"{type(failure).__name__}: {failure}"
    what = ".".join(bases[0]).removeprefix("builtins.")
    for module, name in bases[1:] or bases:
        kind = _found(module, name)
        if kind is not None:
            said = f"{text} (this stands for an exception of class {what}: {reason})"
            parts = {"message": said, "exceptions": (RuntimeError(text),)} if name.endswith("ExceptionGroup") else {}
            return _rebuilt(kind, (said,), parts, {}, None)
    raise pickle.UnpicklingError(f"an exception of class {what} can't be loaded: {reason}")


def _state_bytes(error: BaseException) -> bytes:
    """Return bytes that give the exception when they are unpickled; none if its class can't be pickled."""
    if _has_hooks(type(error)):
        try:
            data = cloudpickle_ext.dumps(error)
            if type(pickle.loads(data)) is type(error):
                return data
        except Exception:
            pass  # its state is pickled instead
    kind, args, fields, attributes = type(error), error.args, _fields(error), _attributes(error)
    cause = _cause_of(error)
    found = _dump_state(kind, args, fields, attributes, cause)
    if found is None:
        lost = [name for name, value in attributes.items() if not _can_pickle(value)]
        attributes.update(dict.fromkeys(lost))
        args = tuple(value if _can_pickle(value) else _shown(value) for value in args)
        fields = {name: value for name, value in fields.items() if _can_pickle(value)}
        if lost:
            names = ", ".join(map(repr, lost))
            notes = attributes.get("__notes__") or []
            attributes["__notes__"] = [*notes, f"these attributes could not be pickled and are None: {names}"]
        found = _dump_state(kind, args, fields, attributes, cause)
    return found or b""


def _dump_state(
    kind: type, args: tuple[Any, ...], fields: dict[str, Any], attributes: dict[str, Any], cause: BaseException | None
) -> bytes | None:
    """Return the pickle of the state; None: it can't be pickled, or not be loaded again."""
    try:
        data = dumps(_State((kind, args, fields, attributes, cause)))
        pickle.loads(data)
    except Exception:
        return None
    return data


class _State:
    """Pickles to a call of `_rebuilt`."""

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self._parts = parts

    def __reduce__(self) -> Any:
        return _rebuilt, self._parts


def _rebuilt(
    kind: type[BaseException],
    args: tuple[Any, ...],
    fields: dict[str, Any],
    attributes: dict[str, Any],
    cause: BaseException | None,
) -> BaseException:
    base: Any = _built_in_base(kind)
    # The members of a group can only be set when it is made.
    parts = (fields["message"], fields["exceptions"]) if "exceptions" in fields else ()
    error: BaseException = base.__new__(kind, *parts)
    BaseException.__setattr__(error, "args", args)  # not by the class, which may refuse attributes
    for name, value in fields.items():
        try:
            getattr(base, name).__set__(error, value)
        except (AttributeError, TypeError):
            pass  # of this interpreter, the field can't be set
    for name, value in attributes.items():
        if isinstance(getattr(kind, name, None), types.MemberDescriptorType):
            object.__setattr__(error, name, value)
        else:
            error.__dict__[name] = value
    if cause is not None:
        BaseException.__setattr__(error, "__cause__", cause)
    return error


def _cause_of(error: BaseException) -> BaseException | None:
    """Return the cause of an exception; None: it has none, or this is the traceback of a task, which has the text."""
    cause = error.__cause__
    return None if type(cause) is RemoteTraceback else cause


def _fields(error: BaseException) -> dict[str, Any]:
    """Return the values of the fields that built-in classes define."""
    fields: dict[str, Any] = {}
    for kind in type(error).__mro__:
        if kind.__flags__ & _HEAP_TYPE or not issubclass(kind, BaseException):
            continue
        for name, descriptor in vars(kind).items():
            if isinstance(descriptor, _DESCRIPTORS) and name not in _NO_FIELDS and name not in fields:
                try:
                    value = descriptor.__get__(error)
                except (AttributeError, TypeError):
                    continue  # it has no value
                if value is not None:
                    fields[name] = value
    return fields


def _attributes(error: BaseException) -> dict[str, Any]:
    attributes = dict(error.__dict__)
    for name in copyreg._slotnames(type(error)):  # type: ignore[attr-defined]
        try:
            attributes[name] = object.__getattribute__(error, name)
        except AttributeError:
            pass
    return attributes


def _built_in_base(kind: type[BaseException]) -> type[BaseException]:
    return next(each for each in kind.__mro__ if issubclass(each, BaseException) and not each.__flags__ & _HEAP_TYPE)


def _has_hooks(kind: type) -> bool:
    """Return whether a class, or a base class that is written in Python, says how its objects are pickled."""
    if kind in copyreg.dispatch_table:
        return True
    for name in _HOOKS:
        owner = next((each for each in kind.__mro__ if name in vars(each)), object)
        if owner.__flags__ & _HEAP_TYPE:
            return True
    return False


def _base_names(kind: type) -> list[tuple[str, str]]:
    return [(each.__module__, each.__qualname__) for each in kind.__mro__ if issubclass(each, BaseException)]


def _found(module: str, name: str) -> type[BaseException] | None:
    """Return the exception class of this name; None: it can't be loaded."""
    try:
        kind = attrgetter(name)(importlib.import_module(module))
    except Exception:
        return None
    return kind if isinstance(kind, type) and issubclass(kind, BaseException) else None


def _can_pickle(value: Any) -> bool:
    try:
        pickle.loads(dumps(value))
    except Exception:
        return False
    return True


def _shown(value: Any, show: Callable[[Any], str] = repr) -> str:
    """Return the text of a value, also if its own method raises."""
    try:
        text = show(value)
    except Exception:
        return f"<{type(value).__qualname__}>"
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "..."
