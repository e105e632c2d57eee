"""joblib calls on a real cluster."""

from __future__ import annotations

import gc
import operator
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import cloudpickle
import joblib
import numpy as np
import pytest
import threadpoolctl
from joblib import Parallel, delayed
from tests.adapters.conftest import WORKERS
from tests.integration.commands import monitor, monitor_address_of
from tests.waiting import wait_until

from scaler_client import Client, ClientClosedError, SchedulerClusterCombo, register_joblib
from scaler_client.adapters import joblib_backend
from scaler_client.adapters.joblib_calls import ParallelCall
from scaler_client.commands.install_hints import install_hint
from scaler_client.io.connection import Connection

cloudpickle.register_pickle_by_value(sys.modules[__name__])

FOREVER = 600.0


def test_futures_stand_for_their_results(backend: None, client: Client) -> None:
    done, large = client.submit(operator.add, 1, 2), client.submit(bytes, 100_000)
    assert done.result(60) == 3
    calls = [delayed(operator.add)(client.submit(operator.neg, number), done) for number in range(20)]
    assert Parallel()(calls) == [3 - number for number in range(20)]
    assert Parallel()(delayed(len)(each) for each in (large, [done, large], {"k": large})) == [100_000, 2, 1]
    for view in (client.options(priority=3), client.options(keep=True)):
        with joblib.parallel_config(backend="scaler", client=view):
            of_view = view.submit(operator.neg, 1)
            assert Parallel()(delayed(operator.add)(each, of_view) for each in (done, client.submit(abs, -2))) == [2, 1]
    failed = client.submit(operator.truediv, 1, 0)
    with pytest.raises(ZeroDivisionError) as raised:
        Parallel()([delayed(operator.add)(failed, 1)])
    assert f"(task truediv#{failed.task_id}, an input of " in str(raised.value.__cause__)


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    register_joblib()


@pytest.fixture
def backend(client: Client) -> Iterator[None]:
    with joblib.parallel_config(backend="scaler", client=client):
        yield


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The submitted batches, in order."""
    batches: list[Any] = []
    submit = ParallelCall.submit

    def note(call: Any, batch: Any, *arguments: Any) -> Any:
        batches.append(batch)
        return submit(call, batch, *arguments)

    monkeypatch.setattr(ParallelCall, "submit", note)
    return batches


def square(number: int, plus: int = 0) -> int:
    return number * number + plus


def process(_: int) -> int:
    return os.getpid()


def fail(number: int) -> int:
    if number == 3:
        raise LookupError("three")
    return number


def note_and_wait(folder: Path, number: int) -> None:
    (folder / str(number)).touch()
    time.sleep(FOREVER)


def fail_when(folder: Path) -> NoReturn:
    """Raise an error once another call has begun."""
    while not any(folder.iterdir()):
        time.sleep(0.01)
    raise LookupError("now")


def test_with_an_address(combo: SchedulerClusterCombo) -> None:
    with joblib.parallel_config(backend="scaler", address=combo.get_address()):
        assert joblib.effective_n_jobs() == WORKERS
        assert Parallel()(delayed(square)(i) for i in range(100)) == [i * i for i in range(100)]


def own_name() -> Any:
    import joblib_own_module  # type: ignore[import-not-found]

    return joblib_own_module.NAME


def test_own_modules_are_uploaded(combo: SchedulerClusterCombo, tmp_path: Path) -> None:
    (tmp_path / "joblib_own_module.py").write_text("NAME = 'uploaded'\n")
    with joblib.parallel_config(backend="scaler", address=combo.get_address(), modules=[tmp_path]):
        assert Parallel()(delayed(own_name)() for _ in range(4)) == ["uploaded"] * 4


def test_as_an_argument_of_parallel(combo: SchedulerClusterCombo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALER_ADDRESS", combo.get_address())
    assert Parallel(n_jobs=2, backend="scaler")(delayed(square)(i) for i in range(9)) == [i * i for i in range(9)]


def test_results_are_as_with_1_job(backend: None) -> None:
    calls = [delayed(square)(i, plus=i) for i in range(500)]
    calls += [delayed(lambda a, *, b: a - b)(i, b=2) for i in range(9)]
    calls += [delayed(operator.neg)(np.arange(3))]
    ours, theirs = Parallel()(calls), Parallel(n_jobs=1)(calls)
    assert ours[:-1] == theirs[:-1]
    assert (ours[-1] == theirs[-1]).all()


@pytest.mark.parametrize(
    "settings",
    [{"batch_size": 7}, {"pre_dispatch": "all"}, {"pre_dispatch": 1}, {"n_jobs": 3}, {"timeout": 60}, {"verbose": 1}],
)
def test_settings_of_a_call(settings: dict[str, Any], backend: None) -> None:
    assert Parallel(**settings)(delayed(square)(i) for i in range(60)) == [i * i for i in range(60)]


def test_results_one_by_one(backend: None) -> None:
    in_order = Parallel(return_as="generator")(delayed(square)(i) for i in range(60))
    assert list(in_order) == [i * i for i in range(60)]
    in_any_order = Parallel(return_as="generator_unordered")(delayed(square)(i) for i in range(60))
    assert sorted(in_any_order) == [i * i for i in range(60)]


def test_calls_run_on_the_workers_even_on_one_worker() -> None:
    with SchedulerClusterCombo(n_workers=1) as combo:
        with joblib.parallel_config(backend="scaler", address=combo.get_address()):
            processes = set(Parallel()(delayed(process)(i) for i in range(4)))
    assert len(processes) == 1 and os.getpid() not in processes


def test_one_job_runs_here(backend: None) -> None:
    assert Parallel(n_jobs=1)(delayed(process)(i) for i in range(2)) == [os.getpid()] * 2


def test_how_many_jobs(backend: None) -> None:
    assert joblib.effective_n_jobs() == joblib.effective_n_jobs(-1) == WORKERS
    assert joblib.effective_n_jobs(-2) == joblib.effective_n_jobs(-100) == 2
    assert joblib.effective_n_jobs(7) == 7
    with pytest.raises(ValueError, match="n_jobs == 0"):
        joblib.effective_n_jobs(0)


def test_an_unknown_number_of_workers_warns(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joblib_backend, "_worker_counts", {})
    monkeypatch.setattr(Connection, "wait_for_snapshot", lambda *_: None)
    monkeypatch.setattr(Connection, "latest_snapshot", lambda _: None)
    with joblib.parallel_config(backend="scaler", client=client):
        with pytest.warns(UserWarning, match=f"the number of workers of the scheduler at {client.address} is unknown"):
            assert joblib.effective_n_jobs() == max(2, joblib.cpu_count())
        assert joblib.effective_n_jobs() == max(2, joblib.cpu_count())  # warns once
    with joblib.parallel_config(backend="scaler", client=client, n_workers=40):
        assert joblib.effective_n_jobs() == 40


def test_short_calls_are_batched(submitted: list[Any], backend: None) -> None:
    assert len(Parallel()(delayed(square)(i) for i in range(2000))) == 2000
    assert len(submitted) < 500


def test_the_exception_of_a_call_is_raised(backend: None) -> None:
    with pytest.raises(LookupError, match="three") as raised:
        Parallel()(delayed(fail)(i) for i in range(10))
    assert "in fail" in str(raised.value.__cause__)
    assert Parallel()([delayed(fail)(1)]) == [1]


def test_an_error_stops_the_other_calls(backend: None, client: Client, tmp_path: Path) -> None:
    # The first call on its worker, while another call runs on the other worker.
    calls = [delayed(fail_when)(tmp_path), *(delayed(note_and_wait)(tmp_path, i) for i in range(20))]
    with pytest.raises(LookupError, match="now"):
        Parallel(batch_size=1, pre_dispatch="all")(calls)
    # No call occupies a worker.
    assert [future.result(30) for future in [client.submit(square, i) for i in range(4)]] == [0, 1, 4, 9]


def where(array: Any, keyword: Any = None) -> tuple[bool, bool, float]:
    return array.flags.writeable, keyword is None or keyword.flags.writeable, float(array[0])


def test_large_arrays_are_sent_once(backend: None, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    send = Client.send_object

    def note(client: Any, value: Any, **options: Any) -> Any:
        sent.append(value)
        return send(client, value, **options)

    monkeypatch.setattr(Client, "send_object", note)
    large, small = np.ones(200_000), np.ones(10)
    calls = [delayed(where)(large), delayed(where)(small), delayed(where)(small, keyword=large)] * 20
    assert Parallel()(calls) == [(False, True, 1.0), (True, True, 1.0), (True, False, 1.0)] * 20
    assert len(sent) == 1 and sent[0] is large
    assert Parallel(max_nbytes=None)(calls[:1]) == [(True, True, 1.0)] and len(sent) == 1
    some = np.ones(10_000)
    assert Parallel()([delayed(where)(some)]) == [(True, True, 1.0)] and len(sent) == 1
    assert Parallel(max_nbytes=80_000)([delayed(where)(some)]) == [(False, True, 1.0)] and len(sent) == 2


@pytest.mark.parametrize("position", [0, 30])
def test_an_argument_that_cannot_be_pickled(position: int, backend: None) -> None:
    arguments: list[Any] = list(range(40))
    arguments[position] = threading.Lock()
    with pytest.raises(TypeError, match="can't be pickled"):
        Parallel(pre_dispatch=2, batch_size=1)(delayed(square)(each) for each in arguments)


@pytest.mark.parametrize("position", [0, 30])
def test_an_iterable_that_raises(position: int, backend: None) -> None:
    def calls() -> Iterator[Any]:
        for i in range(40):
            if i == position:
                raise LookupError("no more")
            yield delayed(square)(i)

    with pytest.raises(LookupError, match="no more"):
        Parallel(pre_dispatch=2, batch_size=1)(calls())


def test_a_timeout(backend: None, client: Client) -> None:
    with pytest.raises((TimeoutError, joblib.parallel.TimeoutError)):
        Parallel(timeout=0.2)(delayed(time.sleep)(FOREVER) for _ in range(4))
    assert client.submit(square, 3).result(30) == 9


def test_a_client_that_disconnects_meanwhile(combo: SchedulerClusterCombo, tmp_path: Path) -> None:
    with Client(combo.get_address(), timeout_seconds=30) as client, joblib.parallel_config("scaler", client=client):

        def leave() -> None:
            wait_until((tmp_path / "0").exists)
            client.disconnect()

        leaving = threading.Thread(target=leave)
        leaving.start()
        with pytest.raises(ClientClosedError):
            Parallel()(delayed(note_and_wait)(tmp_path, i) for i in range(4))
        leaving.join()


def test_the_client_disconnects_with_its_backend(combo: SchedulerClusterCombo) -> None:
    with monitor(monitor_address_of(combo.get_address())) as watch:
        before = watch.next().clients
        with joblib.parallel_config(backend="scaler", address=combo.get_address()):
            assert Parallel()(delayed(square)(i) for i in range(5)) == [0, 1, 4, 9, 16]
            wait_until(lambda: watch.next().clients == before + 1)
        gc.collect()
        wait_until(lambda: watch.next().clients == before)


def test_tasks_have_the_options_of_the_client(client: Client) -> None:
    with joblib.parallel_config(backend="scaler", client=client.options(retries=2, retry_on=LookupError)):
        with pytest.raises(LookupError):
            Parallel()(delayed(fail)(i) for i in range(5))
    with joblib.parallel_config(backend="scaler", client=client.options(timeout=0.2)):
        with pytest.raises(Exception, match="time limit"):
            Parallel()(delayed(time.sleep)(FOREVER) for _ in range(2))


def set_up(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(f"{os.getpid()} {text}\n")


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


@pytest.mark.parametrize("where", ["Parallel", "parallel_config"])
def test_an_initializer(where: str, client: Client, tmp_path: Path) -> None:
    log = tmp_path / "log"
    given: dict[str, Any] = {"initializer": set_up, "initargs": (log, "here")}
    of_parallel, of_config = (given, {}) if where == "Parallel" else ({}, given)
    with joblib.parallel_config(backend="scaler", client=client, **of_config):
        parallel = Parallel(batch_size=1, **of_parallel)
        processes = set(parallel(delayed(process)(i) for i in range(20)))
        processes |= set(parallel(delayed(process)(i) for i in range(20)))
    # It ran once in each process, before the first call there.
    assert sorted(lines_of(log)) == sorted(f"{each} here" for each in processes)


def test_an_initializer_runs_for_nested_calls(client: Client, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def inner(_: int) -> list[int]:
        return Parallel(n_jobs=2, batch_size=1)(delayed(process)(i) for i in range(4))

    with joblib.parallel_config(backend="scaler", client=client):
        found = Parallel(initializer=set_up, initargs=(log, "here"))(delayed(inner)(i) for i in range(2))
    assert {f"{each} here" for some in found for each in some} <= set(lines_of(log))


def test_an_initializer_that_raises(backend: None) -> None:
    with pytest.raises(LookupError, match="three"):
        Parallel(initializer=fail, initargs=(3,))(delayed(square)(i) for i in range(4))
    with pytest.raises(TypeError, match="initializer must be callable, not 5"):
        Parallel(initializer=5)(delayed(square)(i) for i in range(4))


def test_an_ignored_setting_warns(backend: None) -> None:
    with pytest.warns(UserWarning, match="the joblib backend scaler ignores the setting env="):
        assert Parallel(env={"A": "1"})(delayed(square)(i) for i in range(4)) == [0, 1, 4, 9]


def test_several_calls_in_one_parallel_config(backend: None) -> None:
    squares = [i * i for i in range(60)]
    with Parallel() as first:
        assert first(delayed(square)(i) for i in range(60)) == squares
        assert Parallel()(delayed(square)(i) for i in range(60)) == squares  # has no effect afterwards
        gc.collect()
        assert first(delayed(square)(i) for i in range(60)) == squares


def test_concurrent_calls_in_one_parallel_config(backend: None, tmp_path: Path) -> None:
    slow = Parallel(return_as="generator", pre_dispatch=1, batch_size=1)(delayed(square)(i) for i in range(60))
    assert next(slow) == 0
    with pytest.raises(LookupError, match="three"):  # stops only its own batches
        Parallel()(delayed(fail)(i) for i in range(10))
    assert list(slow) == [i * i for i in range(1, 60)]


def test_inner_max_num_threads(client: Client) -> None:
    def threads(_: int) -> set[int]:
        np.ones((2, 2)) @ np.ones((2, 2))
        return {library["num_threads"] for library in threadpoolctl.threadpool_info()}

    with joblib.parallel_config(backend="scaler", client=client, inner_max_num_threads=1):
        assert Parallel()(delayed(threads)(i) for i in range(4)) == [{1}] * 4


@pytest.mark.parametrize(
    ("settings", "kind", "text"),
    [
        ({"client": "tcp://127.0.0.1:1"}, TypeError, "client must be a scaler_client.Client, not 'tcp://127.0.0.1:1'"),
        ({"n_workers": 0}, ValueError, "n_workers must be >= 1, not 0"),
        ({"n_workers": "2"}, TypeError, "n_workers must be a whole number, not '2'"),
        ({"address": "127.0.0.1"}, ValueError, "bad address '127.0.0.1'"),
        ({"workers": 2}, TypeError, "workers"),
        ({"modules": 3}, TypeError, "modules"),
        ({"environment": "/absent"}, ValueError, "/absent"),
    ],
)
def test_bad_settings(settings: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        joblib.parallel_config(backend="scaler", **settings)


def test_both_an_address_and_a_client_raise(client: Client) -> None:
    with pytest.raises(ValueError, match="both an address"):
        joblib.parallel_config(backend="scaler", client=client, address=client.address)


@pytest.mark.parametrize("setting", [{"modules": ["."]}, {"environment": "requirements.txt"}])
def test_a_client_and_what_its_tasks_import_raise(client: Client, setting: dict[str, Any]) -> None:
    (name,) = setting
    with pytest.raises(ValueError, match=f"give {name}= to the client"):
        joblib.parallel_config(backend="scaler", client=client, **setting)


def test_without_joblib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joblib", None)
    monkeypatch.delitem(sys.modules, "scaler_client.adapters.joblib_backend")
    with pytest.raises(ImportError, match=re.escape(f"needs joblib 1.5 or newer: {install_hint('joblib')}")):
        register_joblib()
