"""Functions that a cluster's workers offer by name (`--offer`), for clients in any language.

Each is offered once for every codec: which one its arguments and result travel by, is the caller's to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

from scaler_client.nested import task_host
from scaler_client.pickling.named_function import CODECS, NAMED_KIND_PREFIX, kind_of
from scaler_client.protocol.messages import Outcome, Payload
from scaler_worker.fork_server.preload import PreloadError, find
from scaler_worker.worker.error_text import bounded_traceback, describe_error, error_line, traceback_text
from scaler_worker.worker.forked_child import end_process

ExportedCall = Callable[[Payload], tuple[int, Payload]]
"""Arguments in, outcome and its payload out."""


def exported_kinds(names: Iterable[str]) -> list[str]:
    """What the protocol calls the functions of these names, for a hello."""
    codecs = [codec for codec in CODECS if codec != "msgpack" or find_spec("msgpack") is not None]
    return [kind_of(name, codec) for name in names for codec in codecs]


class ExportedFunctions:
    """
    Args:
        places: where each function is, `module:function`, by the name that it is offered under.
        reads_objects: whether the task that runs reads some.
        report_failure: called with one line that says why the task has failed, and with its traceback.
    """

    def __init__(
        self,
        places: Mapping[str, str],
        reads_objects: Callable[[], bool] = lambda: False,
        report_failure: Callable[[str, str], None] = lambda line, traceback: None,
    ) -> None:
        self._places = places
        self._reads_objects = reads_objects
        self._report_failure = report_failure
        self._functions: dict[str, Callable[..., Any]] = {}

    def load(self) -> None:
        """Import all of them.

        Raises:
            PreloadError: one is not there, its module fails, or it is nothing to be called.
        """
        for name, place in self._places.items():
            function = find("--offer", place)
            if not callable(function):
                raise PreloadError(f"--offer {place}") from TypeError(f"a {type(function).__name__} can't be called")
            self._functions[name] = function

    def find(self, kind: str) -> ExportedCall:
        """What runs a task of this kind of function."""
        codec, _, name = kind.removeprefix(NAMED_KIND_PREFIX).partition(" ")
        if codec not in CODECS or name not in self._functions:
            return partial(self._refuse, f"this worker does not offer {kind}")
        return partial(self._run, name, codec, self._functions[name])

    def _refuse(self, text: str, _payload: Payload) -> tuple[int, Payload]:
        self._report_failure(text, "")
        return Outcome.FUNCTION_FAILED.value, text.encode()

    def _run(self, name: str, codec: str, function: Callable[..., Any], payload: Payload) -> tuple[int, Payload]:
        try:
            if self._reads_objects():
                raise TypeError(f"{name} is called by name: such functions read no objects")
            value = function(*_arguments(codec, payload))
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


def _arguments(codec: str, payload: Payload) -> Iterable[Any]:
    """Raises what the codec does with bytes that are none of its own, and TypeError where they are no array."""
    value = CODECS[codec].loads(bytes(payload))
    if codec == "raw":
        return (value,)
    if not isinstance(value, list):
        raise TypeError(f"the arguments must be an array, not {type(value).__name__}")
    return value
