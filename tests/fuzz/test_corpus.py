"""Replays the fuzzer's corpus under PyPy and CPython: faults that it has found stay fixed, and its targets work."""

from __future__ import annotations

import sys

import pytest
from tests.fuzz.corpus import FOLDER, archive_of, read_corpus
from tests.fuzz.drawing import Drawing, data_of, frames_of
from tests.fuzz.events_of_bytes import ROUTES, Maker, incarnation_of
from tests.fuzz.run import MAX_INPUT_BYTES
from tests.fuzz.targets import NOT_UNDER_PYPY, TARGETS, Conversation

from scaler_scheduler.core import events
from scaler_scheduler.core.ids import INCARNATION_LIMIT

MAX_BYTES = 500_000
SHARE = 4 if sys.implementation.name == "pypy" else 1
"""PyPy replays each fourth input: its compiler is slow with so many paths, and a fault shows under CPython too."""


def test_the_corpus_is_small() -> None:
    sizes = [len(content) for target in TARGETS for content in read_corpus(target).values()]
    assert 100 < len(sizes) and sum(sizes) < MAX_BYTES
    assert set(FOLDER.iterdir()) == {archive_of(target) for target in TARGETS} and set(TARGETS) == set(MAX_INPUT_BYTES)


@pytest.mark.parametrize("target", TARGETS)
def test_replay(target: str) -> None:
    if target in NOT_UNDER_PYPY:
        pytest.importorskip("capnp", reason="pycapnp is compiled for CPython, from 3.10 on with the client's library")
        if sys.version_info < (3, 10):
            pytest.skip("the client's library is for CPython from 3.10 on")
    for name, content in list(read_corpus(target).items())[::SHARE]:
        try:
            TARGETS[target](content)
        except BaseException as error:
            raise AssertionError(f"{name}: {error!r}") from error
    if target == "client_api":
        from tests.fuzz import client_api

        client_api.close()


def test_events_of_every_kind_come_of_some_bytes() -> None:
    kinds = set()
    for content in read_corpus("scheduler_core").values():
        maker = Maker(Drawing(content))
        while not maker.drawing.is_over:
            kinds.add(maker.event().kind)
    assert kinds == {each.kind for each in _every_event(events.Event)} - {-1}
    assert incarnation_of(ROUTES) < INCARNATION_LIMIT


def _every_event(kind: type[events.Event]) -> set[type[events.Event]]:
    return {kind}.union(*(_every_event(each) for each in kind.__subclasses__()))


def test_a_fault_of_the_core_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the dispatcher does not remove lost workers, some input of the corpus fails."""
    monkeypatch.setattr("scaler_scheduler.core.placement.worker_pool.WorkerPool.remove", lambda self, worker: None)
    with pytest.raises(AssertionError) as found:
        test_replay("scheduler_core")
    assert "InvariantError" in str(found.value)
    assert Conversation(Drawing(b"")).run() is None


@pytest.mark.parametrize("frames", [[b"first"], [b"first", b"", b"second"], [b"", b"x" * 255]])
def test_frames_survive_their_way_through_bytes(frames: list[bytes]) -> None:
    assert frames_of(data_of(frames)) == frames
