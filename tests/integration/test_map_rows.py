"""`map` with rows that stand for several calls, with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import cloudpickle
import pytest
from tests.integration.commands import cluster, monitor, monitor_address_of, scheduler
from tests.integration.restarts import OFTEN, restarts
from tests.waiting import wait_until

from scaler_client import (
    AsyncClient,
    Client,
    FunctionLoadError,
    ResultPickleError,
    SchedulerClusterCombo,
    WorkerDiedError,
)

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 60
WORKERS = 3


@pytest.fixture(scope="module")
def combo() -> Iterator[SchedulerClusterCombo]:
    with SchedulerClusterCombo(n_workers=WORKERS) as combo:
        yield combo


def square(x: int) -> int:
    return x * x


def squares(count: int) -> list[int]:
    return [x * x for x in range(count)]


def written(log: str, x: int) -> int:
    """Append the argument to a file."""
    with open(log, "a") as file:
        file.write(f"{x}\n")
    return x


def wait_until_there(path: Path) -> None:
    while not path.exists():
        time.sleep(0.002)


def calls_in(log: Path) -> Counter[int]:
    return Counter(map(int, log.read_text().split()))


# --------------------------------------------------------------------------------------------------- ends of processes


def test_killed_workers_and_agents(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with (
        scheduler(tmp_path, "--worker-timeout-seconds", "2") as daemon,
        cluster(tmp_path / "a", daemon.address, 2, *OFTEN) as first,
        cluster(tmp_path / "b", daemon.address, 2, *OFTEN),
        Client(daemon.address) as client,
    ):
        pids = set(client.map(lambda _: (time.sleep(0.01), os.getpid())[1], [(x,) for x in range(100)]))
        log = tmp_path / "log"

        def busy(x: int) -> int:
            written(str(log), x)
            sum(range(500))
            return x * x

        with ThreadPoolExecutor(1) as threads:
            mapped = threads.submit(client.map, busy, [(x,) for x in range(20_000)])
            wait_until(lambda: log.exists() and log.stat().st_size > 5_000, what="some calls")
            for pid in sorted(pids)[:2]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass  # its agent has replaced it
            first.process.kill()
            assert mapped.result(SECONDS) == squares(20_000)


def test_a_call_that_ends_its_worker_fails_alone(client: Client, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def deadly(x: int) -> int:
        if x == 1000:
            os._exit(3)
        return written(str(log), x)

    results = client.imap(deadly, [(x,) for x in range(2000)])
    read: list[int] = []
    with pytest.raises(WorkerDiedError, match="exit code 3"):
        for value in results:
            read.append(value)
    assert read == list(range(1000))


def test_calls_with_an_answer_are_not_run_again(client: Client, tmp_path: Path) -> None:
    """One of many calls ends its worker once. Those whose results were there before ran once."""
    log, gate, died = tmp_path / "log", tmp_path / "gate", tmp_path / "died"

    def deadly(x: int) -> int:
        written(str(log), x)
        if x == 1700 and not died.exists():
            wait_until_there(gate)
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    results = client.imap(deadly, [(x,) for x in range(2000)])
    read = [next(results) for _ in range(50)]  # the first calls are rows of their own
    gate.touch()
    before = 0
    for value in results:
        read.append(value)
        if not died.exists():
            before = len(read)
    assert read == list(range(2000)) and died.exists()
    ran = calls_in(log)
    assert all(ran[x] == 1 for x in range(max(50, before)))
    assert set(ran) == set(range(2000)) and ran[1700] == 2


def test_a_restart_of_the_scheduler(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with restarts(tmp_path) as daemon, cluster(tmp_path, daemon.now.address, 2, *OFTEN):
        with Client(daemon.now.address) as client, ThreadPoolExecutor(1) as threads:
            mapped = threads.submit(client.map, written, [(str(log), x) for x in range(20_000)])
            wait_until(lambda: log.exists() and log.stat().st_size > 5_000, what="some calls")
            daemon.kill()
            daemon.start(daemon.now.address)
            assert mapped.result(SECONDS) == list(range(20_000))


# ----------------------------------------------------------------------------------------------------------- what runs


def test_long_calls_among_short_ones_use_all_workers(client: Client) -> None:
    def mixed(x: int) -> tuple[bool, int]:
        if x % 50 == 0:
            time.sleep(0.05)
        return x % 50 == 0, os.getpid()

    wait_until(lambda: len(set(client.map(lambda _: os.getpid(), [(x,) for x in range(200)]))) == WORKERS)
    ran = client.map(mixed, [(x,) for x in range(3000)])
    assert len({pid for is_long, pid in ran if is_long}) == WORKERS


def test_nested_maps(client: Client) -> None:
    def inner(x: int) -> int:
        return x + 1

    def outer(client: Client, x: int) -> int:
        return sum(client.map(inner, [(y,) for y in range(x)]))

    expected = [sum(range(1, x % 40 + 1)) for x in range(200)]
    assert client.map(outer, [(client, x % 40) for x in range(200)]) == expected


def test_objects_as_arguments(client: Client) -> None:
    table = list(range(100_000))
    ref = client.send_object(table)

    def look_up(table: list[int], x: int) -> int:
        return table[x]

    assert client.map(look_up, [(ref, x) for x in range(1000)]) == list(range(1000))


@pytest.mark.parametrize("options", [{"timeout": 30}, {"profiling": True}, {"retries": 2}])
def test_options_about_one_call(client: Client, options: dict[str, Any]) -> None:
    assert client.options(**options).map(square, [(x,) for x in range(200)]) == squares(200)


def test_the_output_of_calls(combo: SchedulerClusterCombo, capsys: pytest.CaptureFixture[str]) -> None:
    def shown(x: int) -> int:
        print(f"item {x}.")
        return x

    printed: list[str] = []

    def is_all_shown() -> bool:
        printed.append("".join(capsys.readouterr()))
        return all(f"item {x}." in "".join(printed) for x in range(100))

    with Client(combo.get_address(), stream_output=True) as client:
        assert client.map(shown, [(x,) for x in range(100)]) == list(range(100))
        wait_until(is_all_shown, what="the output of all calls")


def test_a_time_limit_is_for_one_call(client: Client) -> None:
    def nap(x: int) -> int:
        time.sleep(0.02)
        return x

    assert client.options(timeout=1).map(nap, [(x,) for x in range(150)]) == list(range(150))


def test_retries_are_for_one_call(client: Client, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def flaky(x: int) -> int:
        written(str(log), x)
        if x % 10 == 0 and calls_in(log)[x] < 3:
            raise OSError("again")
        return x

    own = client.options(retry_on=OSError, retries=3)
    assert own.map(flaky, [(x,) for x in range(100)]) == list(range(100))
    assert calls_in(log) == {x: 1 if x % 10 else 3 for x in range(100)}


# ------------------------------------------------------------------------------------------------------------ failures


class Unpicklable:
    def __reduce__(self) -> NoReturn:
        raise TypeError("stays here")


class UnpicklableError(Exception):
    def __reduce__(self) -> NoReturn:
        raise TypeError("stays here")


def result_stays(x: int) -> Any:
    return Unpicklable() if x == 500 else x


def exception_stays(x: int) -> int:
    if x == 500:
        raise UnpicklableError("of its own")
    return x


def fails(x: int) -> int:
    if x == 500:
        raise KeyError("of its own")
    return x


def notes_of(error: BaseException) -> str:
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


@pytest.mark.parametrize(
    "fn, kind", [(result_stays, ResultPickleError), (exception_stays, UnpicklableError), (fails, KeyError)]
)
def test_errors_name_the_item(client: Client, fn: Any, kind: type[Exception]) -> None:
    client.map(fn, [(x,) for x in range(100)])  # then the run time is known
    read: list[int] = []
    with pytest.raises(kind) as raised:
        for value in client.imap(fn, [(x,) for x in range(1000)]):
            read.append(value)
    assert "item 500 of map" in notes_of(raised.value)
    assert read == list(range(500))
    with pytest.raises(kind) as raised:
        client.map(fn, [(x,) for x in range(1000)])
    assert "item 500 of map" in notes_of(raised.value)


class Unloadable:
    def __reduce__(self) -> Any:
        return int, ("no number",)

    def __call__(self, x: int) -> int:
        return x


def test_a_function_that_cannot_be_loaded(client: Client) -> None:
    with pytest.raises(FunctionLoadError) as raised:
        list(client.imap(Unloadable(), [(x,) for x in range(1000)]))
    assert "item 0 of map" in notes_of(raised.value)


def test_results_are_snapshots(client: Client) -> None:
    shared: list[int] = []

    def grown(x: int) -> list[int]:
        shared[:] = [x]
        return shared

    assert client.map(grown, [(x,) for x in range(2000)]) == [[x] for x in range(2000)]


def test_large_results(client: Client) -> None:
    sizes = [len(result) for result in client.map(lambda x: bytes([x]) * (1 << 20), [(x,) for x in range(64)])]
    assert sizes == [1 << 20] * 64


# ------------------------------------------------------------------------------------------------------------- cancels


# Python drops an interrupt that hits the callback of a weak reference. Then the next one ends the map.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_cancels_a_map(combo: SchedulerClusterCombo, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def slow(x: int) -> int:
        written(str(log), x)
        time.sleep(0.01)
        return x

    def interrupted() -> None:
        wait_until(lambda: log.exists() and len(calls_in(log)) > 10, what="some calls")
        signal.pthread_kill(main, signal.SIGINT)
        while not ended.wait(1.0):  # Python drops the exception if it hits a callback of the garbage collector
            signal.pthread_kill(main, signal.SIGINT)

    main = threading.main_thread().ident
    assert main is not None
    ended = threading.Event()
    with Client(combo.get_address()) as client, ThreadPoolExecutor(1) as threads:
        interrupt = threads.submit(interrupted)
        with pytest.raises(KeyboardInterrupt):
            try:
                client.map(slow, [(x,) for x in range(100_000)])
            finally:
                ended.set()
        interrupt.result(SECONDS)
        assert client.submit(square, 3).result(SECONDS) == 9
        with monitor(monitor_address_of(combo.get_address())) as watch:
            wait_until(lambda: not (now := watch.next()).waiting and not now.dispatched, what="the rest is cancelled")
    assert len(calls_in(log)) < 50_000


def test_a_closed_imap_cancels_the_rest(combo: SchedulerClusterCombo, client: Client, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def slow(x: int) -> int:
        written(str(log), x)
        time.sleep(0.01)
        return x

    results: Any = client.imap(slow, [(x,) for x in range(50_000)])
    assert [next(results) for _ in range(20)] == list(range(20))
    results.close()
    with monitor(monitor_address_of(combo.get_address())) as watch:
        wait_until(lambda: not (now := watch.next()).waiting and not now.dispatched, what="the rest is cancelled")
    assert len(calls_in(log)) < 25_000
    assert client.map(square, [(x,) for x in range(1000)]) == squares(1000)


def test_an_asyncio_map(combo: SchedulerClusterCombo) -> None:
    async def main() -> None:
        async with AsyncClient(combo.get_address()) as client:
            assert await client.map(square, [(x,) for x in range(5000)]) == squares(5000)
            with pytest.raises(KeyError) as raised:
                await client.map(fails, [(x,) for x in range(1000)])
            assert "item 500 of map" in notes_of(raised.value)

    asyncio.run(main())
