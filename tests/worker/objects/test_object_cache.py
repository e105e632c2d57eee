"""The values of inputs: made once, of bytes that were sent, or of a file that may come late."""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.waiting import wait_until

from scaler_client.commands.object_files import mark_lost, write_object
from scaler_client.pickling import input_lookup
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Outcome
from scaler_worker.objects import cache
from scaler_worker.objects.cache import WARNED_LOAD_NS, InputLostError, Inputs, LoadTimes, ObjectCache
from scaler_worker.objects.table import ABSENT, KnownObject, ObjectTable
from scaler_worker.worker.executor import Executor

CLIENT = 2
LOADED: list[str] = []


class Loud:
    """Counts how often it is made."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> Any:
        return make_loud, (self.name,)


def make_loud(name: str) -> Loud:
    LOADED.append(name)
    return Loud(name)


def fail_to_load(_: str) -> Any:
    raise ImportError("no such module on this worker")


class Unloadable:
    def __reduce__(self) -> Any:
        return fail_to_load, ("",)


class Ref:
    """A reference to the input at this position, in a task's arguments."""

    def __init__(self, position: int) -> None:
        self.position = position

    def __reduce__(self) -> Any:
        return input_lookup.load_input, (self.position,)


def frames_of(value: Any) -> list[bytes]:
    buffers: list[pickle.PickleBuffer] = []
    first = pickle.dumps(value, 5, buffer_callback=buffers.append)
    return [first, *(bytes(buffer.raw()) for buffer in buffers)]


class Store:
    """A table, its cache, and the directory of a host."""

    def __init__(self, directory: Path) -> None:
        self.table = ObjectTable()
        self.directory = directory
        self.cache = ObjectCache(self.table, str(directory))

    def send(self, number: int, value: Any) -> None:
        self.table.put((CLIENT, number), frames_of(value))

    def write(self, number: int, value: Any) -> None:
        write_object(str(self.directory), (CLIENT, number), frames_of(value))

    def inputs(self, *numbers: int) -> Inputs:
        return self.cache.inputs(CLIENT, numbers)

    def expect(self, number: int) -> Inputs:
        self.table.expect_file((CLIENT, number))
        return self.inputs(number)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    LOADED.clear()
    return Store(tmp_path)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "QUIET_SECONDS", 0.05)


class Waiting:
    """A task's thread that reads its first input."""

    def __init__(self, values: Inputs) -> None:
        self.result: Any = None
        self._values = values
        self.thread = threading.Thread(target=self._ask, daemon=True)
        self.thread.start()

    def _ask(self) -> None:
        try:
            self.result = self._values(0)
        except InputLostError as error:
            self.result = error

    def end(self) -> Any:
        self.thread.join(20)
        assert not self.thread.is_alive()
        return self.result


def is_asleep(waiting: Waiting) -> bool:
    """Wait until it has looked for the file once and pauses."""
    assert waiting.thread.ident is not None
    frame = sys._current_frames().get(waiting.thread.ident)
    return frame is not None and "pause" in frame.f_locals


@pytest.fixture
def waiting(store: Store) -> Iterator[Waiting]:
    waiting = Waiting(store.expect(7))
    wait_until(lambda: is_asleep(waiting))
    yield waiting
    waiting.end()


def text_of(values: Inputs) -> str:
    with pytest.raises(InputLostError) as caught:
        values(0)
    return str(caught.value)


# ----------------------------------------------------------------------------------------------------------- what it is


def test_each_task_gets_a_value_of_its_own(store: Store) -> None:
    store.send(7, {"amounts": [1, 2]})
    for _ in range(3):
        value = store.inputs(7)(0)
        assert value == {"amounts": [1, 2]}
        value["amounts"].append(3)


def test_each_task_gets_a_value_of_its_own_from_a_file(store: Store) -> None:
    store.write(7, [b"x" * 100_000, [1]])
    for _ in range(3):
        value = store.expect(7)(0)
        assert value[1] == [1]
        value[1].append(2)


def test_a_shared_value_is_loaded_once_for_all_tasks(store: Store) -> None:
    store.send(7, Loud("a"))
    store.send(8, Loud("b"))
    first, second = store.inputs(8, 7), store.inputs(7, 7)
    assert first(1, True) is second(0, True) is second(1, True) and first(0, True).name == "b"
    assert LOADED == ["a", "b"]
    own = second(0)
    assert own is not second(0, True) and LOADED == ["a", "b", "a"], "a task that does not share gets its own"


def test_a_small_shared_value_inside_its_rows_is_loaded_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    pickled = pickle.dumps(["value"])
    one, other, own = (store.cache.inputs(CLIENT, [pickled]) for _ in range(3))
    shared = one(0, True)
    assert shared == ["value"] and other(0, True) is shared and own(0) is not shared
    assert store.cache.inputs(CLIENT + 1, [pickled])(0, True) is not shared, "another program has its own"
    monkeypatch.setattr(cache, "MOST_SMALL_VALUES", 2)
    store.cache.inputs(CLIENT, [pickle.dumps("further")])(0, True)
    assert store.cache.inputs(CLIENT, [pickled])(0, True) is not shared


def test_a_shared_value_of_a_file_is_loaded_once(store: Store) -> None:
    values = store.expect(7)
    store.write(7, Loud("a"))
    assert values(0, True) is store.expect(7)(0, True) and LOADED == ["a"]


def test_an_immutable_value_is_loaded_once(store: Store) -> None:
    store.send(7, ("text" * 1000, b"bytes" * 1000))
    assert store.inputs(7)(0) is store.inputs(7)(0)


def test_a_worker_warns_once_if_tasks_load_an_input_for_much_of_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10**15, 10**8))
    monkeypatch.setattr(cache, "perf_counter_ns", lambda: next(clock))
    warnings: list[str] = []
    table = ObjectTable()
    objects = ObjectCache(table, "", warnings.append)
    for number in (7, 8):
        table.put((CLIENT, number), frames_of([number]))
    for _ in range(9):
        objects.inputs(CLIENT, [7])(0)
        assert not warnings, "it has taken less than a second"
    for _ in range(20):
        objects.inputs(CLIENT, [7])(0)
        objects.inputs(CLIENT, [8])(0)
    assert len(warnings) == 1 and "object 7" in warnings[0] and "shared=True" in warnings[0]


def test_a_worker_does_not_warn_of_an_input_that_is_loaded_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    begins = iter(range(0, 10**15, 10**9))
    times = iter([])
    warnings: list[str] = []

    def clock() -> int:
        nonlocal times
        moment = next(times, None)
        if moment is None:
            begin = next(begins)
            times, moment = iter([begin + 10**8]), begin  # a load takes 0.1 s, once a second
        return moment

    monkeypatch.setattr(cache, "perf_counter_ns", clock)
    table = ObjectTable()
    objects = ObjectCache(table, "", warnings.append)
    table.put((CLIENT, 7), frames_of([7]))
    for _ in range(100):
        objects.inputs(CLIENT, [7])(0)
    assert not warnings


@pytest.mark.parametrize("of_file", [False, True])
def test_buffers_are_not_copied_and_can_not_be_written(store: Store, of_file: bool) -> None:
    data = pickle.PickleBuffer(bytearray(b"x" * 1000))
    if of_file:
        values = store.expect(7)
        store.write(7, data)
    else:
        store.send(7, data)
        values = store.inputs(7)
    view = memoryview(values(0))
    assert bytes(view) == b"x" * 1000
    with pytest.raises(TypeError):
        view[0] = 1


def test_none_is_a_value(store: Store) -> None:
    store.send(7, None)
    values = store.inputs(7)
    assert values(0) is None
    found = store.table.find((CLIENT, 7))
    assert found is not None and found.value is None


def test_inputs_of_a_running_task_survive_a_welcome(store: Store) -> None:
    store.send(7, [5])
    values = store.inputs(7)
    store.table.clear()
    store.table.release()
    assert values(0) == [5]


def test_a_forgotten_file_is_unmapped(store: Store) -> None:
    values = store.expect(7)
    store.write(7, pickle.PickleBuffer(bytearray(b"x" * 100_000)))
    goes = weakref.ref(memoryview(values(0)).obj)
    assert goes() is not None
    store.table.forget([(CLIENT, 7)])
    store.table.release()
    gc.collect()
    assert goes() is None
    assert "its last reference was deleted" in text_of(values)


# ------------------------------------------------------------------------------------------------------ what is missing


def test_an_object_that_was_never_sent_is_lost(store: Store) -> None:
    assert (
        text_of(store.inputs(7))
        == "object 7, which the task reads, is lost: the scheduler has not sent it to this worker"
    )


def test_a_file_without_an_agent_is_lost(store: Store) -> None:
    store.table.expect_file((CLIENT, 7))
    values = ObjectCache(store.table, "").inputs(CLIENT, [7])
    assert "file of a host agent, and this worker has no agent" in text_of(values)


def test_a_file_that_could_not_be_written_is_lost(store: Store) -> None:
    mark_lost(str(store.directory), (CLIENT, 7), "No space left on device")
    assert text_of(store.expect(7)) == "object 7, which the task reads, is lost: No space left on device"


def test_a_file_of_an_agent_that_has_ended_is_lost(store: Store) -> None:
    values = store.expect(7)
    shutil.rmtree(store.directory)
    assert "the host agent has ended" in text_of(values)
    store.directory.mkdir()


def test_a_task_does_not_wait_for_a_missing_file_of_a_worker(store: Store) -> None:
    store.write(7, [1])
    store.table.expect_file((CLIENT, 7), has_file=True)
    assert store.inputs(7)(0) == [1]
    store.table.expect_file((CLIENT, 8), has_file=True)
    assert "a worker has written its file, and the file was removed" in text_of(store.inputs(8))


def test_a_file_that_never_comes_is_lost_after_a_while(store: Store, impatient: None) -> None:
    assert "has not made its file within 0.05 s" in text_of(store.expect(7))


def test_an_object_that_can_not_be_loaded_is_not_lost(store: Store) -> None:
    store.send(7, Unloadable())
    values = store.inputs(7)
    for _ in range(2):
        with pytest.raises(ImportError, match="no such module on this worker"):
            values(0)
    found = store.table.find((CLIENT, 7))
    assert found is not None and found.value is ABSENT and found.frames


# --------------------------------------------------------------------------------------------------------- what is late


def test_a_task_waits_for_a_late_file(store: Store, waiting: Waiting) -> None:
    store.write(7, "late")
    assert waiting.end() == "late"


def test_bytes_may_come_in_place_of_the_file(store: Store, waiting: Waiting) -> None:
    store.table.put((CLIENT, 7), frames_of("sent"))
    assert waiting.end() == "sent"


def test_an_object_forgotten_during_the_wait_is_lost(store: Store, waiting: Waiting) -> None:
    store.table.forget([(CLIENT, 7)])
    assert "its last reference was deleted" in str(waiting.end())


def test_a_missing_file_is_lost_when_the_worker_joins_again(store: Store, waiting: Waiting) -> None:
    store.table.clear()
    assert "joined again before its file came" in str(waiting.end())


def test_an_existing_file_is_read_after_the_worker_joins_again(store: Store) -> None:
    values = store.expect(7)
    store.write(7, "there")
    store.table.clear()
    assert values(0) == "there"


def test_a_file_marked_lost_during_the_wait_is_lost(store: Store, waiting: Waiting) -> None:
    mark_lost(str(store.directory), (CLIENT, 7), "No space left on device")
    assert "No space left on device" in str(waiting.end())


def test_other_new_files_extend_the_wait(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test sets the time: each pause takes a second."""
    now = 0.0

    def pause(_: float) -> None:
        nonlocal now
        now += 1.0
        if now % 50.0 == 0.0 and now < 500.0:
            os.utime(store.directory, ns=(0, round(now)))
            if now == 450.0:
                store.write(7, "after minutes")

    monkeypatch.setattr(cache, "QUIET_SECONDS", 60.0)
    monkeypatch.setattr(cache, "time", SimpleNamespace(monotonic=lambda: now, sleep=pause))
    assert store.expect(7)(0) == "after minutes" and now == 450.0
    store.table.forget([(CLIENT, 7)])
    (store.directory / f"{CLIENT:016x}-{7:016x}").unlink()
    now = 500.0
    assert "within 60 s" in text_of(store.expect(7)) and 560.0 <= now < 562.0


# -------------------------------------------------------------------------------------------------- inside of arguments


def run(store: Store, arguments: Any, *numbers: int) -> tuple[int, Any]:
    executor = Executor({1: messages.Function(1, "adds", "cloudpickle", pickle.dumps(adds))})
    with input_lookup.with_inputs(store.inputs(*numbers)):
        return executor.run(1, pickle.dumps(arguments))


def adds(*parts: Any, more: dict[str, Any] | None = None) -> Any:
    return sum(parts) + sum((more or {}).get("numbers", []))


def test_references_may_be_anywhere_in_the_arguments(store: Store) -> None:
    store.send(7, 30)
    store.send(8, 400)
    outcome, payload = run(store, [(Ref(0), 1, Ref(1)), {"more": {"numbers": [Ref(0), 2]}}], 7, 8)
    assert (outcome, pickle.loads(payload)) == (Outcome.VALUE, 463)


def test_a_lost_input_has_its_own_outcome_and_a_text(store: Store) -> None:
    outcome, payload = run(store, (Ref(0),), 7)
    assert outcome == Outcome.INPUT_LOST
    assert (
        payload.decode()
        == "adds: object 7, which the task reads, is lost: the scheduler has not sent it to this worker"
    )


def test_an_object_that_can_not_be_loaded_fails_the_task(store: Store) -> None:
    store.send(7, Unloadable())
    outcome, payload = run(store, (Ref(0),), 7)
    assert outcome == Outcome.EXCEPTION and isinstance(pickle.loads(payload)[0], ImportError)


def test_a_reference_outside_of_a_task_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="only among the arguments of a task"):
        input_lookup.load_input(0)


def test_the_bytes_of_inputs(store: Store) -> None:
    """Functions by name read them. Objects that were sent, a file, and bytes inside the row."""
    store.table.put((CLIENT, 1), [b"ab", b"cd"])
    write_object(str(store.directory), (CLIENT, 2), [b"ef"])
    store.table.expect_file((CLIENT, 2))
    assert store.cache.inputs(CLIENT, (1, 2, b"gh")).contents() == [b"abcd", b"ef", b"gh"]
    assert store.cache.inputs(CLIENT, (1,)).contents() == [b"abcd"], "as often as wanted"
    with pytest.raises(InputLostError, match="object 3"):
        store.inputs(3).contents()


def test_the_bytes_of_an_input_that_a_python_function_has_read(store: Store) -> None:
    store.send(1, "value")
    assert store.inputs(1)(0) == "value"
    assert pickle.loads(store.inputs(1).contents()[0]) == "value"


@pytest.mark.main_environment
def test_arrays_of_a_shared_value_are_read_only(store):
    """The bytes are in the pickle, as in the results of tasks. A task must not change the input of the next one."""
    numpy = pytest.importorskip("numpy")
    array = numpy.zeros(3)
    value = [array, {"a": (numpy.zeros(2), 1)}, list(range(5000)), "text", bytearray(3)]
    store.table.put((CLIENT, 7), [pickle.dumps(value, 5)])
    found = store.inputs(7)(0)
    assert not found[0].flags.writeable and not found[1]["a"][0].flags.writeable
    assert array.flags.writeable
    store.table.put((CLIENT, 8), [pickle.dumps(array, 5)])
    with pytest.raises(ValueError, match="read-only"):
        store.inputs(8)(0)[0] = 1


class Loads:
    """Loads of one object, on a clock of their own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.warnings: list[str] = []
        self._now = 1
        self._known = KnownObject((CLIENT, 7), None)
        self._times = LoadTimes(self.warnings.append)
        monkeypatch.setattr(cache, "perf_counter_ns", lambda: self._now)

    def load(self, ns: float) -> None:
        begun = self._now
        self._now += int(ns)
        self._times.add(self._known, begun)

    def wait(self, ns: float) -> None:
        self._now += int(ns)


def test_a_worker_that_often_loads_the_same_input_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = Loads(monkeypatch)
    for _ in range(20):
        loads.load(WARNED_LOAD_NS / 10)
        loads.wait(WARNED_LOAD_NS / 10)
    (warning,) = loads.warnings
    assert "48% of its time on loading object 7" in warning and "shared=True" in warning


def test_a_first_load_is_no_reason_for_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = Loads(monkeypatch)
    loads.load(10 * WARNED_LOAD_NS)
    assert not loads.warnings


def test_loads_that_take_a_small_part_of_the_time_are_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = Loads(monkeypatch)
    for _ in range(20):
        loads.load(WARNED_LOAD_NS / 10)
        loads.wait(WARNED_LOAD_NS)
    assert not loads.warnings
