"""Functions that workers offer by name, in any language, and the codecs of their arguments and results.

Such a function has no bytes. Its kind has codec and name, and the scheduler sends its tasks to workers that offer that
kind. Its exceptions travel as text, with every codec.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..commands.install_hints import install_hint
from ..errors import FunctionLoadError, RemoteError, ResultPickleError
from ..protocol.messages import Outcome, Payload
from ..protocol.utf8_text import checked_text

_MAX_KIND_LENGTH = 256
"""The most characters of a kind that a scheduler takes."""


NAMED_KIND_PREFIX = "named "
"""The beginning of the kinds of such functions."""


def kind_of(name: str, codec: str) -> str:
    """Return the kind of a function, as in the protocol."""
    return f"{NAMED_KIND_PREFIX}{codec} {name}"


class Codec(NamedTuple):
    """How arguments and results of named functions become bytes, and back."""

    dumps: Callable[[Any], bytes]
    """Turns the arguments of a call, a tuple, into bytes. JSON and MessagePack take any value."""
    loads: Callable[[bytes], Any]
    """Turns the bytes of a result into the result."""


class NamedFunction:
    """A function that workers offer by name, for `submit` and `map`. `named` makes it.

    Args:
        name: the name that the workers use.
        codec: the encoding of arguments and results.
    """

    __slots__ = ("codec", "kind", "name")

    def __init__(self, name: str, codec: str) -> None:
        self.name = name
        self.codec = codec
        self.kind = kind_of(name, codec)
        """Its kind, as in the protocol."""

    def __repr__(self) -> str:
        return f"named({self.name!r}, codec={self.codec!r})"

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        raise TypeError(f"{self!r} runs on workers only: pass it to submit or map")

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} can't be pickled: pass it to submit or map, not to graphs or other functions")

    def dump_call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
        """Return the arguments of one call as bytes.

        Raises:
            TypeError: there are keywords, or the codec can't encode an argument.
        """
        if kwargs:
            raise TypeError(f"{self!r} takes positional arguments only, not {', '.join(kwargs)}=")
        try:
            return CODECS[self.codec].dumps(args)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise TypeError(f"{self!r}: the arguments can't be sent as {self.codec}: {error}") from error

    def read_answer(self, outcome: int, answer: Payload) -> tuple[Any, BaseException | None]:
        """Return result and exception of a task from the bytes of its answer. One of them is None.

        Args:
            outcome: a value of `Outcome`.
            answer: the payload of that outcome.
        """
        if outcome == Outcome.VALUE:
            try:
                return CODECS[self.codec].loads(bytes(answer)), None
            except Exception as error:
                failure = ResultPickleError(f"the result of {self.name} is not valid {self.codec}: {error}")
                failure.__cause__ = error
                return None, failure
        text = bytes(answer).decode(errors="replace")
        if outcome == Outcome.FUNCTION_FAILED:
            return None, FunctionLoadError(f"{self.name}: {text}")
        return None, RemoteError(text)


def named(name: str, codec: str = "json") -> NamedFunction:
    """Return a function that workers offer by name. Pass it to `submit` or `map` in place of a callable.

    Args:
        name: the name that the workers use.
        codec: the encoding of arguments and results. `"json"` and `"msgpack"` encode the arguments as one array;
            `"msgpack"` needs the package of that name. `"raw"` takes one argument of bytes and returns bytes.

    Returns:
        A placeholder for the function, which cannot be called here.

    Raises:
        TypeError: the name is not a string.
        ValueError: the name is empty, too long or has lone surrogates, or the codec does not exist.
        ImportError: the package of the codec is not installed.
    """
    if not isinstance(name, str):
        raise TypeError(f"a function's name must be a string, not {name!r}")
    name = checked_text("a function's name", name)
    if codec not in CODECS:
        raise ValueError(f"codec must be one of {', '.join(CODECS)}, not {codec!r}")
    if codec == "msgpack":
        try:
            import msgpack  # noqa: F401  # fails here instead of at the first call
        except ImportError as error:
            raise ImportError(f"the codec msgpack needs msgpack: {install_hint('msgpack')}") from error
    function = NamedFunction(name, codec)
    if not name or len(function.kind) > _MAX_KIND_LENGTH:
        raise ValueError(f"a function's name must have 1 to {_MAX_KIND_LENGTH - len(kind_of('', codec))} characters")
    return function


def _dump_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _dump_raw(args: tuple[Any, ...]) -> bytes:
    if len(args) != 1 or not isinstance(args[0], (bytes, bytearray, memoryview)):
        raise TypeError("pass exactly one, of bytes")
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
