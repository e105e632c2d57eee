"""Functions that the workers of a cluster export by name (`--offer`), for clients in any language.

Each function is exported for every codec: the caller chooses the codec of arguments and result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

from scaler_client.nested import task_host
from scaler_client.pickling.named_function import CODECS, NAMED_KIND_PREFIX, kind_of
from scaler_client.protocol.messages import Outcome, Payload
from scaler_worker.fork_server.preload import PreloadError, find
from scaler_worker.objects.cache import InputLostError
from scaler_worker.worker.error_text import bounded_traceback, describe_error, error_line, traceback_text
from scaler_worker.worker.forked_child import end_process

ExportedCall = Callable[[Payload], tuple[int, Payload]]
"""Takes the arguments as bytes; returns the outcome and its payload."""


def exported_kinds(names: Iterable[str]) -> list[str]:
    """The protocol's names of these functions, one for each codec, for a hello."""
    codecs = [codec for codec in CODECS if codec != "msgpack" or find_spec("msgpack") is not None]
    return [kind_of(name, codec) for name in names for codec in codecs]


class ExportedFunctions:
    """The exported functions of one worker.

    Args:
        places: `module:function` of each function, by the name under which it is exported.
        inputs: returns the bytes of each object that the running task reads.
        report_failure: called with one line that says why the task has failed, and with its traceback.
    """

    def __init__(
        self,
        places: Mapping[str, str],
        inputs: Callable[[], Sequence[bytes]] = lambda: (),
        report_failure: Callable[[str, str], None] = lambda line, traceback: None,
    ) -> None:
        self._places = places
        self._inputs = inputs
        self._report_failure = report_failure
        self._functions: dict[str, Callable[..., Any]] = {}

    def load(self) -> None:
        """Import all of them.

        Raises:
            PreloadError: a function does not exist, its module fails, or it can't be called.
        """
        for name, place in self._places.items():
            function = find("--offer", place)
            if not callable(function):
                raise PreloadError(f"--offer {place}") from TypeError(f"a {type(function).__name__} can't be called")
            self._functions[name] = function

    def find(self, kind: str) -> ExportedCall:
        """Find what runs a task whose function has this kind, for example "named json price"."""
        codec, _, name = kind.removeprefix(NAMED_KIND_PREFIX).partition(" ")
        if codec not in CODECS or name not in self._functions:
            return partial(self._refuse, f"this worker does not offer {kind}")
        return partial(self._run, name, codec, self._functions[name])

    def _refuse(self, text: str, _payload: Payload) -> tuple[int, Payload]:
        self._report_failure(text, "")
        return Outcome.FUNCTION_FAILED.value, text.encode()

    def _run(self, name: str, codec: str, function: Callable[..., Any], payload: Payload) -> tuple[int, Payload]:
        try:
            value = function(*_arguments(codec, payload, self._inputs()))
        except InputLostError as error:
            self._report_failure(error_line(error), "")
            return Outcome.INPUT_LOST.value, f"{name}: {error}".encode(errors="replace")
        except BaseException as error:
            if task_host.is_forked_by_task:
                end_process(name, error)
            traceback = traceback_text(error)
            self._report_failure(error_line(error), bounded_traceback(traceback))
            return Outcome.EXCEPTION.value, f"{describe_error(error)}\n\n{traceback}".encode(errors="replace")
        try:
            return Outcome.VALUE.value, CODECS[codec].dumps((value,) if codec == "raw" else value)
        except BaseException as error:
            reason = describe_error(error)
            text = f"the result of {name}, of type {type(value).__name__}, can't be sent as {codec}: {reason}"
            self._report_failure(text, bounded_traceback(traceback_text(error)))
            return Outcome.RESULT_FAILED.value, text.encode(errors="replace")


def _arguments(codec: str, payload: Payload, inputs: Sequence[bytes]) -> Iterable[Any]:
    """Decode the arguments and the inputs, which follow them.

    Raises:
        TypeError: they are not an array.
        Exception: the codec can't decode the bytes.
    """
    if codec == "raw":
        return (b"".join([payload, *inputs]),)
    loads = CODECS[codec].loads
    value = loads(bytes(payload))
    if not isinstance(value, list):
        raise TypeError(f"the arguments must be an array, not {type(value).__name__}")
    return [*value, *map(loads, inputs)]
