"""Exceptions of tasks as bytes, without a call of their classes.

The state of an exception is stored: its class, `args`, the fields of its built-in base class (such as `errno`), its
attributes, its cause or context. A class that defines how its objects are pickled (`__reduce__` and others) decides
itself, if the exception that it makes is equal.

What cannot be pickled or loaded costs as little as possible. An attribute becomes None, and a note says so. If the
class cannot be loaded here, an instance of its nearest base class that can be loaded stands for the exception.
"""

from __future__ import annotations

import importlib
import io
import pickle
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any

from . import cloudpickle_ext
from .cloudpickle_ext import PROTOCOL, Pickler
from .exception_state import (
    NO_LINKS,
    Links,
    args_of,
    attributes_of,
    fields_of,
    has_hooks,
    is_simple,
    links_of,
    make,
    reduced,
    set_state,
)

MAX_DEPTH = 50
"""The most exceptions inside one another that are stored: causes, members of groups, attributes."""

MAX_TEXT = 2000
"""The most characters of an exception's text that a stand-in has."""

_SHOWN_FIELDS = "strerror", "filename", "filename2"
"""Fields of an OSError that it shows in place of its `args`."""

_ATOMS = frozenset({int, float, str, bytes, bool, type(None)})


def dumps(value: Any) -> bytes:
    """Return the pickle of a value with exceptions in it.

    Raises:
        Exception: any error of the pickling.
    """
    with io.BytesIO() as file:
        _ExceptionPickler(file, PROTOCOL).dump(value)
        return file.getvalue()


class _Open(threading.local):
    def __init__(self) -> None:
        self.ids: set[int] = set()
        self.done: dict[int, tuple[BaseException, bytes]] = {}


_open = _Open()
"""The exceptions that this thread pickles now, each inside the one before, and those that it has pickled meanwhile:
without these, a chain of which each exception refers to the one before twice would take twice the time for each."""


class _ExceptionPickler(Pickler):
    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, BaseException):
            return super().reducer_override(value)
        if is_simple(value) and _ATOMS.issuperset(map(type, value.args)):
            return NotImplemented
        return load, (_nested_bytes(value), _base_names(type(value)), _shown(value, str))


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
            return _stand_in(kind, _loaded_as(kind, bases[0], data), text, said)
    raise pickle.UnpicklingError(f"an exception of class {what} can't be loaded: {reason}")


class _SubstituteUnpickler(pickle.Unpickler):
    """Takes another class for one that cannot be loaded here."""

    def __init__(self, data: bytes, missing: tuple[str, str], kind: type) -> None:
        super().__init__(io.BytesIO(data))
        self._missing = missing
        self._kind = kind

    def find_class(self, module: str, name: str) -> Any:
        return self._kind if (module, name) == self._missing else super().find_class(module, name)


def _loaded_as(kind: type[BaseException], missing: tuple[str, str], data: bytes) -> BaseException | None:
    """Return an exception of this class with the state of one whose class is missing; None: that is impossible."""
    try:
        error = _SubstituteUnpickler(data, (missing[0], missing[1]), kind).load()
    except Exception:
        return None
    return error if isinstance(error, kind) else None


def _stand_in(kind: type[BaseException], loaded: BaseException | None, text: str, said: str) -> BaseException:
    """Return an exception of this class with this text, and what `loaded` has beside its text."""
    error = make(kind, ()) if loaded is None else loaded
    if "exceptions" in dir(kind):  # a group, whose text can't be changed
        members = getattr(loaded, "exceptions", ()) or (RuntimeError(text),)
        error = make(kind, (said, members))
        error.__dict__.update({} if loaded is None else loaded.__dict__)
    for name in _SHOWN_FIELDS:
        with suppress(AttributeError, TypeError):
            delattr(error, name)
    set_state(error, ((said,), {"msg": said}, {}, NO_LINKS))
    return error


def _nested_bytes(error: BaseException) -> bytes:
    """Return what `_state_bytes` returns; nothing if the exception is inside itself, or too deep."""
    ids, done = _open.ids, _open.done
    if id(error) in done:
        return done[id(error)][1]
    if id(error) in ids or len(ids) >= MAX_DEPTH:
        return b""
    ids.add(id(error))
    try:
        data = _state_bytes(error)
        done[id(error)] = error, data
    finally:
        ids.discard(id(error))
        if not ids:
            done.clear()
    return data


def _state_bytes(error: BaseException) -> bytes:
    """Return bytes that give the exception when they are unpickled; none if its class can't be pickled."""
    own, differences = _bytes_of_class(error) if has_hooks(type(error)) else (b"", ["text"])
    if not differences:
        return own
    kind, args, fields, attributes, links = (
        type(error),
        args_of(error),
        fields_of(error),
        attributes_of(error),
        links_of(error),
    )
    found = _dump_state(kind, args, fields, attributes, links) or (b"" if "text" in differences else own)
    if not found:
        lost = [name for name, value in attributes.items() if not _can_pickle(value)]
        attributes.update(dict.fromkeys(lost))
        args = tuple(value if _can_pickle(value) else _shown(value) for value in args)
        fields = {name: value for name, value in fields.items() if _can_pickle(value)}
        if lost:
            names = ", ".join(map(repr, lost))
            notes = attributes.get("__notes__") or []
            attributes["__notes__"] = [*notes, f"these attributes could not be pickled and are None: {names}"]
        found = _dump_state(kind, args, fields, attributes, links) or own
    return found


def _bytes_of_class(error: BaseException) -> tuple[bytes, list[str]]:
    """Return the pickle that the class itself makes, if it gives an exception of this class; and what differs then."""
    try:
        data = cloudpickle_ext.dumps(error)
        made = pickle.loads(data)
    except Exception:
        return b"", ["text"]
    if type(made) is not type(error):
        return b"", ["text"]
    looks = zip(_look_of(error), _look_of(made))
    return data, [name for name, (sent, found) in zip(("text", "args", "attributes", "cause"), looks) if sent != found]


def _look_of(error: BaseException) -> tuple[str, str, set[str], Links]:
    return _shown(error, str), _shown(args_of(error)), set(attributes_of(error)), links_of(error)


def _dump_state(
    kind: type, args: tuple[Any, ...], fields: dict[str, Any], attributes: dict[str, Any], links: Links
) -> bytes:
    """Return the pickle of the state; nothing if it can't be pickled, or not be loaded again."""
    try:
        data = dumps(_State((kind, args, fields, attributes, links)))
        pickle.loads(data)
    except Exception:
        return b""
    return data


class _State:
    """Pickles to the exception with this state."""

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self._parts = parts

    def __reduce__(self) -> Any:
        return reduced(*self._parts)


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
