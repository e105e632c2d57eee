"""Bad input and misbehaving tasks, with real processes."""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
import time
from typing import Any

import cloudpickle
import pytest

from scaler_client import (
    ArgumentLoadError,
    Client,
    FunctionLoadError,
    ResultPickleError,
    TaskTimeoutError,
    WorkerDiedError,
)

# Workers cannot import the tests: functions of this module are pickled by value, as those of __main__ are.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 30


def square(x: int) -> int:
    return x * x


class Unpicklable:
    def __reduce__(self) -> Any:
        raise RuntimeError("not me")


def test_an_argument_that_cannot_be_pickled(client: Client) -> None:
    with pytest.raises(TypeError, match="argument 1 of type .*lock"):
        client.submit(print, 1, threading.Lock())
    with pytest.raises(TypeError, match="argument 'guard' of type .*lock"):
        client.submit(print, guard=threading.Lock())
    with pytest.raises(TypeError, match="argument 0 of type generator"):
        client.map(print, [((i for i in range(3)),)])


def test_a_function_that_is_not_callable(client: Client) -> None:
    with pytest.raises(TypeError, match="not callable"):
        client.submit(3)  # type: ignore[arg-type]


def test_a_function_that_cannot_be_pickled(client: Client) -> None:
    lock = threading.Lock()
    with pytest.raises(TypeError, match="function .*lambda.* can't be pickled"):
        client.submit(lambda: lock)


def test_results_and_exceptions_that_cannot_be_pickled(client: Client) -> None:
    def fail() -> None:
        error = ValueError("kept a lock")
        error.lock = threading.Lock()  # type: ignore[attr-defined]
        raise error

    with pytest.raises(ResultPickleError, match=r"result of Unpicklable, of type .*Unpicklable, can't be pickled"):
        client.submit(Unpicklable).result(SECONDS)
    with pytest.raises(ValueError, match="kept a lock") as raised:
        client.submit(fail).result(SECONDS)
    assert raised.value.lock is None  # type: ignore[attr-defined]
    with pytest.raises(ResultPickleError):
        client.map(Unpicklable, [()])
    assert client.submit(square, 2).result(SECONDS) == 4


def test_the_traceback_shows_the_remote_frames(client: Client) -> None:
    def inner(x: int) -> float:
        return 1 / x

    def outer(x: int) -> float:
        return inner(x)

    with pytest.raises(ZeroDivisionError) as raised:
        client.submit(outer, 0).result(SECONDS)
    text = str(raised.value.__cause__)
    assert text.index("in outer") < text.index("in inner") < text.index("ZeroDivisionError")


ELSEWHERE = r"can't be unpickled on worker \S+ \(host \S+, CPython \S+, \S+\): ModuleNotFoundError: No module named"


def test_a_result_whose_module_is_missing_in_the_client(client: Client) -> None:
    def make(fails: bool) -> Any:
        import sys
        import types

        module = types.ModuleType("only_there")
        sys.modules["only_there"] = module
        exec("class Thing(Exception): pass", vars(module))
        if fails:
            raise module.Thing
        return module.Thing()

    with pytest.raises(ResultPickleError) as raised:
        client.submit(make, False).result(SECONDS)
    assert str(raised.value).startswith(
        "the result of test_a_result_whose_module_is_missing_in_the_client.<locals>.make can't be "
    )
    first, *rest = str(raised.value).splitlines()
    assert "in this process (host " in first
    assert rest[0].split() == ["what", "differs", "here", socket.gethostname()]
    assert rest[1].split() == ["only_there", "missing", "unknown"]
    assert rest[2] == "to mend it: make only_there importable here, or return plain data from the task"
    assert isinstance(raised.value.__cause__, ModuleNotFoundError)
    with pytest.raises(
        Exception, match="this stands for an exception of class only_there.Thing: ModuleNotFound"
    ) as stand_in:
        client.submit(make, True).result(SECONDS)
    assert type(stand_in.value) is Exception and "in make" in str(stand_in.value.__cause__)


def test_an_exception_names_its_task_and_place(client: Client) -> None:
    def half(x: int) -> float:
        return 1 / (x - 4500)

    def notes(error: BaseException) -> str:
        return "\n".join(error.__notes__)

    where = r"on worker \S+, host \S+"
    error = client.options(name="mine").submit(half, 4500).exception(SECONDS)
    assert error is not None and error.args == ("division by zero",)
    assert re.fullmatch(rf"raised by task mine#\d+ {where}", notes(error))
    error = client.options(name="mine").submit(lambda: (each for each in "ab")).exception(SECONDS)
    assert isinstance(error, ResultPickleError) and re.fullmatch(rf"raised by task mine#\d+ {where}", notes(error))
    error = client.options(name="mine", timeout=0.1).submit(time.sleep, SECONDS).exception(SECONDS)
    assert isinstance(error, TaskTimeoutError) and re.fullmatch(r"of task mine#\d+", notes(error))
    with pytest.raises(ZeroDivisionError) as raised:
        client.get({"a": (half, 4500), "b": (abs, "a")}, ["b"])
    assert re.fullmatch(rf"raised by task \S+half#\d+ {where}\nof node 'a' of the graph", notes(raised.value))
    with pytest.raises(ZeroDivisionError) as raised:
        client.map(half, [(x,) for x in range(9000)])
    assert re.fullmatch(rf"raised by task \S+half#\d+ {where}\nof item 4500 of map", notes(raised.value))
    for chunksize in (1, 2):
        with pytest.raises(ZeroDivisionError) as raised:
            list(client.executor().map(half, range(4497, 4505), chunksize=chunksize))
        assert notes(raised.value).endswith("\nof item 3 of map")


def test_a_module_that_is_missing_on_the_worker(client: Client, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_here.py").write_text("def function():\n    return 1\n\nclass Thing:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here  # type: ignore[import-not-found]

    (tmp_path / "only_here.py").unlink()  # as on another machine
    for _ in range(2):
        with pytest.raises(FunctionLoadError, match=f"^function {ELSEWHERE} 'only_here'\nwhat differs ") as raised:
            client.submit(only_here.function).result(SECONDS)
        assert isinstance(raised.value.__cause__, ModuleNotFoundError)
    with pytest.raises(ArgumentLoadError, match=f"^the arguments of print {ELSEWHERE} 'only_here'\nwhat ") as failed:
        client.submit(print, only_here.Thing()).result(SECONDS)
    assert isinstance(failed.value.__cause__, ModuleNotFoundError)
    assert "only_here" in str(failed.value.__cause__.__cause__)
    assert re.search(r"\nonly_here +\S+only_here.py +missing\n", str(failed.value))
    assert re.search(
        r"\nto mend it: only_here is a module of your own: Client\(modules=\['\S+'\]\) ", str(failed.value)
    )
    with pytest.raises(ArgumentLoadError):
        client.map(print, [(1,), (only_here.Thing(),)])
    assert client.submit(square, 2).result(SECONDS) == 4


# ------------------------------------------------------------------------------------------- tasks that leave, or print


@pytest.mark.parametrize("code", [0, 3, "text", None])
def test_sys_exit_in_a_task(client: Client, code: Any) -> None:
    pid = client.submit(os.getpid).result(SECONDS)
    error = client.submit(sys.exit, code).exception(SECONDS)
    assert isinstance(error, SystemExit) and error.code == code
    assert pid in {client.submit(os.getpid).result(SECONDS) for _ in range(20)}


def test_os_exit_in_a_task(client: Client) -> None:
    future = client.submit(os._exit, 9)
    beside = [client.submit(square, i) for i in range(100)]
    with pytest.raises(WorkerDiedError, match=r"_exit#\d+: the worker died in each of 4 attempts: .*exit code 9"):
        future.result(SECONDS)
    assert [each.result(SECONDS) for each in beside] == [i * i for i in range(100)]


def test_a_task_that_raises_keyboard_interrupt(client: Client) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    assert isinstance(client.submit(interrupt).exception(SECONDS), KeyboardInterrupt)
    assert client.submit(square, 2).result(SECONDS) == 4


def test_text_that_is_no_utf_8_does_not_end_a_client(client: Client) -> None:
    """Neither this client nor the clients in tasks, which share the connection of their worker."""

    def parent(client: Client, name: str) -> tuple[int, str, str]:
        def child(x: int) -> int:
            return x * x

        child.__qualname__ = name
        future = client.submit(child, 3)
        said = []
        for call in (lambda: client.options(name=name), lambda: client.send_object(1, name=name)):
            try:
                call()
            except ValueError as error:
                said.append(str(error).split(",")[0])
        return future.result(SECONDS), said[0], said[1]

    name = os.fsdecode(b"\xff")
    refused = "name must be text that UTF-8 can encode", "an object's name must be text that UTF-8 can encode"
    for call in (lambda: parent(client, name), lambda: client.submit(parent, client, name).result(SECONDS)):
        assert call() == (9, *refused)
    parent.__qualname__ = name
    assert client.submit(parent, client, name).result(SECONDS) == (9, *refused)
