"""The exceptions of tasks from the bytes of their answers, and the errors of answers that can't be unpickled."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import (
    ArgumentLoadError,
    EnvironmentFailedError,
    FunctionLoadError,
    ObjectNotFoundError,
    RemoteTraceback,
    ResultPickleError,
    TaskTimeoutError,
    WorkerDiedError,
)
from ..protocol.messages import Outcome, Payload
from .load_failures import (
    add_note,
    imported_packages,
    load_failure,
    split_note,
    split_versions,
    this_process,
    with_note,
)
from .package_versions import first_text, local_versions
from .version_differences import Versions, missing_module_hint, result_differences, worker_differences

TEXT_ERRORS: dict[int, type[Exception]] = {
    Outcome.RESULT_FAILED: ResultPickleError,
    Outcome.WORKER_DIED: WorkerDiedError,
    Outcome.TIMED_OUT: TaskTimeoutError,
    Outcome.INPUT_LOST: ObjectNotFoundError,
    Outcome.ENVIRONMENT_FAILED: EnvironmentFailedError,
}
"""The outcomes whose payload is a text, and their errors."""

HostVersions = Callable[[Sequence[str]], Sequence[tuple[str, Versions]]]
"""Returns the names of hosts with their versions of these packages."""

TRACEBACK = "Traceback (most recent call last)"
"""The first words of the traceback in an answer."""

_NOTES_ARE_SHOWN = sys.version_info >= (3, 11)
"""Whether Python prints an exception's notes in tracebacks."""


def no_hosts(_: Sequence[str]) -> Sequence[tuple[str, Versions]]:
    """The HostVersions of a function whose scheduler cannot be asked."""
    return ()


def text_error(kind: type[Exception], text: str, place: str) -> Exception:
    """Return the error of an outcome in TEXT_ERRORS.

    Args:
        kind: the class of the error.
        text: the payload.
        place: where the task has failed; empty: it is not said.
    """
    text, note = split_note(text)
    traceback = ""
    if kind is TaskTimeoutError:  # where the task was when it was stopped
        text, found, rest = text.partition(f"\n{TRACEBACK}")
        traceback = found[1:] + rest
    text = _with_place(text, place)
    error = kind(text if _NOTES_ARE_SHOWN else with_note(text, note))
    if traceback:
        error.__cause__ = RemoteTraceback(with_source_lines(traceback))
    if note:
        add_note(error, note)
    return error


def remote_error(outcome: int, parts: tuple[Any, ...], place: str) -> BaseException:
    """Return the exception of a task, with the worker's traceback as its cause, or as that of its last cause.

    Args:
        outcome: the outcome of the task.
        parts: what `serializer.dump_exception` has pickled.
        place: where the task has failed; empty: it is not said.
    """
    raised: BaseException
    raised, text, *more = parts
    note, failure_text = more or ("", "")
    if isinstance(raised, ModuleNotFoundError) and not failure_text:
        note = "\n".join(filter(None, (note, missing_module_hint(str(raised.name or "")))))
    if note and not _NOTES_ARE_SHOWN:
        text = f"{text}{note}\n"
    cause = RemoteTraceback(_with_place(with_source_lines(text), place))
    last = _last_cause(raised)
    BaseException.__setattr__(last, "__cause__", cause)  # a class may refuse attributes
    if failure_text:
        kind = FunctionLoadError if outcome == Outcome.FUNCTION_FAILED else ArgumentLoadError
        failure_text, there = split_versions(failure_text)
        failed = kind(_with_place(failure_text, place) + worker_differences(there))
        failed.__cause__ = raised
        raised = failed
    if note:
        add_note(raised, note)
    return raised


_FRAME = re.compile(r'( *)File "(.+)", line (\d+)(, in .+)?')


def with_source_lines(text: str) -> str:
    """Return the text of a traceback with the source lines that its host does not have, but this process has.

    These are lines of notebook cells, of `python -c`, and of files of the program that are not on the worker's host.
    """
    lines = text.split("\n")
    parts: list[str] = []
    for line, following in zip(lines, [*lines[1:], ""]):
        parts.append(line)
        frame = _FRAME.fullmatch(line)
        if frame is not None and not following.startswith(frame[1] + "  "):
            source = _source_line(frame[2], int(frame[3]))
            if source:
                parts.append(f"{frame[1]}  {source}")
    return "\n".join(parts)


def _source_line(file: str, number: int) -> str:
    if file == "<string>" and "-c" in sys.orig_argv and not hasattr(sys.modules["__main__"], "__file__"):
        program = sys.orig_argv[sys.orig_argv.index("-c") + 1 :][:1]
        return "".join("".join(program).splitlines()[number - 1 : number]).strip()
    return linecache.getline(file, number).strip()


def _last_cause(error: BaseException) -> BaseException:
    """Return the exception at the end of the chain of causes, which the task's code has made."""
    seen = {id(error)}
    while error.__cause__ is not None and id(error.__cause__) not in seen:
        error = error.__cause__
        seen.add(id(error))
    return error


def unreadable_answer(
    what: str, error: Exception, answer: Payload, place: str, host_versions: HostVersions
) -> ResultPickleError:
    """Return the error of an answer that can't be unpickled.

    Args:
        what: for example "the result of f".
        error: the error that unpickling raised. If the answer is an exception, it gets the worker's traceback.
        answer: the pickle.
        place: where the task has failed; empty: it is not said.
        host_versions: asks for the versions of the hosts.
    """
    text = load_failure(what, f"in this process ({this_process()})", f"{type(error).__name__}: {error}")
    here = local_versions(imported_packages(answer, error))
    differences = result_differences(here, host_versions(list(here)))
    failure = ResultPickleError(_with_place(text, place) + differences)
    failure.__cause__ = error
    traceback = first_text(answer, TRACEBACK) if what.startswith("the exception of ") else ""
    if traceback:
        error.__cause__ = RemoteTraceback(_with_place(traceback, place))
    return failure


def _with_place(text: str, place: str) -> str:
    if not place:
        return text
    return f"{text}({place})\n" if text.endswith("\n") else f"{text} ({place})"
