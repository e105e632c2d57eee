"""Waiting for many futures, progress bars, and `Client.clear`."""

from __future__ import annotations

import concurrent.futures
import io
import re
import sys
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest
from tests.client.gates import gates, wait_at_gate
from tests.client.running_scheduler import RunningScheduler
from tests.client.stand_ins import in_threads
from tests.waiting import wait_until
from tqdm import tqdm

from scaler_client import Client, ClientClosedError
from scaler_client.commands.install_hints import install_hint

SECONDS = 20.0


def divide_by(x: int) -> float:
    return 10 / x


# -------------------------------------------------------------------------------------------------------- as_completed


def test_as_completed(running_client: Client) -> None:
    slow, quick = running_client.submit(wait_at_gate, "slow"), running_client.submit(abs, -1)
    ended = running_client.as_completed([slow, quick, quick])
    assert next(ended) is quick
    gates.open("slow")
    assert list(ended) == [slow]
    assert list(running_client.as_completed(iter(()))) == []


def test_as_completed_with_a_timeout(running_client: Client) -> None:
    with pytest.raises(concurrent.futures.TimeoutError):
        list(running_client.as_completed([running_client.submit(wait_at_gate, "never")], timeout=0.05))


def test_tqdm_shows_as_completed(running_client: Client) -> None:
    futures = [running_client.submit(abs, -i) for i in range(30)]
    shown = io.StringIO()
    results = {future.result() for future in tqdm(running_client.as_completed(futures), total=30, file=shown)}
    assert results == set(range(30)) and "30/30" in shown.getvalue()


# ---------------------------------------------------------------------------------------------------------------- wait


def test_wait(running_client: Client) -> None:
    slow, quick = running_client.submit(wait_at_gate, "slow"), running_client.submit(abs, -1)
    assert running_client.wait([slow, quick], return_when="FIRST_COMPLETED") == ({quick}, {slow})
    assert running_client.wait([slow], timeout=0.01) == (set(), {slow})
    gates.open("slow")
    assert running_client.wait([slow, quick]) == ({slow, quick}, set())


# -------------------------------------------------------------------------------------------------------------- gather


def test_gather_keeps_the_order(running_client: Client) -> None:
    futures = [running_client.submit(wait_at_gate, "slow"), running_client.submit(abs, -1)]
    in_threads(2, lambda number: gates.open("slow") if number else futures[1].result(SECONDS))
    assert running_client.gather([*futures, futures[1]]) == ["slow", 1, 1]
    assert running_client.gather(iter(())) == []


def test_gather_takes_any_future(running_client: Client) -> None:
    foreign: Future[int] = Future()
    foreign.set_result(3)
    assert running_client.gather([foreign, running_client.submit(abs, -4)]) == [3, 4]


def test_gather_raises_the_first_failure_and_leaves_the_other_futures(running_client: Client) -> None:
    slow, failing = running_client.submit(wait_at_gate, "slow"), running_client.submit(divide_by, 0)
    with pytest.raises(ZeroDivisionError):
        running_client.gather([slow, failing])
    gates.open("slow")
    assert slow.result(SECONDS) == "slow"
    with pytest.raises(ZeroDivisionError):
        running_client.gather([slow, failing])


def test_gather_of_a_cancelled_future(running_client: Client) -> None:
    blocking = [running_client.submit(wait_at_gate, key) for key in "ab"]
    cancelled = running_client.submit(abs, 1)
    assert cancelled.cancel()
    gates.open("a", "b")
    with pytest.raises(CancelledError):
        running_client.gather([*blocking, cancelled])


# ----------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("name", ["as_completed", "wait", "gather"])
def test_items_that_are_no_futures_raise(running_client: Client, name: str) -> None:
    call: Callable[..., Any] = getattr(running_client, name)
    with pytest.raises(TypeError, match="futures must be an iterable of futures, not 3"):
        call(3)
    with pytest.raises(TypeError, match="item 1 of futures is not a future but str: 'x'"):
        call([running_client.submit(abs, 1), "x"])


def test_bad_arguments(running_client: Client) -> None:
    future = running_client.submit(abs, 1)
    with pytest.raises(TypeError, match="timeout must be a number of seconds, not '1'"):
        running_client.as_completed([future], timeout="1")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="timeout must be a number of seconds, not True"):
        running_client.wait([future], timeout=True)
    with pytest.raises(ValueError, match="return_when must be one of ALL_COMPLETED, .* not 'all'"):
        running_client.wait([future], return_when="all")
    with pytest.raises(TypeError, match="map needs an iterable of tuples of arguments, not 3"):
        running_client.map(abs, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="progress must be True or False, not 1"):
        running_client.map(abs, [(1,)], progress=1)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------------------- bars


@pytest.mark.parametrize("known", [True, False], ids=["known length", "unknown length"])
def test_map_shows_a_bar(running_client: Client, capsys: pytest.CaptureFixture[str], known: bool) -> None:
    arguments = [(-i,) for i in range(3000)]
    results = running_client.map(abs, arguments if known else iter(arguments), progress=True)
    assert results == list(range(3000))
    shown = capsys.readouterr().err
    assert "100%" in shown and "3000/3000" in shown


def test_the_bar_moves_within_a_chunk(running_client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    shown = ""

    def has_moved() -> bool:
        nonlocal shown
        shown += capsys.readouterr().err
        return "1/2" in shown

    def run(number: int) -> Any:
        if number:
            return running_client.map(wait_at_gate, [("first",), ("second",)], progress=True)
        gates.open("first")
        wait_until(has_moved)
        return gates.open("second")

    assert in_threads(2, run) == [None, ["first", "second"]]


def test_the_bar_is_closed_when_a_task_fails(running_client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError):
        running_client.map(divide_by, [(0,)], progress=True)
    assert capsys.readouterr().err.endswith("\n")


def test_a_bar_without_tqdm_raises(running_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match=re.escape(f"progress=True needs tqdm: {install_hint('progress')}")):
        running_client.map(abs, [(1,)], progress=True)
    assert running_client.map(abs, [(-1,)]) == [1]


# --------------------------------------------------------------------------------------------------------------- clear


def test_clear(running: RunningScheduler, running_client: Client) -> None:
    blocking = [running_client.submit(wait_at_gate, key) for key in "ab"]
    wait_until(lambda: len(gates.passed) == 2)
    waiting = [running_client.submit(wait_at_gate, "never") for _ in range(50)]
    running_client.options(priority=1).clear()
    assert all(future.cancelled() for future in waiting)
    assert not any(future.done() for future in blocking)
    gates.open("a", "b")
    assert running_client.gather(blocking) == ["a", "b"]
    assert running_client.submit(abs, -1).result(SECONDS) == 1
    running_client.clear()
    assert gates.passed == ["a", "b"]


def test_clear_ends_a_map(running_client: Client) -> None:
    def run(number: int) -> None:
        if number:
            with pytest.raises(CancelledError, match="map's tasks were cancelled"):
                running_client.map(wait_at_gate, [(key,) for key in range(2000)])
        else:
            wait_until(lambda: len(gates.passed) == 2)
            running_client.clear()

    in_threads(2, run)


def test_clear_of_a_disconnected_client(running_client: Client) -> None:
    running_client.disconnect()
    with pytest.raises(ClientClosedError, match="disconnected"):
        running_client.clear()
