"""Functions that workers offer by name, in whichever language, and how their arguments and results travel.

Such a function has no bytes: its kind says codec and name, and the scheduler gives its tasks to workers that have named
that kind. What a task of it raises is text, whatever the codec.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..commands.install_hints import install_hint
from ..errors import FunctionLoadError, RemoteError, ResultPickleError
from ..protocol.messages import Outcome, Payload
from ..protocol.utf8_text import checked_text

_LONGEST_KIND = 256
"""Characters of a kind that a scheduler takes."""


NAMED_KIND_PREFIX = "named "
"""How the kinds of such functions begin."""


def kind_of(name: str, codec: str) -> str:
    """What the protocol calls a function of this name."""
    return f"{NAMED_KIND_PREFIX}{codec} {name}"


class Codec(NamedTuple):
    dumps: Callable[[Any], bytes]
    """A call's arguments, a tuple, as bytes; of JSON and MessagePack, any value."""
    loads: Callable[[bytes], Any]
    """A result's bytes as what it is."""


class NamedFunction:
    """A function of this name, for `submit` and `map`; made by `named`."""

    __slots__ = ("codec", "kind", "name")

    def __init__(self, name: str, codec: str) -> None:
        self.name = name
        self.codec = codec
        self.kind = kind_of(name, codec)
        """What the protocol calls it."""

    def __repr__(self) -> str:
        return f"named({self.name!r}, codec={self.codec!r})"

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        raise TypeError(f"{self!r} can't be called here: it is a worker's, for submit and map")

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} can't be pickled: it is for submit and map, not for graphs or other functions")

    def dump_call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
        """The arguments of one call as bytes.

        Raises:
            TypeError: there are keywords, or the codec can't make bytes of an argument.
        """
        if kwargs:
            raise TypeError(f"{self!r} takes arguments by position alone, not {', '.join(kwargs)}=")
        try:
            return CODECS[self.codec].dumps(args)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise TypeError(f"{self!r}: the arguments can't be sent as {self.codec}: {error}") from error

    def read_answer(self, outcome: int, answer: Payload) -> tuple[Any, BaseException | None]:
        """Result and exception from an answer's bytes: of a value, or of what it raised."""
        if outcome == Outcome.VALUE:
            try:
                return CODECS[self.codec].loads(bytes(answer)), None
            except Exception as error:
                failure = ResultPickleError(f"the result of {self.name} is no {self.codec}: {error}")
                failure.__cause__ = error
                return None, failure
        text = bytes(answer).decode(errors="replace")
        if outcome == Outcome.FUNCTION_FAILED:
            return None, FunctionLoadError(f"{self.name}: {text}")
        return None, RemoteError(text)


def named(name: str, codec: str = "json") -> NamedFunction:
    """The function that workers offer by this name, to be submitted in the place of a callable.

    Args:
        name: as the workers have it.
        codec: how arguments and results travel: "json" and "msgpack", of which arguments are one array (msgpack needs
            the package of that name); "raw", with one argument and a result of bytes.

    Raises:
        TypeError, ValueError: the name is none, or there is no such codec.
        ImportError: the codec's package is not there.
    """
    if not isinstance(name, str):
        raise TypeError(f"a function's name must be a string, not {name!r}")
    name = checked_text("a function's name", name)
    if codec not in CODECS:
        raise ValueError(f"codec must be one of {', '.join(CODECS)}, not {codec!r}")
    if codec == "msgpack":
        try:
            import msgpack  # noqa: F401  # to fail here rather than at the first call
        except ImportError as error:
            raise ImportError(f"the codec msgpack needs msgpack: {install_hint('msgpack')}") from error
    function = NamedFunction(name, codec)
    if not name or len(function.kind) > _LONGEST_KIND:
        raise ValueError(f"a function's name must have 1 to {_LONGEST_KIND - len(kind_of('', codec))} characters")
    return function


def _dump_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _dump_raw(args: tuple[Any, ...]) -> bytes:
    if len(args) != 1 or not isinstance(args[0], (bytes, bytearray, memoryview)):
        raise TypeError("it must be one, of bytes")
    return bytes(args[0])


def _dump_msgpack(value: Any) -> bytes:
    import msgpack

    packed: bytes = msgpack.packb(value)
    return packed


def _load_msgpack(data: bytes) -> Any:
    import msgpack

    return msgpack.unpackb(data)


CODECS = {
    "json": Codec(_dump_json, json.loads),
    "msgpack": Codec(_dump_msgpack, _load_msgpack),
    "raw": Codec(_dump_raw, bytes),
}
