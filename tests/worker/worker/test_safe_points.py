"""The points where a task may be interrupted: a stack of frames in, a decision out."""

from __future__ import annotations

import importlib.util
import queue
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Any

import pytest

from scaler_worker.worker.executor import Executor
from scaler_worker.worker.safe_points import Place, place_of, stack, was_raised_unsafely

SAFE, SHARED, IMPORT = Place.SAFE, Place.SHARED, Place.IMPORT


def look() -> Place:
    """The kind of place of the caller."""
    return place_of(stack(sys._getframe(1)))


def frame_of(module: str, called: Callable[[], Any], name: str = "f") -> Callable[[], Any]:
    """A function of this module that calls another one."""
    namespace: dict[str, Any] = {"__name__": module, "called": called}
    exec(f"def {name}(): return called()", namespace)
    made: Callable[[], Any] = namespace[name]
    return made


def nested(*modules: str) -> Place:
    """The kind of place of a task's stack with frames of these modules, the innermost first."""
    namespace: dict[str, Any] = {"__name__": modules[0], "stack": stack, "place_of": place_of, "frame": sys._getframe}
    exec("def f(): return place_of(stack(frame()))", namespace)
    call = namespace["f"]
    for module in modules[1:]:
        call = frame_of(module, call)
    return in_executor(call)


def in_executor(call: Callable[[], Any]) -> Place:
    found: list[Place] = []
    executor = Executor({})
    executor._loaded[1] = lambda: found.append(call())
    from scaler_client.pickling.serializer import dump_call

    outcome, payload = executor.run(1, dump_call((), {}))
    assert outcome == 0, payload
    return found[0]


@pytest.mark.parametrize(
    ("modules", "place"),
    [
        (("__main__",), SAFE),
        (("someones.module", "__main__"), SAFE),
        (("json.decoder", "json", "__main__"), SAFE),
        (("threading", "__main__"), SHARED),
        (("_weakrefset", "threading", "__main__"), SHARED),
        (("json", "logging.handlers", "logging", "__main__"), SHARED),
        (("contextlib", "__main__"), SHARED),
        # Code of the task that library code calls: it may raise anyway.
        (("__main__", "logging", "logging", "__main__"), SAFE),
        (("__main__", "scaler_client.api.submit", "__main__"), SAFE),
        (("scaler_client.api.submit", "__main__"), SHARED),
        (("zmq.sugar.socket", "scaler_client.net.wakeup", "__main__"), SHARED),
        (("cloudpickle.cloudpickle", "scaler_client.api.submit", "__main__"), SHARED),
        (("scaler_worker.output.streams", "__main__"), SHARED),
        (("scaler_client.pickling.serializer",), SAFE),
        (("cloudpickle.cloudpickle", "pickle", "scaler_client.pickling.serializer"), SAFE),
        (("importlib._bootstrap", "__main__"), IMPORT),
        (("_frozen_importlib_external", "__main__"), IMPORT),
        (("numpy", "importlib._bootstrap", "importlib._bootstrap", "__main__"), IMPORT),
        (("threading", "numpy", "importlib._bootstrap_external", "__main__"), IMPORT),
        (("importlib", "__main__"), SHARED),
    ],
)
def test_the_kind_of_place_of_a_stack(modules: tuple[str, ...], place: Place) -> None:
    assert nested(*modules) is place


def test_a_finalizer_counts_as_an_import() -> None:
    assert in_executor(frame_of("__main__", look, "__del__")) is IMPORT


def test_frames_below_the_executor_do_not_count() -> None:
    assert frame_of("importlib._bootstrap", lambda: nested("__main__"))() is SAFE


def test_an_import_of_the_tasks_own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "module_that_looks.py").write_text(
        "import sys\nfrom scaler_worker.worker.safe_points import place_of, stack\n"
        "PLACE = place_of(stack(sys._getframe()))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def import_it() -> Place:
        import module_that_looks  # type: ignore[import-not-found]

        place: Place = module_that_looks.PLACE
        return place

    assert in_executor(import_it) is IMPORT
    assert in_executor(lambda: importlib.util.find_spec("json") and look()) is SAFE


class Blocked:
    """A thread that waits in the function that is called with it."""

    def __init__(self, wait: Callable[[], Any]) -> None:
        self._thread = threading.Thread(target=wait)

    def place(self) -> Place:
        return place_of(stack(sys._current_frames()[self._thread.ident or 0]))

    def __enter__(self) -> Blocked:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()


def test_a_thread_that_waits_is_in_shared_code() -> None:
    event, items, lock = threading.Event(), queue.Queue[int](), threading.Lock()
    lock.acquire()
    waits: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
        (event.wait, event.set),
        (items.get, lambda: items.put(1)),
        (threading.Condition(lock).__enter__, lock.release),
    ]
    for wait, end in waits:
        with Blocked(wait) as blocked:
            try:
                place = blocked.place()
            finally:
                end()
        assert place is SHARED


def test_whether_an_exception_was_raised_at_a_safe_point() -> None:
    """Frames that have ended count, and so does an exception that was caught within the import."""

    def fail() -> None:
        raise KeyError

    def catch(call: Callable[[], Any] = fail) -> KeyError:
        try:
            call()
        except KeyError as error:
            return error
        raise AssertionError

    def in_generator() -> None:
        tuple(fail() for _ in (1, 2))

    assert not was_raised_unsafely(catch())
    assert not was_raised_unsafely(catch(in_generator))
    assert was_raised_unsafely(catch(frame_of("importlib._bootstrap", fail)))
    assert was_raised_unsafely(catch(frame_of("importlib._bootstrap", in_generator)))
    assert was_raised_unsafely(frame_of("importlib._bootstrap", catch)())


def test_an_exception_from_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python leaves the import's own frames out of the traceback."""
    (tmp_path / "module_that_fails.py").write_text("raise KeyError\n")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        import module_that_fails  # type: ignore[import-not-found]  # noqa: F401
    except KeyError as error:
        assert "importlib._bootstrap" not in [frame.f_globals["__name__"] for frame, _ in walk_tb(error.__traceback__)]
        assert was_raised_unsafely(error)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="this Python does not raise there")
def test_an_exception_at_the_start_of_a_function() -> None:
    """The function has executed nothing yet."""

    def begin() -> None:
        for _ in range(1_000_000):
            entered()

    def raise_when_called(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == "entered":
            raise KeyError

    entered = frame_of("threading", int, "entered")
    sys.setprofile(raise_when_called)
    try:
        begin()
        raise AssertionError
    except KeyError as error:
        entries = [entry for entry in walk_tb(error.__traceback__) if entry[0].f_code.co_name == "entered"]
        has_harmed = was_raised_unsafely(error)
    finally:
        sys.setprofile(None)
    assert entries and not has_harmed
