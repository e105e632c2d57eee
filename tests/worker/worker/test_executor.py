"""Runs of one task: bytes in, outcome and bytes out; no exception of a task gets further."""

from __future__ import annotations

import pickle
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest

from scaler_client.errors import ArgumentLoadError, FunctionLoadError, ResultPickleError, SerializerError
from scaler_client.nested.task_host import TaskStoppedError
from scaler_client.pickling import cloudpickle_ext, failed_answers, serializer
from scaler_client.pickling.functions import Function
from scaler_client.pickling.load_failures import add_note
from scaler_client.pickling.retry_policy import RetryingFunction
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Outcome
from scaler_worker.worker.error_text import TRACEBACK_BYTES, bounded_traceback, task_stack
from scaler_worker.worker.executor import Executor

NUMBER = 7


def executor_of(fn: Callable[..., Any] | bytes, name: str = "fn") -> Executor:
    payload = fn if isinstance(fn, bytes) else cloudpickle_ext.dumps(fn)
    return Executor({NUMBER: messages.Function(NUMBER, name, "cloudpickle", payload)})


def run(fn: Callable[..., Any] | bytes, *args: Any, **kwargs: Any) -> tuple[int, Any]:
    """Run one task. Returns outcome and payload."""
    name = getattr(fn, "__qualname__", "fn")
    return executor_of(fn, name).run(NUMBER, serializer.dump_call(args, kwargs))


def seen_by_client(outcome: int, payload: Any) -> tuple[Any, BaseException | None]:
    """The result and the exception that the client's future has."""
    return Function(1, "fn", b"").read_answer(outcome, payload)


def divide(a: float, b: float) -> float:
    return a / b


def keywords_only(*, left: int, right: int = 1) -> int:
    return left - right


def test_a_value() -> None:
    outcome, payload = run(divide, 6, 3)
    assert (outcome, pickle.loads(payload)) == (Outcome.VALUE, 2.0)


def test_keywords() -> None:
    outcome, payload = run(keywords_only, left=5)
    assert (outcome, pickle.loads(payload)) == (Outcome.VALUE, 4)


def test_values_that_only_cloudpickle_can_pickle() -> None:
    outcome, payload = run(lambda x: lambda y: x + y, 3)
    assert outcome == Outcome.VALUE and pickle.loads(payload)(4) == 7


def test_arguments_that_do_not_fit_the_function() -> None:
    _, error = seen_by_client(*run(keywords_only, 1))
    assert isinstance(error, TypeError) and "positional" in str(error)


def test_a_traceback_has_the_frames_of_the_task_only() -> None:
    outcome, payload = run(divide, 1, 0)
    assert outcome == Outcome.EXCEPTION
    value, error = seen_by_client(outcome, payload)
    assert value is None and isinstance(error, ZeroDivisionError)
    text = str(error.__cause__)
    assert "in divide" in text and "return a / b" in text and "ZeroDivisionError" in text
    assert text.count('File "') == 1


def raising_from() -> None:
    try:
        raise KeyError("first")
    except KeyError as error:
        raise ValueError("second") from error


def test_the_traceback_text_has_the_causes() -> None:
    _, error = seen_by_client(*run(raising_from))
    cause = error.__cause__  # type: ignore[union-attr]
    assert isinstance(cause, KeyError) and cause.args == ("first",)
    text = str(cause.__cause__)
    assert "KeyError: 'first'" in text and "direct cause" in text and "ValueError: second" in text


@pytest.mark.parametrize(
    "leave", [lambda: sys.exit(3), lambda: exec("raise KeyboardInterrupt"), lambda: exec("raise GeneratorExit")]
)
def test_exits_are_exceptions_of_the_task(leave: Callable[[], Any]) -> None:
    outcome, payload = run(leave)
    assert outcome == Outcome.EXCEPTION
    _, error = seen_by_client(outcome, payload)
    assert isinstance(error, (SystemExit, KeyboardInterrupt, GeneratorExit))
    if isinstance(error, SystemExit):
        assert error.code == 3


def test_endless_recursion_is_an_exception_of_the_task() -> None:
    def endless() -> Any:
        return endless()

    _, error = seen_by_client(*run(endless))
    assert isinstance(error, RecursionError)


# ------------------------------------------------------------------------------------------------ what can't be pickled


def returns_lock() -> Any:
    return threading.Lock()


def test_a_result_that_can_not_be_pickled_names_function_and_type() -> None:
    outcome, payload = run(returns_lock)
    assert outcome == Outcome.RESULT_FAILED
    text = bytes(payload).decode()
    assert "result of returns_lock" in text and "_thread.lock" in text and "pickle" in text


class KeepsLock(Exception):
    def __init__(self) -> None:
        super().__init__("with a lock")
        self.lock = threading.Lock()


class NeedsTwo(Exception):
    """An exception that pickle alone can't restore."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


def test_an_exception_with_an_attribute_that_can_not_be_pickled_is_returned_without_it() -> None:
    def fail() -> None:
        raise KeepsLock

    outcome, payload = run(fail)
    assert outcome == Outcome.EXCEPTION
    error, text = serializer.loads(payload)
    assert (type(error), str(error), error.lock) == (KeepsLock, "with a lock", None)
    assert "Traceback" in text and "raise KeepsLock" in text


def test_an_exception_with_its_own_init_is_returned() -> None:
    def fail() -> None:
        raise NeedsTwo(1, 2)

    outcome, payload = run(fail)
    assert outcome == Outcome.EXCEPTION
    error, text = serializer.loads(payload)
    assert (type(error), str(error)) == (NeedsTwo, "1 and 2")
    assert "raise NeedsTwo(1, 2)" in text


class RaisesInStr(Exception):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def __str__(self) -> str:
        raise RuntimeError("no text for you")

    def __reduce__(self) -> Any:
        raise RuntimeError("no bytes for you")


def test_an_exception_whose_methods_all_raise() -> None:
    def fail() -> None:
        raise RaisesInStr

    outcome, payload = run(fail)
    assert outcome == Outcome.EXCEPTION
    error, text = serializer.loads(payload)
    assert type(error) is RaisesInStr and "RaisesInStr" in text


class ExitsWhenPickled:
    def __reduce__(self) -> Any:
        sys.exit(1)


class HasNoText:
    def __reduce__(self) -> Any:
        raise RaisesInStr


@pytest.mark.parametrize("kind", [ExitsWhenPickled, HasNoText])
def test_a_result_whose_pickling_raises_or_exits(kind: type) -> None:
    outcome, payload = run(kind)
    assert outcome == Outcome.RESULT_FAILED
    assert kind.__name__ in bytes(payload).decode()


def test_arguments_that_can_not_be_unpickled() -> None:
    outcome, payload = executor_of(divide).run(NUMBER, b"\x80\x05cno_such_module\nthing\n.")
    assert outcome == Outcome.EXCEPTION
    _, error = seen_by_client(outcome, payload)
    assert isinstance(error, ArgumentLoadError) and isinstance(error.__cause__, ModuleNotFoundError)
    assert str(error) == (
        "the arguments of fn can't be unpickled on the worker: ModuleNotFoundError: No module named 'no_such_module'\n"
        "what differs    here     there\n"
        "no_such_module  missing  missing\n"
        "to mend it: no_such_module is missing on both sides: install it on both, or name its file or folder: "
        "Client(modules=[...])"
    )
    assert "no_such_module" in str(error.__cause__.__cause__)


def test_arguments_that_can_not_be_unpickled_may_be_retried() -> None:
    executor = executor_of(RetryingFunction(divide, ImportError))  # type: ignore[arg-type]
    assert executor.run(NUMBER, b"\x80\x05cno_such_module\nthing\n.")[0] == Outcome.RETRYABLE


def test_errors_of_arguments_that_are_no_load_failure() -> None:
    def raises(error: BaseException) -> Any:
        class Raises:
            def __reduce__(self) -> Any:
                return raise_it, (error,)

        return cloudpickle.dumps((Raises(),))

    for raised in (SerializerError("by the user's serializer"), SystemExit(3)):
        _, error = seen_by_client(*executor_of(divide).run(NUMBER, raises(raised)))
        assert type(error) is type(raised) and error.args == raised.args


def raise_it(error: BaseException) -> None:
    raise error


class Odd(Exception):
    """An exception that takes no attributes, has a note of another type, and pickles without both."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(a)

    def __setattr__(self, name: str, value: Any) -> None:
        raise TypeError

    def __reduce__(self) -> Any:
        return Odd, (1, 2)

    def add_note(self, note: str) -> None:
        raise TypeError


@pytest.mark.parametrize("raised", [ValueError(1, 2), Odd(1, 2), KeyboardInterrupt()], ids=repr)
def test_an_exception_has_a_note_that_names_its_task(raised: Any) -> None:
    functions = {NUMBER: messages.Function(NUMBER, "f", "cloudpickle", cloudpickle.dumps(raise_it))}
    executor = Executor(functions, task=lambda: "task f#3 on worker w-1 (host h)")
    _, error = seen_by_client(*executor.run(NUMBER, serializer.dump_call((raised,), {})))
    assert error is not None
    assert BaseException.__getattribute__(error, "__notes__") == ["raised by task f#3 on worker w-1 (host h)"]
    assert error.args == raised.args
    text = "".join(traceback.format_exception(type(error), error, None))
    # Python 3.10 shows no notes, so the text of the remote traceback has it; exceptiongroup's backport shows them too.
    times = 2 if sys.version_info < (3, 11) and "exceptiongroup" in sys.modules else 1
    assert text.count("raised by task f#3 on worker w-1 (host h)") == times


def test_pickling_and_loading_errors_have_the_note_too() -> None:
    note = "raised by task f#3 on worker w-1, host h"
    for payload in (
        cloudpickle.dumps(lambda: (each for each in ())),
        cloudpickle.dumps(raise_what_can_not_be_pickled),
        b"\x80\x05cno_such_module\nthing\n.",
    ):
        functions = {NUMBER: messages.Function(NUMBER, "f", "cloudpickle", payload)}
        executor = Executor(functions, task=lambda: "task f#3 on worker w-1, host h")
        for _ in range(2):  # the second time, the load error is known
            outcome, answer = executor.run(NUMBER, serializer.dump_call((), {}))
            _, error = seen_by_client(outcome, answer)
            assert type(error) in (ValueError, ResultPickleError, FunctionLoadError)
            # Python 3.10 shows no notes: there it is in the text too, or in the remote traceback.
            assert "raised by" not in error.args[0] or sys.version_info < (3, 11)
            assert error.__notes__ == [note]


def raise_what_can_not_be_pickled() -> None:
    raise ValueError(threading.Lock())


def test_without_notes_in_tracebacks_the_remote_one_has_the_note(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under Python 3.10."""
    monkeypatch.setattr(failed_answers, "_NOTES_ARE_SHOWN", False)
    sent = {NUMBER: messages.Function(NUMBER, "f", "cloudpickle", cloudpickle.dumps(raise_it))}
    executor = Executor(sent, task=lambda: "task f#3 on worker w-1, host h")
    _, error = seen_by_client(*executor.run(NUMBER, serializer.dump_call((ValueError(1),), {})))
    assert error is not None and str(error.__cause__).endswith('\nraised by task f#3 on worker w-1, host h\n"""')


class HasNoTraceback(Exception):
    """An exception whose traceback Python can't write."""

    def __getattr__(self, name: str) -> Any:
        raise LookupError(name)


def test_an_exception_whose_traceback_can_not_be_written() -> None:
    outcome, payload = run(raise_it, HasNoTraceback(3))
    _, error = seen_by_client(outcome, payload)
    assert outcome == Outcome.EXCEPTION and type(error) is HasNoTraceback and error.args == (3,)
    assert "in raise_it" in str(error.__cause__) and "HasNoTraceback" in str(error.__cause__)


def test_notes_of_nested_tasks_add_up() -> None:
    error = ValueError("a")
    for note in ("one", "two", "two"):
        add_note(error, note)
    assert error.__notes__ == ["one", "two"]
    error.__notes__ = None
    add_note(error, "three")
    assert error.__notes__ is None, "whatever the user has there stays"


# ------------------------------------------------------------------------------------------------------ trying it again


def test_a_task_is_retried_on_the_named_exceptions() -> None:
    outcome, payload = run(RetryingFunction(divide, (ArithmeticError, OSError)), 1, 0)
    assert outcome == Outcome.RETRYABLE
    error, text = serializer.loads(payload)
    assert isinstance(error, ZeroDivisionError)
    assert "in divide" in text and text.count('File "') == 1


def test_a_retrying_function_returns_and_fails_like_other_functions() -> None:
    retrying = RetryingFunction(divide, (OSError,))
    assert run(retrying, 6, 3)[0] == Outcome.VALUE
    assert run(retrying, 1, 0)[0] == Outcome.EXCEPTION


def test_a_stopped_task_is_not_retried() -> None:
    outcome, payload = run(RetryingFunction(raise_stopped, (BaseException,)))
    assert outcome == Outcome.EXCEPTION and type(serializer.loads(payload)[0]) is TaskStoppedError


# ------------------------------------------------------------------------------------------------------ being stopped


def raise_stopped() -> None:
    raise TaskStoppedError("now")


class StoppedWhilePickled:
    def __reduce__(self) -> Any:
        raise_stopped()


def test_a_stop_while_the_result_is_pickled() -> None:
    outcome, payload = run(StoppedWhilePickled)
    assert outcome == Outcome.EXCEPTION and type(serializer.loads(payload)[0]) is TaskStoppedError


def test_a_stop_while_an_exception_is_pickled() -> None:
    def fail() -> None:
        error = ValueError()
        error.detail = StoppedWhilePickled()  # type: ignore[attr-defined]
        raise error

    executor = executor_of(fail)
    with pytest.raises(TaskStoppedError) as caught:
        executor.run(NUMBER, serializer.dump_call((), {}))
    outcome, payload = executor.stopped(caught.value)
    error, text = serializer.loads(payload)
    assert (outcome, type(error), str(error)) == (Outcome.EXCEPTION, TaskStoppedError, "the task was stopped")
    assert "raise TaskStoppedError" in text


def test_a_task_that_has_swallowed_its_stop_says_where_it_was() -> None:
    stacks = []

    def work() -> None:
        stacks.append(task_stack(sys._getframe()))

    executor = executor_of(divide)
    executor._loaded[NUMBER] = work
    executor.run(NUMBER, serializer.dump_call((), {}))
    outcome, payload, line, text = executor.ignored_stop(stacks[0])
    head, place, code, error = text.splitlines()
    assert head == "Traceback (most recent call last):" and place.endswith(", in work") and "task_stack" in code
    assert error == line == "scaler_client.nested.task_host.TaskStoppedError: the task ignored its stop"
    assert outcome == Outcome.EXCEPTION and type(serializer.loads(payload)[0]) is TaskStoppedError
    assert not task_stack(sys._getframe()), "no task runs here"
    *_, text = executor.ignored_stop(task_stack(None))
    assert text.splitlines()[1] == "  in a function that is not written in Python"


def test_a_stop_while_the_function_is_loaded() -> None:
    executor = executor_of(divide)
    sent = executor._sent[NUMBER]
    executor._sent[NUMBER] = messages.Function(NUMBER, "fn", "cloudpickle", pickle.dumps(StoppedWhenLoaded()))
    with pytest.raises(TaskStoppedError):
        executor.run(NUMBER, serializer.dump_call((6, 3), {}))
    executor._sent[NUMBER] = sent
    assert pickle.loads(executor.run(NUMBER, serializer.dump_call((6, 3), {}))[1]) == 2.0


class StoppedWhenLoaded:
    def __reduce__(self) -> Any:
        return raise_stopped, ()


# ------------------------------------------------------------------------------------------------------------ functions


MISSING = b"\x80\x05cno_such_module\nfunction\n."


def test_a_function_whose_module_is_missing() -> None:
    executor = executor_of(MISSING)
    for _ in range(2):
        outcome, payload = executor.run(NUMBER, serializer.dump_call((), {}))
        assert outcome == Outcome.FUNCTION_FAILED
        _, error = seen_by_client(outcome, payload)
        assert isinstance(error.__cause__, ModuleNotFoundError)  # type: ignore[union-attr]
        assert "no_such_module" in str(error) and "can't be unpickled on the worker" in str(error)


def test_a_function_that_exits_while_it_is_loaded() -> None:
    class Exits:
        def __reduce__(self) -> Any:
            return sys.exit, (1,)

    outcome, payload = run(cloudpickle.dumps(Exits()))
    assert outcome == Outcome.FUNCTION_FAILED
    _, error = seen_by_client(outcome, payload)
    assert isinstance(error.__cause__, SystemExit)  # type: ignore[union-attr]


def test_a_function_is_loaded_once() -> None:
    counted = counting_function()
    executor = executor_of(counted)
    outcomes = [executor.run(NUMBER, serializer.dump_call((), {})) for _ in range(3)]
    assert [pickle.loads(payload) for _, payload in outcomes] == [1, 2, 3]
    executor.forget(NUMBER)
    assert pickle.loads(executor.run(NUMBER, serializer.dump_call((), {}))[1]) == 1
    executor.forget(99)


CALLS: list[None] = []
"""Each loaded function has a list of its own, because it travels by value."""


def counting_function() -> Callable[[], int]:
    def count() -> int:
        CALLS.append(None)
        return len(CALLS)

    return count


def test_a_function_that_was_never_sent() -> None:
    outcome, payload = Executor({}).run(NUMBER, serializer.dump_call((), {}))
    assert outcome == Outcome.FUNCTION_FAILED
    assert isinstance(seen_by_client(outcome, payload)[1].__cause__, KeyError)  # type: ignore[union-attr]


def test_a_function_of_another_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code of another version could end the process."""
    monkeypatch.setattr(serializer, "CLOUDPICKLE_KIND", "cloudpickle 3.11")
    for pickled_by in ("cloudpickle 3.11", "cloudpickle", "mine 3.12"):
        executor = Executor({NUMBER: messages.Function(NUMBER, "f", pickled_by, cloudpickle.dumps(abs))})
        assert executor.run(NUMBER, serializer.dumps((-1,)))[0] == Outcome.VALUE
    executor = Executor({NUMBER: messages.Function(NUMBER, "f", "cloudpickle 3.12", cloudpickle.dumps(abs))})
    outcome, payload = executor.run(NUMBER, serializer.dumps((-1,)))
    error = pickle.loads(payload)[0]
    assert outcome == Outcome.FUNCTION_FAILED
    assert str(error).startswith("it was pickled by Python 3.12, and this worker runs Python 3.11: ")


class Hostile(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    "error, line",
    [
        (ValueError("no such curve"), "ValueError: no such curve"),
        (KeyError("a\nb\x1b[31m"), "KeyError: 'a\\nb\\x1b[31m'"),
        (RuntimeError("two\nlines \x1b[31m"), "RuntimeError: two lines  [31m"),
        (OSError("x" * 10_000), "OSError: " + "x" * 191),
        (ZeroDivisionError(), "ZeroDivisionError"),
        (Hostile(), "tests.worker.worker.test_executor.Hostile: <exception str() failed>"),
    ],
)
def test_the_cause_of_a_failure_in_one_line(error: Exception, line: str) -> None:
    def fail() -> None:
        raise error

    told: list[tuple[str, str]] = []
    function = messages.Function(NUMBER, "fail", "cloudpickle", cloudpickle.dumps(fail))
    Executor({NUMBER: function}, lambda *failure: told.append(failure)).run(NUMBER, serializer.dump_call((), {}))
    ((said, traceback),) = told
    assert said == line
    assert traceback.startswith("Traceback (most recent call last):\n") and ", in fail\n" in traceback
    assert len(traceback.encode()) <= TRACEBACK_BYTES


def test_a_long_traceback_keeps_its_first_line_and_its_end() -> None:
    frame = '  File "z\u00fcrich.py", line {0}, in price\n    return price({0})\n'
    frames = "".join(map(frame.format, range(999)))
    text = bounded_traceback(f"Traceback (most recent call last):\n{frames}ValueError: no such curve\n")
    lines = text.splitlines()
    assert 2500 < len(text.encode()) <= TRACEBACK_BYTES
    assert lines[0] == "Traceback (most recent call last):" and lines[-1] == "ValueError: no such curve"
    assert lines[1].endswith(f"{2 * 999 + 1 - len(lines) + 2:,} lines are left out here]") and lines[2] in frames
    assert len(bounded_traceback("ValueError: " + "\u20ac" * 100_000).encode()) <= TRACEBACK_BYTES
    assert len(bounded_traceback("\u20ac" * 1000 + "\n" + "\u20ac" * 100_000).encode()) <= TRACEBACK_BYTES


def test_other_failures_in_one_line() -> None:
    told: list[str] = []

    def tell(line: str, traceback: str) -> None:
        told.append(line)
        assert traceback.endswith("\n")

    broken = messages.Function(NUMBER, "fn", "cloudpickle", b"no pickle")
    Executor({NUMBER: broken}, tell).run(NUMBER, serializer.dump_call((), {}))
    lock = messages.Function(NUMBER, "lock", "cloudpickle", cloudpickle.dumps(threading.Lock))
    Executor({NUMBER: lock}, tell).run(NUMBER, serializer.dump_call((), {}))
    assert told[0].startswith("the function can't be unpickled: _pickle.UnpicklingError: ") and len(told) == 2
    assert told[1].startswith("the result of lock, of type _thread.lock, can't be pickled: TypeError: ")
