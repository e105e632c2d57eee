"""The state of an exception, and how an exception is made of its state without a call of its class.

Plain pickle stores the class and `args`, and calls the class with these. That is wrong for a class whose `__init__`
takes something else: the call fails, or makes another exception.
"""

from __future__ import annotations

import copyreg
import functools
import types
from typing import Any

from ..errors import RemoteTraceback

_HEAP_TYPE = 1 << 9
"""The flag of classes that were made while the program runs. Those of the interpreter itself do not have it."""

_HOOKS = ("__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__", "__getstate__", "__setstate__")
_NO_FIELDS = frozenset({
    "__cause__", "__context__", "__dict__", "__suppress_context__", "__traceback__", "args",
    "obj",  # of AttributeError: any object
})  # fmt: skip
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)

# By these, because a class may refuse attributes or define properties with these names.
_ARGS: Any = BaseException.__dict__["args"]
_CAUSE: Any = BaseException.__dict__["__cause__"]
_CONTEXT: Any = BaseException.__dict__["__context__"]

Links = tuple["BaseException | None", "BaseException | None"]
"""The cause and the context of an exception."""

NO_LINKS: Links = (None, None)


def reduced(
    kind: type, args: tuple[Any, ...], fields: dict[str, Any], attributes: dict[str, Any], links: Links
) -> tuple[Any, ...]:
    """Return what `__reduce__` returns, for an exception with this state.

    Args:
        kind: its class.
        args: its `args`.
        fields: the values of the fields of its built-in base class.
        attributes: its attributes.
        links: its cause and context.
    """
    # The members of a group can only be set when it is made.
    parts = (fields["message"], fields["exceptions"]) if "exceptions" in fields else ()
    return make, (kind, parts), (args, fields, attributes, links), None, None, set_state


def reduced_value(error: BaseException) -> Any:
    """Return what `reducer_override` returns for an exception among arguments or in a result.

    As in plain pickle, it loses its cause and context: these are often large, and may hold what cannot be pickled.
    """
    kind = type(error)
    if has_hooks(kind) or is_simple(error):
        return NotImplemented
    found = reduced(kind, args_of(error), fields_of(error), attributes_of(error), NO_LINKS)
    try:
        make(*found[1])
    except TypeError:  # a class with memory of its own, written in another language
        return NotImplemented
    return found


def make(kind: type[BaseException], parts: tuple[Any, ...]) -> BaseException:
    """Return a new exception of this class, without its state."""
    base: Any = _built_in_base(kind)
    error: BaseException = base.__new__(kind, *parts)
    return error


def set_state(error: BaseException, state: tuple[tuple[Any, ...], dict[str, Any], dict[str, Any], Links]) -> None:
    """Give an exception its state."""
    args, fields, attributes, (cause, context) = state
    _ARGS.__set__(error, args)
    for name, descriptor in _descriptors(_built_in_base(type(error))):
        if name in fields:
            try:
                descriptor.__set__(error, fields[name])
            except (AttributeError, TypeError):
                pass  # of this interpreter, the field can't be set
    for name, value in attributes.items():
        if isinstance(getattr(type(error), name, None), types.MemberDescriptorType):
            object.__setattr__(error, name, value)
        else:
            error.__dict__[name] = value
    if context is not None:
        _CONTEXT.__set__(error, context)
    if cause is not None:
        _CAUSE.__set__(error, cause)


def is_simple(error: BaseException) -> bool:
    """Return whether plain pickle keeps an exception: it is of the interpreter itself, and has only `args`."""
    return (
        not type(error).__flags__ & _HEAP_TYPE
        and not error.__dict__
        and links_of(error) == NO_LINKS
        and not fields_of(error)
    )


def args_of(error: BaseException) -> tuple[Any, ...]:
    args: tuple[Any, ...] = _ARGS.__get__(error)
    return args


def links_of(error: BaseException) -> Links:
    """Return the cause of an exception, or the context that stands for it in tracebacks.

    The traceback of another task is no cause: the text of this task's traceback has it.
    """
    cause = _CAUSE.__get__(error)
    if cause is not None:
        return (None, None) if type(cause) is RemoteTraceback else (cause, None)
    return None, None if error.__suppress_context__ else _CONTEXT.__get__(error)


def fields_of(error: BaseException) -> dict[str, Any]:
    """Return the values of the fields that built-in classes define."""
    fields: dict[str, Any] = {}
    for name, descriptor in _descriptors(_built_in_base(type(error))):
        try:
            value = descriptor.__get__(error)
        except (AttributeError, TypeError):
            continue  # it has no value
        if value is not None:
            fields[name] = value
    return fields


def attributes_of(error: BaseException) -> dict[str, Any]:
    attributes = dict(error.__dict__)
    for name in copyreg._slotnames(type(error)):  # type: ignore[attr-defined]
        try:
            attributes[name] = object.__getattribute__(error, name)
        except AttributeError:
            pass
    return attributes


def has_hooks(kind: type) -> bool:
    """Return whether a class, or a base class that is written in Python, says how its objects are pickled."""
    if kind in copyreg.dispatch_table:
        return True
    for name in _HOOKS:
        owner = next((each for each in kind.__mro__ if name in vars(each)), object)
        if owner.__flags__ & _HEAP_TYPE:
            return True
    return False


def _built_in_base(kind: type) -> type:
    """Return the class of the interpreter that says how the memory of the objects of a class is used."""
    while kind.__flags__ & _HEAP_TYPE:
        kind = kind.__base__  # type: ignore[assignment]  # only object has none
    return kind


@functools.cache
def _descriptors(kind: type) -> list[tuple[str, Any]]:
    """Return the names and descriptors of the fields of a class of the interpreter."""
    found: dict[str, Any] = {}
    for each in kind.__mro__[:-1]:  # without object
        for name, descriptor in vars(each).items():
            if isinstance(descriptor, _DESCRIPTORS) and name not in _NO_FIELDS:
                found.setdefault(name, descriptor)
    return list(found.items())
