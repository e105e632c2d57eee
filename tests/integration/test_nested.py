"""Tasks that submit tasks and wait for them, with real processes."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import cloudpickle
import psutil
import pytest
from tests.integration.commands import SchedulerCommand, cluster, is_alive, monitor, monitor_address_of
from tests.integration.executions import note, notes
from tests.waiting import wait_until

from scaler_client import Client, SchedulerClusterCombo, TaskTimeoutError, WorkerDiedError

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 60


def square(x: int) -> int:
    return x * x


def fibonacci(client: Client, n: int) -> int:
    if n < 2:
        return n
    a = client.submit(fibonacci, client, n - 1)
    b = client.submit(fibonacci, client, n - 2)
    return a.result() + b.result()


def chain(depth: int) -> int:
    return 0 if depth == 0 else 1 + Client().submit(chain, depth - 1).result()


def ask(ask_with: str, client: Client, number: int) -> list[int]:
    """Submit 64 children, and wait for them in one of several ways."""
    arguments = [number + i for i in range(64)]
    if ask_with == "map":
        return client.map(square, [(each,) for each in arguments])
    futures = [client.submit(square, each) for each in arguments]
    if ask_with == "wait":
        concurrent.futures.wait(futures)
    elif ask_with == "as_completed":
        assert len(list(concurrent.futures.as_completed(futures))) == 64
    return [future.result() for future in futures]


def processes(agent: int) -> set[int]:
    """Return the fork server and the workers."""
    return {process.pid for process in psutil.Process(agent).children(recursive=True) if is_alive(process)}


def assert_rests(address: str) -> None:
    with monitor(monitor_address_of(address)) as watch:
        wait_until(lambda: (now := watch.next()).waiting == now.dispatched == 0)


def test_fibonacci_on_2_workers(combo: SchedulerClusterCombo, client: Client) -> None:
    wait_until(lambda: len(processes(combo.cluster_pid)) == 3)
    before = processes(combo.cluster_pid)
    assert client.submit(fibonacci, client, 18).result(SECONDS) == 2584
    assert processes(combo.cluster_pid) == before
    assert_rests(client.address)


def test_a_chain_of_300_on_1_worker(daemon: SchedulerCommand, tmp_path: Path) -> None:
    with cluster(tmp_path, daemon.address, 1) as workers, Client(daemon.address) as client:
        wait_until(lambda: len(processes(workers.process.pid)) == 2)
        before = processes(workers.process.pid)
        assert client.submit(chain, 300).result(SECONDS) == 300
        assert processes(workers.process.pid) == before
        assert sum(psutil.Process(pid).memory_info().rss for pid in before) < 1 << 30
        assert client.submit(chain, 3).result(SECONDS) == 3


def test_64_parents_with_64_children_each_on_4_workers(daemon: SchedulerCommand, tmp_path: Path) -> None:
    with cluster(tmp_path, daemon.address, 4) as workers, Client(daemon.address) as client:
        wait_until(lambda: len(processes(workers.process.pid)) == 5)
        before = processes(workers.process.pid)
        ways = ("result", "map", "wait", "as_completed")
        parents = [client.submit(ask, ways[number % 4], client, number) for number in range(64)]
        for number, parent in enumerate(parents):
            assert parent.result(SECONDS) == [(number + i) ** 2 for i in range(64)]
        assert processes(workers.process.pid) == before


# ------------------------------------------------------------------------------------------- parents that don't get on


def until_there(path: str) -> int:
    while not os.path.exists(path):
        time.sleep(0.002)
    return os.getpid()


def stubborn_parent(log: str, path: str, client: Client) -> int:
    note(log, "began")
    children = [client.submit(child, log, path) for _ in range(3)]
    total = sum(each.result() for each in children)
    note(log, "ended")
    return total


def child(log: str, path: str) -> int:
    note(log, "child")
    until_there(path)
    return 1


def test_a_parent_whose_worker_is_killed_starts_over(daemon: SchedulerCommand, tmp_path: Path) -> None:
    """The parent is suspended, and its process runs one of its children. Both are run again."""
    log, gate = str(tmp_path / "log"), tmp_path / "gate"
    with cluster(tmp_path, daemon.address, 2), Client(daemon.address) as client:
        parent = client.submit(stubborn_parent, log, str(gate), client)
        wait_until(lambda: len(notes(log, "child")) >= 2, what="two children run, one of them beside their parent")
        (first,) = notes(log, "began")
        os.kill(first.pid, signal.SIGKILL)
        wait_until(lambda: len(notes(log, "began")) == 2, what="the parent starts over")
        gate.touch()
        assert parent.result(SECONDS) == 3
        assert len(notes(log, "ended")) == 1
        assert notes(log, "began")[1].pid != first.pid
        assert_rests(client.address)


def map_on(log: str, path: str, client: Client) -> None:
    client.map(child, [(log, path)] * 20)


@pytest.mark.parametrize("fn", [stubborn_parent, map_on], ids=lambda fn: fn.__name__)
def test_stopping_a_parent_stops_its_children(
    client: Client, tmp_path: Path, fn: Callable[[str, str, Client], object]
) -> None:
    """One child runs in the process of the parent, and must stop before the parent can end."""
    log, never = str(tmp_path / "log"), str(tmp_path / "never")
    parent = client.submit(fn, log, never, client)
    wait_until(lambda: len(notes(log, "child")) == 2, what="the children occupy both workers")
    assert parent.cancel(force=True) and parent.cancelled()
    assert client.submit(square, 3).result(SECONDS) == 9
    assert_rests(client.address)
    assert len(notes(log, "child")) == 2 and not notes(log, "ended")


def leave_or_wait(client: Client, number: int) -> int:
    """Leave a child that does not end, or wait for one that does."""
    if not number:
        client.submit(time.sleep, 600)
        return 0
    return client.submit(square, number).result()


def test_the_children_of_a_call_end_with_it_and_not_with_its_row(daemon: SchedulerCommand, tmp_path: Path) -> None:
    """Otherwise the child of the first call would have the only slot while the second one waits for its own."""
    with cluster(tmp_path, daemon.address, 1), Client(daemon.address) as client:
        mapped = client.executor().map(leave_or_wait, [client] * 4, range(4), chunksize=4, timeout=SECONDS)
        assert list(mapped) == [0, 1, 4, 9]


def test_a_time_limit_of_a_parent(client: Client, tmp_path: Path) -> None:
    log, never = str(tmp_path / "log"), str(tmp_path / "never")
    with pytest.raises(TaskTimeoutError):
        client.options(timeout=0.3).submit(stubborn_parent, log, never, client).result(SECONDS)
    assert client.map(square, [(i,) for i in range(100)]) == [i * i for i in range(100)]


def slow(log: str) -> None:
    note(log, "child")
    time.sleep(60)


def forgiving_parent(log: str, ask_children: int) -> str:
    note(log, "began")
    client = Client()
    children = [client.options(timeout=0.3).submit(slow, log) for _ in range(ask_children)]
    late = 0
    for each in children:
        try:
            each.result()
        except TaskTimeoutError:
            late += 1
    return f"{late} late"


def test_a_parent_outlives_children_that_are_too_slow(daemon: SchedulerCommand, tmp_path: Path) -> None:
    """They run in another process, of which the host has one more for a while."""
    log = str(tmp_path / "log")
    with cluster(tmp_path, daemon.address, 1) as workers, Client(daemon.address) as client:
        wait_until(lambda: len(processes(workers.process.pid)) == 2)
        parents = [client.options(retries=0).submit(forgiving_parent, log, 2) for _ in range(3)]
        assert [each.result(SECONDS) for each in parents] == ["2 late"] * 3
        began, children = notes(log, "began"), notes(log, "child")
        assert len(began) == 3 and len(children) == 6
        assert client.submit(square, 3).result(SECONDS) == 9
        wait_until(lambda: len(processes(workers.process.pid)) == 2, what="the other process has ended")
        assert client.submit(square, 3).result(SECONDS) == 9


def fatal(log: str) -> None:
    note(log, "child")
    os._exit(3)


def test_a_parent_whose_child_ends_its_process(daemon: SchedulerCommand, tmp_path: Path) -> None:
    """The child runs alone after that. The parent's failed attempt counts."""
    log = str(tmp_path / "log")

    def parent(log: str) -> str:
        note(log, "began")
        try:
            Client().submit(fatal, log).result()
        except WorkerDiedError:
            return "handled"
        return ""

    with cluster(tmp_path, daemon.address, 1), Client(daemon.address) as client:
        with pytest.raises(WorkerDiedError, match="while fatal#0 ran in the same process"):
            client.options(retries=0).submit(parent, log).result(SECONDS)
        assert len(notes(log, "began")) == 1


def surroundings() -> tuple[str, str | None, str | None]:
    return os.getcwd(), os.environ.get("SCALER_TEST_PARENT"), os.environ.get("SCALER_TEST_CHILD")


def wandering_child(folder: str) -> tuple[tuple[str, str | None, str | None], int]:
    seen = surroundings()
    os.chdir(folder)
    os.environ["SCALER_TEST_CHILD"] = "set"
    return seen, os.getpid()


def wandering_parent(folders: list[str]) -> list[object]:
    begun = surroundings()
    os.chdir(folders[0])
    os.environ["SCALER_TEST_PARENT"] = "set"
    with Client() as client:
        seen, pid = client.submit(wandering_child, folders[1]).result()
    return [begun, seen, pid == os.getpid(), surroundings()]


def test_a_child_does_not_see_its_parents_directory_and_variables(daemon: SchedulerCommand, tmp_path: Path) -> None:
    """Nor does the parent see the child's."""
    folders = [str(tmp_path / name) for name in ("parent", "child")]
    for folder in folders:
        os.mkdir(folder)
    with cluster(tmp_path, daemon.address), Client(daemon.address) as client:
        for _ in range(2):  # the second time, the function is loaded
            begun, seen, is_same, after = client.submit(wandering_parent, folders).result(SECONDS)
            assert is_same and after == (folders[0], "set", None)
            assert seen[0] not in folders and seen == (seen[0], *begun[1:])
            client.submit(os.chdir, "/").result(SECONDS)


def print_pid() -> int:
    print("of the child")
    return os.getpid()


def redirecting_parent(file: str) -> bool:
    with open(file, "w") as output, contextlib.redirect_stdout(output), Client() as client:
        print("of the parent")
        return client.submit(print_pid).result() == os.getpid()


def test_what_a_child_prints_goes_into_its_parents_redirect(daemon: SchedulerCommand, tmp_path: Path) -> None:
    """The two run in one process, and the block holds for the process."""
    output = tmp_path / "output"
    with cluster(tmp_path, daemon.address, 1), Client(daemon.address) as client:
        assert client.submit(redirecting_parent, str(output)).result(SECONDS)
    assert output.read_text() == "of the parent\nof the child\n"


def test_shutdown_while_parents_wait(tmp_path: Path) -> None:
    log, gate = str(tmp_path / "log"), tmp_path / "never"
    with SchedulerClusterCombo(n_workers=2) as combo, Client(combo.get_address()) as client:
        parents = [client.submit(stubborn_parent, log, str(gate), client) for _ in range(4)]
        wait_until(lambda: len(notes(log, "child")) == 2, what="parents wait, and children run beside them")
        left = processes(combo.cluster_pid)
        combo.shutdown()
        assert not any(psutil.pid_exists(pid) and is_alive(psutil.Process(pid)) for pid in left)
    assert all(each.cancelled() for each in parents)


def test_an_exception_of_a_child_goes_through_its_parent(client: Client) -> None:
    def fail() -> None:
        raise LookupError("of the child")

    def parent(client: Client) -> None:
        client.submit(fail).result()

    with pytest.raises(LookupError, match="of the child"):
        client.submit(parent, client).result(SECONDS)
    assert client.submit(square, 3).result(SECONDS) == 9
