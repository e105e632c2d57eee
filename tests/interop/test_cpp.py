"""A client and a worker in C++ (tests/interop/cpp), written from PROTOCOL.md and the schema, with a real scheduler."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest
from tests.integration.commands import SchedulerCommand, cluster, monitor, scheduler
from tests.integration.restarts import Restarts, restarts
from tests.interop.cpp_programs import SECONDS, CppClient, build, cpp_client, cpp_worker
from tests.interop.restart_story import begun, check_restart, until
from tests.waiting import wait_until

from scaler_client import Client, RemoteError, TaskTimeoutError, WorkerDiedError, named

cloudpickle.register_pickle_by_value(sys.modules[__name__])


pytestmark = pytest.mark.timeout(600)
"""The first test compiles the programs, which takes minutes on a busy machine."""


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    build()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[SchedulerCommand]:
    """A scheduler with one C++ worker. It has no host agent, so a second of silence counts as its loss."""
    with (
        scheduler(tmp_path, "--worker-timeout-seconds", "1", "--task-retries", "1") as started,
        cpp_worker(tmp_path, started.address),
    ):
        yield started


@pytest.fixture
def client(daemon: SchedulerCommand) -> Iterator[CppClient]:
    with cpp_client(daemon.address) as started:
        started.expect("welcome")
        yield started


def kill_that_begins(log: Path, before: int) -> None:
    """Kill the next process that begins the task, after `before` earlier ones."""
    wait_until(lambda: len(begun(log)) > before, SECONDS, "the task begins")
    os.kill(begun(log)[before], signal.SIGKILL)


# --------------------------------------------------------------------------------------------- C++ with C++, and Python


def test_cpp_client_with_cpp_worker(client: CppClient) -> None:
    long = "x" * 200_000
    client.say("submit json add [1, 2.5]", 'submit json fail ["no such curve"]', "submit raw reverse abc")
    client.say(f"submit raw reverse {long}y", "submit json add [1]", "submit json add {", "many json add 3000")
    client.end()
    assert client.resolved[0] == ("value", "3.5")
    assert client.resolved[1] == ("exception", "no such curve")
    assert client.resolved[2] == ("value", "cba")
    assert client.resolved[3] == ("value", f"y{long}"), "its payload travels in a frame of its own, both ways"
    assert client.resolved[4] == ("exception", "argument 1 is missing")
    assert client.resolved[5][0] == "exception"
    assert [client.resolved[6 + i] for i in range(3000)] == [("value", str(i + 1)) for i in range(3000)]


def test_python_client_calls_functions_of_the_cpp_worker(daemon: SchedulerCommand) -> None:
    with Client(daemon.address) as client:
        assert client.submit(named("add"), 1, 2).result(SECONDS) == 3
        value = ["Zoë", None, True, {"a": [1.5]}]
        assert client.submit(named("same"), *value).result(SECONDS) == value
        assert client.submit(named("reverse", codec="raw"), b"\0\xff" * 100_000).result(SECONDS) == b"\xff\0" * 100_000
        assert client.map(named("add"), [(i, 1) for i in range(2000)]) == list(range(1, 2001))
        view = client.options(priority=1, name="sum", profiling=True)
        future = view.submit(named("add"), 20, 22)
        assert future.result(SECONDS) == 42
        assert future.profiling_info().peak_memory > 0


def test_errors_of_the_cpp_worker_in_the_python_client(daemon: SchedulerCommand) -> None:
    with Client(daemon.address) as client:
        with pytest.raises(RemoteError, match=r"(?m)^no such curve: Zoë$"):
            client.submit(named("fail"), "no such curve: Zoë").result(SECONDS)
        with pytest.raises(RemoteError, match="argument 0 is not a number"):
            client.map(named("add"), [("a", 1)])


def test_each_function_goes_to_a_worker_of_its_kind(daemon: SchedulerCommand, tmp_path: Path) -> None:
    """Pickled functions go to the Python worker, named ones to the C++ worker. Other tasks wait, with a warning."""
    with cluster(tmp_path, daemon.address, 1), Client(daemon.address) as client, cpp_client(daemon.address) as other:
        python = [client.submit(os.getpid) for _ in range(50)]
        cpp = [client.submit(named("pid")) for _ in range(50)]
        pids = {future.result(SECONDS) for future in python}, {future.result(SECONDS) for future in cpp}
        assert [len(each) for each in pids] == [1, 1] and not pids[0] & pids[1]
        waiting = client.submit(named("add", codec="raw"), b"")
        other.say("submit msgpack add x")
        assert "no connected worker can run functions of kind named msgpack add" in other.expect("notice 1 task(s)")
        other.say("cancel 0")
        other.expect("resolved 0 cancelled")
        assert waiting.cancel()


def test_a_pickled_function_waits_if_there_is_only_a_cpp_worker(
    daemon: SchedulerCommand, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker would answer with a failure if it got such a task."""
    with Client(daemon.address) as client:
        future = client.submit(os.getpid)
        wait_until(lambda: "no connected worker has Python" in caplog.text, SECONDS, "the client hears that it waits")
        assert client.submit(named("add"), 1, 2).result(SECONDS) == 3
        assert not future.done() and not future.running()
        assert future.cancel()


def test_cpp_client_with_python_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients in any language call functions of `scaler_cluster --offer`. These may submit nested tasks."""
    (tmp_path / "pricing.py").write_text(
        "from scaler_client import Client\n\n"
        "def price(currency, number):\n    return {'currency': currency, 'sum': 2.5 * number}\n\n"
        "def fail(text):\n    raise ValueError(text)\n\n"
        "def sum_of_squares(number):\n"
        "    with Client() as client:\n        return sum(client.map(pow, [(i, 2) for i in range(number)]))\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    offered = (
        "--offer",
        "price=pricing:price,pricing:fail,squares=pricing:sum_of_squares",
        "--offer",
        "reversed=builtins:bytes",
    )
    with scheduler(tmp_path) as daemon, cluster(tmp_path, daemon.address, 2, *offered):
        with cpp_client(daemon.address) as cpp:
            cpp.say('submit json price ["Zoë", 2]', 'submit json fail ["no such curve"]', "submit json squares [5]")
            cpp.say("submit json price {", "submit raw reversed abc", "many json squares 20")
            cpp.end()
        with Client(daemon.address) as client:
            assert client.submit(named("price"), "EUR", 4).result(SECONDS) == {"currency": "EUR", "sum": 10.0}
            with pytest.raises(RemoteError, match="^ValueError: no such curve\n"):
                client.submit(named("fail"), "no such curve").result(SECONDS)
            assert client.submit(os.getpid).result(SECONDS) > 0
    assert cpp.resolved[0] == ("value", '{"currency":"Zoë","sum":5.0}')
    assert cpp.resolved[1] == ("exception", "ValueError: no such curve")
    assert cpp.resolved[2] == ("value", "30")
    assert cpp.resolved[3][0] == "exception" and cpp.resolved[4] == ("value", "abc")
    assert cpp.resolved[5][0] == "exception"  # it takes one argument


# --------------------------------------------------------------------------------------- results that other tasks read


def test_cpp_tasks_read_results_of_earlier_tasks(client: CppClient, tmp_path: Path) -> None:
    """Of an open task, of one that has ended, of one that fails, and of several at once."""
    gate = tmp_path / "gate"
    client.say("submit json add [1, 2]", until(gate, tmp_path / "runs"), "read 1 json same []")
    client.say(
        "read 0,0 json add []", "read 3 json add [0.5]", 'submit json fail ["no such curve"]', "read 5 json same []"
    )
    client.expect("started 1")
    gate.touch()
    client.expect("resolved 6")
    client.say("read 0,3,1 json same [true]", "read 5 json same []", "read 99 json same []")
    client.end()
    (pid,) = begun(tmp_path / "runs")
    assert client.resolved[2] == ("value", f"[{pid}]")
    assert client.resolved[3] == ("value", "6") and client.resolved[4] == ("value", "6.5")
    assert client.resolved[5] == client.resolved[6] == ("exception", "no such curve")
    assert client.resolved[7] == ("value", f"[true,3,6,{pid}]")
    assert client.resolved[8][0] == client.resolved[9][0] == "inputLost"


def test_a_chain_and_a_large_result_read_by_many(client: CppClient) -> None:
    """An input of many rows comes in an `object`, one of few rows inside their payloads."""
    long = "x" * 200_000
    client.say("submit json add [0, 1]", *[f"read {i} json add [1]" for i in range(300)])
    client.say(f"submit raw reverse {long}y", *["read 301 raw reverse z"] * 40)
    client.end()
    assert [client.resolved[i] for i in range(301)] == [("value", str(i + 1)) for i in range(301)]
    assert {client.resolved[302 + i] for i in range(40)} == {("value", f"{long}yz")}


def test_cpp_client_keeps_results(daemon: SchedulerCommand, client: CppClient) -> None:
    long = "x" * 200_000
    client.say(f"keep raw reverse {long}y", "read 0 raw reverse z", "keep json add [1, 2]")
    client.say("fetch 0", "fetch 2", "fetch 99")
    client.expect_all("resolved 0", "resolved 1", "resolved 2", "fetched 0", "fetched 2", "lost 99")
    with monitor(daemon.monitor_address) as watch:
        wait_until(lambda: watch.next().objects == 2, SECONDS, "the two results are objects")
        client.say("forget 0", "forget 2")
        wait_until(lambda: watch.next().objects == 0, SECONDS, "they are freed")
    client.say("fetch 0")
    client.end()
    assert client.resolved[0] == ("kept", str(len(long) + 1))
    assert client.resolved[2] == ("value", "3"), "a small one comes at once, and can be fetched too"
    assert client.resolved[1] == ("value", f"{long}yz")
    assert {"lost 99", f"fetched 0 y{long}", "fetched 2 3"} <= set(client.seen)
    assert client.seen[-1] == "lost 0"


def test_results_that_the_scheduler_has_lost_are_made_again(tmp_path: Path) -> None:
    """The client sends the results that it has, and submits the tasks of kept ones again."""
    with (
        restarts(tmp_path) as daemon,
        cpp_worker(tmp_path, daemon.now.address),
        cpp_client(daemon.now.address) as client,
    ):
        long = "x" * 200_000
        client.say("submit raw reverse ab", "read 0 raw reverse c", "keep raw reverse de")
        client.say(f"keep raw reverse {long}y", f"keep raw reverse {long}z")
        client.expect_all("resolved 0 value ba", "resolved 1 value abc", "resolved 2 value ed")
        client.expect_all("resolved 3 kept 200001", "resolved 4 kept 200001")
        Restarts.kill(daemon)
        daemon.start(daemon.now.address)
        client.expect("welcome")
        client.say("read 0,2,3 raw reverse q", "fetch 4", "fetch 3")
        client.end()
    assert {f"fetched 4 z{long}", f"fetched 3 y{long}"} <= set(client.seen)
    assert client.resolved[5] == ("value", f"{long}ydeabq")


def test_a_python_worker_runs_functions_by_name_that_read_results(tmp_path: Path) -> None:
    """Its large results stay with the scheduler, as they are no objects of Python. Other hosts get them as well."""
    offered = ("--offer", "operator:add,operator:mul,zeros=builtins:bytes,len=builtins:len")
    with (
        scheduler(tmp_path) as daemon,
        cluster(tmp_path, daemon.address, 1, *offered),
        cpp_worker(tmp_path, daemon.address),
        cpp_client(daemon.address) as client,
    ):
        client.say("submit json mul [20, 2]", "read 0 json mul [3]", "read 1,0 json add []")
        client.say(f"keep raw zeros {'x' * 400_000}", "read 3 raw len y", "read 3 raw reverse y", "fetch 3")
        assert client.expect("fetched 3") == f"fetched 3 {'x' * 400_000}"
        client.end()
    assert client.resolved[1] == ("value", "120") and client.resolved[2] == ("value", "160")
    assert client.resolved[4][0] == "resultFailed", "a number is no result of the codec raw"
    assert client.resolved[5] == ("value", "x" * 400_000 + "y"), "the payload comes first, then the input"


# --------------------------------------------------------------------------------------------------- cancel, time limit


def test_cancel_of_queued_and_running_tasks_and_by_force(client: CppClient, tmp_path: Path) -> None:
    gate, log = tmp_path / "gate", tmp_path / "runs"
    client.say(until(gate, log), *["submit json add [1, 1]"] * 20)
    client.expect("started 0")
    client.say("cancel 20", "cancel 3", "cancel 0")
    client.expect("cancelRefused 0")
    client.say("force 0")
    client.end()
    assert client.resolved[0][0] == client.resolved[3][0] == client.resolved[20][0] == "cancelled"
    assert {client.resolved[i] for i in range(21) if i not in (0, 3, 20)} == {("value", "2")}
    assert len(begun(log)) == 1


def test_time_limit(daemon: SchedulerCommand, tmp_path: Path) -> None:
    with Client(daemon.address) as client:
        future = client.options(timeout=0.2).submit(named("until"), str(tmp_path / "gate"), str(tmp_path / "runs"))
        with pytest.raises(TaskTimeoutError):
            future.result(SECONDS)
        assert client.submit(named("add"), 1, 1).result(SECONDS) == 2


# ----------------------------------------------------------------------------------------------------- deaths, restarts


def test_a_killed_worker_s_tasks_run_elsewhere(daemon: SchedulerCommand, client: CppClient, tmp_path: Path) -> None:
    gate, log = tmp_path / "gate", tmp_path / "runs"
    client.say(until(gate, log), "many json add 100")
    wait_until(lambda: begun(log), SECONDS, "the task begins")
    client.expect("started 0")
    with cpp_worker(tmp_path, daemon.address, name="second"):
        os.kill(begun(log)[0], signal.SIGKILL)
        gate.touch()
        client.end()
    first, second = begun(log)
    assert client.resolved[0] == ("value", str(second)) and first != second
    assert [client.resolved[1 + i] for i in range(100)] == [("value", str(i + 1)) for i in range(100)]


def test_a_task_that_kills_each_worker_fails(daemon: SchedulerCommand, tmp_path: Path) -> None:
    log = tmp_path / "runs"
    with Client(daemon.address) as client:
        future = client.submit(named("until"), str(tmp_path / "gate"), str(log))
        with cpp_worker(tmp_path, daemon.address, name="second"):
            kill_that_begins(log, 0)
            kill_that_begins(log, 1)
        with pytest.raises(WorkerDiedError, match="lease ran out"):
            future.result(SECONDS)


def test_open_tasks_survive_a_killed_scheduler(tmp_path: Path) -> None:
    check_restart(tmp_path, Restarts.kill)


def test_goodbye(daemon: SchedulerCommand, tmp_path: Path) -> None:
    """A worker that leaves with a goodbye is gone at once, and its task runs elsewhere."""
    gate, log = tmp_path / "gate", tmp_path / "runs"
    with Client(daemon.address) as client:
        future = client.submit(named("until"), str(gate), str(log))
        wait_until(lambda: begun(log), SECONDS, "the task begins")
        with cpp_worker(tmp_path, daemon.address, name="second"):
            os.kill(begun(log)[0], signal.SIGTERM)
            gate.touch()
            assert future.result(SECONDS) == begun(log)[-1]
