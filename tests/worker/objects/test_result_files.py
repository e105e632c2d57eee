"""Large results: when they are files of their client, and what is answered else."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.worker.objects.test_kept_results import Buffers

from scaler_client.commands import object_files
from scaler_client.commands.object_directory import make_directory
from scaler_client.commands.object_files import file_id, read_frames
from scaler_client.nested import task_host
from scaler_client.pickling.serializer import dumps
from scaler_client.protocol.messages import FileResult, Outcome
from scaler_worker.objects import result_files
from scaler_worker.objects.result_files import FILE_BYTES, LargeValue, dump_large, dump_result, store_large

CLIENT = 6
NAME = CLIENT, 7, 2
FILE = CLIENT, file_id(7, 2)

pytestmark = pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="this system has no files without names")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The directory of the client."""
    monkeypatch.setattr(object_files, "SHARED_MEMORY", str(tmp_path))
    made = make_directory(CLIENT, [str(tmp_path)])
    yield made.path
    made.remove()


def large(size: int = FILE_BYTES) -> Any:
    return Buffers(bytearray(b"x" * size), bytearray(b"small"))


@pytest.mark.parametrize("value", [1, "a", [1] * 100_000, large(FILE_BYTES // 2), Buffers(*[bytearray(1000)] * 300)])
def test_values_without_many_large_buffers_are_one_pickle(value: Any) -> None:
    data = dump_result(value)
    assert type(data) is bytes and type(pickle.loads(data)) is type(value)


def test_large_buffers_are_not_copied() -> None:
    value = large()
    data = dump_large(value)
    assert isinstance(data, LargeValue) and len(data) > FILE_BYTES
    assert data.frames[-1].obj is value.parts[0]  # type: ignore[union-attr]
    assert bytes(pickle.loads(data.joined()).parts[1]) == b"small"


@pytest.mark.parametrize("is_pickle", [False, True])
def test_a_large_result_is_a_file_of_its_client(directory: str, is_pickle: bool) -> None:
    payload = dumps(b"x" * FILE_BYTES) if is_pickle else dump_large(large())
    outcome, answer = store_large(NAME, payload, may_be_file=True)
    frames = read_frames(directory, FILE)
    assert (outcome, FileResult.unpack(answer)) == (Outcome.FILE, (FILE[1], len(payload)))
    value = pickle.loads(frames[0], buffers=frames[1:])
    assert value == b"x" * FILE_BYTES if is_pickle else bytes(value.parts[1]) == b"small"
    assert os.listdir(directory) == [f"{CLIENT:016x}-{FILE[1]:016x}"]


def test_a_file_of_the_same_name_is_replaced(directory: str) -> None:
    """A scheduler counts attempts anew when it does not know those of an earlier one."""
    for letter in (b"a", b"b"):
        assert store_large(NAME, letter * FILE_BYTES, may_be_file=True)[0] == Outcome.FILE
        assert read_frames(directory, FILE) == [letter * FILE_BYTES]


def no_space(*_: object) -> None:
    raise OSError(28, "no space")


@pytest.mark.parametrize("why", ["no directory", "not for the client", "no space", "a forked child"])
@pytest.mark.parametrize("is_pickle", [False, True])
def test_other_results_are_values(directory: str, monkeypatch: pytest.MonkeyPatch, why: str, is_pickle: bool) -> None:
    payload = dumps(b"x" * FILE_BYTES) if is_pickle else dump_large(large())
    if why == "no space":
        monkeypatch.setattr(result_files, "write_frames_to_memory", no_space)
    monkeypatch.setattr(task_host, "is_forked_by_task", why == "a forked child")
    name = (CLIENT + (why == "no directory"), *NAME[1:])
    outcome, answer = store_large(name, payload, may_be_file=why != "not for the client")
    assert outcome == Outcome.VALUE and not os.listdir(directory)
    value = pickle.loads(answer)
    assert value == b"x" * FILE_BYTES if is_pickle else bytes(value.parts[1]) == b"small"
