"""Large results: when they are written to files of the host, and what the answer has then."""

from __future__ import annotations

import os
import pickle
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from tests.worker.fake_scheduler import CLIENT, FakeScheduler
from tests.worker.worker_process import joined_worker

from scaler_client.commands.object_files import SHARED_BYTES, file_id
from scaler_client.nested import task_host
from scaler_client.nested.task_host import TaskStoppedError
from scaler_client.pickling import input_lookup
from scaler_client.protocol.messages import FLAG_MAY_STORE, FLAG_PROFILE, Outcome
from scaler_worker.objects.files import read_object
from scaler_worker.objects.host_storage import HostStorage, NoRoomError
from scaler_worker.objects.kept_results import SMALL_BYTES, KeptResults

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the worker can't import the tests

NAME = CLIENT, 7, 2
FILE = CLIENT, file_id(7, 2)


class Buffers:
    """Pickles as arrays do: each part may be a buffer beside the pickle."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __reduce__(self) -> Any:
        return Buffers, tuple(map(pickle.PickleBuffer, self.parts))


def large(size: int) -> Any:
    return Buffers(bytearray(size))


def length_and_kind(value: Any) -> tuple[int, str, bool]:
    (part,) = value.parts
    return len(part), type(part).__name__, part.readonly


class Ref:
    """A reference to the first input, in a task's arguments."""

    def __reduce__(self) -> Any:
        return input_lookup.load_input, (0,)


def store(directory: Path, value: Any, with_small: bool = False) -> tuple[int, Any]:
    return KeptResults(str(directory)).writer_for(NAME, with_small)(value)


def files(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


def test_buffers_are_written_without_pickling(tmp_path: Path) -> None:
    outcome, payload = store(tmp_path, Buffers(b"a" * SHARED_BYTES, b"b" * SHARED_BYTES, b"small"))
    frames = read_object(str(tmp_path), FILE)
    assert frames is not None and list(map(len, frames[1:])) == [5, SHARED_BYTES, SHARED_BYTES]
    assert (outcome, int.from_bytes(payload, "little")) == (Outcome.STORED, sum(map(len, frames)))
    value = pickle.loads(frames[0], buffers=frames[1:])
    assert [bytes(part[:1]) for part in value.parts] == [b"a", b"b", b"s"]


def test_values_without_buffers(tmp_path: Path) -> None:
    outcome, payload = store(tmp_path, b"x" * SHARED_BYTES)
    frames = read_object(str(tmp_path), FILE)
    assert outcome == Outcome.STORED and frames is not None and len(frames) == 1
    assert pickle.loads(frames[0]) == b"x" * SHARED_BYTES


@pytest.mark.parametrize("size", [0, 100, SHARED_BYTES - 20_000])
def test_small_values_are_answered(tmp_path: Path, size: int) -> None:
    for value in (b"x" * size, Buffers(b"x" * size)):
        outcome, payload = store(tmp_path, value)
        loaded = pickle.loads(payload)
        assert outcome == Outcome.VALUE
        assert bytes(loaded if isinstance(loaded, bytes) else loaded.parts[0]) == b"x" * size
    assert files(tmp_path) == []


def test_small_values_are_files_if_the_scheduler_has_little_memory(tmp_path: Path) -> None:
    assert store(tmp_path, b"x" * (SMALL_BYTES - 100), with_small=True)[0] == Outcome.VALUE
    outcome, payload = store(tmp_path, b"x" * SMALL_BYTES, with_small=True)
    frames = read_object(str(tmp_path), FILE)
    assert outcome == Outcome.STORED and frames is not None
    assert int.from_bytes(payload, "little") == len(frames[0]) and pickle.loads(frames[0]) == b"x" * SMALL_BYTES


def test_small_values_that_fit_nowhere_are_answered(tmp_path: Path) -> None:
    HostStorage(str(tmp_path)).create(SMALL_BYTES)
    outcome, payload = store(tmp_path, b"x" * SMALL_BYTES, with_small=True)
    assert outcome == Outcome.VALUE and pickle.loads(payload) == b"x" * SMALL_BYTES
    with pytest.raises(NoRoomError):
        store(tmp_path, b"x" * SHARED_BYTES, with_small=True)


def test_without_a_directory_the_value_is_answered(tmp_path: Path) -> None:
    for directory in ("", str(tmp_path / "gone")):
        outcome, payload = KeptResults(directory).writer_for(NAME)(large(SHARED_BYTES))
        assert outcome == Outcome.VALUE and len(pickle.loads(payload).parts[0]) == SHARED_BYTES


def test_without_space_the_value_is_answered(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SHARED_BYTES // 2, limits[1]))
    try:
        outcome, payload = store(tmp_path, large(SHARED_BYTES))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert outcome == Outcome.VALUE and len(pickle.loads(payload).parts[0]) == SHARED_BYTES
    assert files(tmp_path) == []


def test_a_stop_during_the_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any) -> None:
        raise TaskStoppedError("stopped")

    monkeypatch.setattr(os, "ftruncate", stopped)
    with pytest.raises(TaskStoppedError):
        store(tmp_path, large(SHARED_BYTES))
    assert files(tmp_path) == []


@pytest.mark.main_environment
def test_worker_and_scheduler_agree_on_the_limit() -> None:
    functions = pytest.importorskip("scaler_scheduler.core.state.functions")
    assert functions.LARGE_BYTES == SHARED_BYTES
    assert functions.SMALL_BYTES == SMALL_BYTES


# ------------------------------------------------------------------------------------------------------- in a process


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    scheduler = FakeScheduler()
    yield scheduler
    scheduler.close()


def test_a_worker_writes_results_that_the_scheduler_asks_for(scheduler: FakeScheduler, tmp_path: Path) -> None:
    size = 1 << 20
    with joined_worker(scheduler, str(tmp_path)):
        scheduler.send_function(3, large)
        scheduler.send_function(4, length_and_kind)
        scheduler.dispatch(3, (10, size), (11, 10), (12, 10), flags=[FLAG_MAY_STORE, 0, FLAG_MAY_STORE])
        answers = scheduler.answers(3)
        assert [answers[number][0] for number in (10, 11, 12)] == [Outcome.STORED, Outcome.VALUE, Outcome.VALUE]
        assert files(tmp_path) == [f"{CLIENT:016x}-{file_id(10, 1):016x}"] and answers[10][1] > size
        scheduler.dispatch(4, (13, Ref()), inputs=[file_id(10, 1)], inputCounts=[1], inputSources=[2])
        assert scheduler.answers(1) == {13: (Outcome.VALUE, (size, "memoryview", True))}
        scheduler.dispatch(3, (14, size), flags=[FLAG_MAY_STORE | FLAG_PROFILE])
        results = scheduler.receive("results")
        assert results["outcomes"] == [Outcome.STORED] and results["peaks"][0] > 0
        scheduler.dispatch(4, (15, Ref()), inputs=[99], inputCounts=[1], inputSources=[2])
        outcome, text = scheduler.answers(1)[15]
        assert outcome == Outcome.INPUT_LOST and "was removed" in text


def test_a_process_forked_by_a_task_writes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file would replace the file of the task."""
    monkeypatch.setattr(task_host, "is_forked_by_task", True)
    assert store(tmp_path, large(SHARED_BYTES))[0] == Outcome.VALUE
    assert files(tmp_path) == []
