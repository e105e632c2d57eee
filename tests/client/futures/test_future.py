"""TaskFuture alone, in each state: the checks of the standard library's own tests of Future."""

from __future__ import annotations

import concurrent.futures
import concurrent.futures._base
import gc
import logging
import pickle
import re
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.client.stand_ins import (
    FakeIoThread,
    cancelled,
    end_cancelled,
    end_with_exception,
    end_with_value,
    in_threads,
    pending,
    running,
    with_exception,
    with_value,
)

from scaler_client.errors import ClientClosedError, RemoteTraceback, ResultPickleError, WorkerDiedError
from scaler_client.futures import future as future_module
from scaler_client.futures.future import TaskFuture
from scaler_client.protocol.messages import Outcome

STATES = {
    "pending": pending,
    "running": running,
    "cancelled": cancelled,
    "returned": with_value,
    "raised": lambda: with_exception(OSError("no")),
}


def test_it_is_a_standard_future() -> None:
    assert isinstance(pending(), concurrent.futures.Future)


@pytest.mark.parametrize(
    ("state", "done", "is_running", "is_cancelled"),
    [
        ("pending", False, False, False),
        ("running", False, True, False),
        ("cancelled", True, False, True),
        ("returned", True, False, False),
        ("raised", True, False, False),
    ],
)
def test_answers_of_each_state(state: str, done: bool, is_running: bool, is_cancelled: bool) -> None:
    future = STATES[state]()
    assert (future.done(), future.running(), future.cancelled()) == (done, is_running, is_cancelled)


def test_repr_waits_for_the_id_of_a_new_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(future_module, "_TASK_ID_SECONDS", 60)
    future = pending()
    number = threading.Timer(0.01, lambda: setattr(future, "task_id", 17))
    number.start()
    assert " function#17 at " in repr(future)
    assert "function#17" in future._repr_html_()
    number.join()


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("pending", "state=pending>"),
        ("running", "state=running>"),
        ("cancelled", "state=cancelled>"),
        ("returned", "state=finished returned int>"),
        ("raised", "state=finished raised OSError>"),
    ],
)
def test_repr(state: str, shown: str) -> None:
    assert re.fullmatch(f"<TaskFuture function at 0x[0-9a-f]+ {shown}", repr(STATES[state]()))


# --------------------------------------------------------------------------------------------------------------- cancel


@pytest.mark.parametrize("state", ["running", "returned", "raised"])
def test_running_and_done_tasks_are_not_cancelled(state: str) -> None:
    future = STATES[state]()
    before = future._state
    assert future.cancel() is False
    assert future._state == before


def test_cancel_of_a_pending_task_asks_the_scheduler() -> None:
    io_thread = FakeIoThread(grants_cancel=True)
    future = pending(io_thread)
    assert future.cancel() is True
    assert future.cancelled() and future.done()
    assert future.cancel() is True
    assert io_thread.cancels == 1


def test_cancel_that_the_scheduler_refuses() -> None:
    future = pending(FakeIoThread(grants_cancel=False))
    assert future.cancel() is False
    assert not future.done()
    end_with_value(future, 1)
    assert future.result(0) == 1


def test_a_cancelled_future_raises() -> None:
    future = cancelled()
    for ask in (future.result, future.exception):
        with pytest.raises(concurrent.futures.CancelledError):
            ask(timeout=0)


@pytest.mark.parametrize(
    ("answer", "text"),
    [(b"", "task function#3 was cancelled"), (b"the client has left", "the client has left")],
)
def test_a_cancelled_future_says_why(answer: bytes, text: str) -> None:
    future = pending()
    future.task_id = 3
    future.resolve(3, Outcome.CANCELLED, answer)
    for ask in (future.result, future.exception):
        with pytest.raises(concurrent.futures.CancelledError, match=f"^{text}$"):
            ask()


def test_a_cancelled_future_says_where_its_task_was_stopped() -> None:
    future = pending()
    future.task_id = 3
    future.resolve(3, Outcome.CANCELLED, b"Traceback (most recent call last):\n  here\n")
    with pytest.raises(concurrent.futures.CancelledError, match="^task function#3 was cancelled$") as raised:
        future.result()
    assert "  here\n" in str(raised.value.__cause__)


# ------------------------------------------------------------------------------------------------- result and exception


@pytest.mark.parametrize("state", ["pending", "running"])
@pytest.mark.parametrize("timeout", [0, 0.001, -1])
def test_a_timeout_raises(state: str, timeout: float) -> None:
    future = STATES[state]()
    for ask in (future.result, future.exception):
        with pytest.raises(concurrent.futures.TimeoutError) as caught:
            ask(timeout=timeout)
        name = future._short_label()
        assert str(caught.value) == f"the result of {name} is not there after {max(0, timeout):.3g} s"
        with pytest.raises(concurrent.futures.TimeoutError):
            ask(timeout)


def test_timeouts_are_passed_to_the_wait() -> None:
    began = time.monotonic()
    with pytest.raises(concurrent.futures.TimeoutError):
        pending().result(timeout=0.05)
    assert time.monotonic() - began >= 0.045


def test_a_value() -> None:
    future = with_value([1, {"a": None}])
    assert future.result(0) == [1, {"a": None}]
    assert future.result() is future.result()
    assert future.exception() is None


@pytest.mark.parametrize("value", [None, 0, "", b"", (), False])
def test_falsy_values(value: Any) -> None:
    future = with_value(value)
    assert future.result(0) == value
    assert future.exception(0) is None


def test_an_exception() -> None:
    future = with_exception(OSError(2, "no such thing"))
    with pytest.raises(OSError, match="no such thing") as raised:
        future.result(timeout=0)
    assert future.exception(0) is raised.value
    cause = raised.value.__cause__
    assert isinstance(cause, RemoteTraceback) and "remote frames" in str(cause)


def test_an_exception_can_be_raised_again_and_again() -> None:
    future = with_exception(ValueError("no"))
    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            future.result()


class FrozenError(Exception):
    """An exception whose attributes cannot be set, like a frozen dataclass."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"can't set {name}")


def test_an_exception_without_settable_attributes() -> None:
    with pytest.raises(FrozenError) as raised:
        with_exception(FrozenError("frozen")).result(0)
    assert isinstance(raised.value.__cause__, RemoteTraceback)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_exceptions_that_are_not_errors(error: BaseException) -> None:
    future = with_exception(error)
    assert type(future.exception(0)) is type(error)
    with pytest.raises(type(error)):
        future.result(0)


class PlainError(Exception):
    pass


def test_no_cycle_keeps_the_exception_alive() -> None:
    future = with_exception(PlainError())
    try:
        future.result(0)
    except PlainError as error:
        reference = weakref.ref(error)
    gc.disable()
    try:
        del future
        assert reference() is None
    finally:
        gc.enable()


def test_an_answer_that_cannot_be_unpickled() -> None:
    future = pending()
    future.resolve(0, Outcome.VALUE, b"\x80garbage")
    with pytest.raises(ResultPickleError, match="^the result of function can.t be unpickled in this process .host "):
        future.result(0)


def test_outcomes_with_a_text() -> None:
    died, unpicklable = pending(), pending()
    died.resolve(0, Outcome.WORKER_DIED, "signal 9 – twice".encode())
    unpicklable.resolve(0, Outcome.RESULT_FAILED, b"a lock")
    with pytest.raises(WorkerDiedError, match="signal 9 – twice"):
        died.result(0)
    with pytest.raises(ResultPickleError, match="a lock"):
        unpicklable.result(0)


def test_an_error_of_the_client() -> None:
    future = pending()
    error = ConnectionError("gone")
    future.fail(0, error)
    assert future.exception(0) is error
    assert future.done() and not future.cancelled()


def test_only_the_first_outcome_counts() -> None:
    future = with_value(1)
    end_with_value(future, 2)
    end_cancelled(future)
    future.fail(0, OSError())
    future.start()
    assert future.result(0) == 1 and not future.running()
    gone = cancelled()
    end_with_value(gone, 2)
    assert gone.cancelled()


def test_a_wait_that_could_never_end_raises() -> None:
    io_thread = FakeIoThread()
    io_thread.problem = ClientClosedError("the client is disconnected")
    for ask in (pending(io_thread).result, pending(io_thread).exception):
        with pytest.raises(ClientClosedError, match="disconnected"):
            ask()


def test_a_future_cannot_be_pickled() -> None:
    with pytest.raises(TypeError, match="pass its result"):
        pickle.dumps(pending())


# ------------------------------------------------------------------------------------------------------ waiting threads


@pytest.mark.parametrize("end", [end_with_value, end_cancelled, lambda future: end_with_exception(future, OSError())])
def test_many_threads_wait_for_one_future(end: Any) -> None:
    future = pending()
    seen: list[str] = []

    def wait(number: int) -> None:
        if number == 0:
            end(future)
        try:
            seen.append(str(future.result(20)))
        except (OSError, concurrent.futures.CancelledError) as error:
            seen.append(type(error).__name__)

    in_threads(16, wait)
    assert len(seen) == 16 and len(set(seen)) == 1


# ------------------------------------------------------------------------------------------------------------ callbacks


@pytest.mark.parametrize("end", [end_with_value, end_cancelled, lambda future: end_with_exception(future, OSError())])
def test_a_callback_is_called_once_with_the_future(end: Any) -> None:
    future = pending()
    called: list[Any] = []
    future.add_done_callback(called.append)
    assert called == []
    end(future)
    assert called == [future] and called[0].done()


@pytest.mark.parametrize("state", ["cancelled", "returned", "raised"])
def test_a_callback_added_late_is_called_at_once(state: str) -> None:
    future = STATES[state]()
    called: list[Any] = []
    future.add_done_callback(called.append)
    assert called == [future]


def test_callbacks_run_in_the_order_they_were_added() -> None:
    future = pending()
    called: list[int] = []
    for number in range(50):
        future.add_done_callback(lambda _, number=number: called.append(number))
    end_with_value(future)
    assert called == list(range(50))


def test_a_callback_that_raises_is_logged_and_the_others_run(caplog: pytest.LogCaptureFixture) -> None:
    future = pending()
    called: list[str] = []

    def fail(_: Any) -> None:
        called.append("failing")
        raise RuntimeError("callback went wrong")

    future.add_done_callback(lambda _: called.append("first"))
    future.add_done_callback(fail)
    future.add_done_callback(lambda _: called.append("last"))
    with caplog.at_level(logging.ERROR):
        end_with_value(future)
        future.add_done_callback(fail)
    assert called == ["first", "failing", "last", "failing"]
    assert caplog.text.count("exception calling callback") == 2 and "callback went wrong" in caplog.text


def test_a_callback_may_use_the_future() -> None:
    future = pending()
    seen: list[Any] = []

    def use(done: TaskFuture[Any]) -> None:
        seen.append(done.result(0))
        done.add_done_callback(lambda again: seen.append(again.exception(0)))

    future.add_done_callback(use)
    end_with_value(future, "value")
    assert seen == ["value", None]


def test_callbacks_of_a_cancel_run_before_it_returns_or_soon_after() -> None:
    future = pending()
    called = threading.Event()
    future.add_done_callback(lambda _: called.set())
    assert future.cancel()
    assert called.wait(10)


def test_force_is_converted_in_the_calling_thread() -> None:
    class Hostile:
        def __bool__(self) -> bool:
            raise LookupError("hostile")

    io_thread = FakeIoThread()
    with pytest.raises(LookupError, match="hostile"):
        pending(io_thread).cancel(force=Hostile())  # type: ignore[arg-type]
    assert io_thread.cancels == 0, "the I/O thread never sees it"


# ---------------------------------------------------------------------------------- conditions that no thread releases


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(future_module, "HOLDER_CHECK_SECONDS", 0.01)


def test_interrupted_acquisition_does_not_hang_the_io_thread(soon: None) -> None:
    """After Ctrl-C in the loop of `concurrent.futures.wait` this thread holds the condition, and never releases it."""
    future = pending()
    concurrent.futures._base._AcquireFutures([future]).__enter__()  # type: ignore[attr-defined]
    with ThreadPoolExecutor(1) as io_thread:
        io_thread.submit(end_with_value, future, 7).result(60)
        io_thread.submit(future.run_callbacks).result(60)
    assert future.result(0) == 7
    assert concurrent.futures.wait([future], 60).done == {future}


def test_condition_of_an_ended_thread_does_not_hang_the_io_thread(soon: None) -> None:
    future = pending()
    holder = threading.Thread(target=future._condition.acquire)
    holder.start()
    holder.join()
    end_with_value(future, 7)
    assert future.result(0) == 7


def test_io_thread_waits_for_a_slow_function_of_the_standard_library(
    soon: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    future = pending()
    checks: list[bool] = []
    is_holding, may_go_on, has_checked = threading.Event(), threading.Event(), threading.Event()
    install, is_abandoned = concurrent.futures._base._create_and_install_waiters, future_module.is_abandoned  # type: ignore[attr-defined]

    def slow(*arguments: Any) -> Any:
        is_holding.set()
        assert may_go_on.wait(60)
        return install(*arguments)

    def check(condition: threading.Condition) -> bool:
        checks.append(is_abandoned(condition))
        if len(checks) == 3:
            has_checked.set()
        return checks[-1]

    monkeypatch.setattr(concurrent.futures._base, "_create_and_install_waiters", slow)
    monkeypatch.setattr(future_module, "is_abandoned", check)
    with ThreadPoolExecutor(2) as threads:
        waiting = threads.submit(concurrent.futures.wait, [future], 60)
        assert is_holding.wait(60)
        resolving = threads.submit(end_with_value, future, 7)
        assert has_checked.wait(60)
        assert not any(checks) and not future.done()
        may_go_on.set()
        resolving.result(60)
        assert waiting.result(60).done == {future}
