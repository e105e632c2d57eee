"""Graphs while workers or the scheduler die."""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import numpy
import pytest
from tests.integration.commands import cluster, monitor
from tests.integration.executions import note, notes
from tests.integration.graph_parts import SECONDS, add, at_gate, inc, same
from tests.integration.host_files import files_of
from tests.integration.restarts import OFTEN, restarts
from tests.waiting import wait_until

from scaler_client import Client, SchedulerClusterCombo, WorkerDiedError

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def dies_once(log: str, value: Any) -> Any:
    note(log, "ran", "dies")
    if len(notes(log)) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return value


def dies(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_node_that_kills_its_worker(client: Client, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    graph = {"a": (inc, 1), "b": (dies_once, log, "a"), "c": (add, "a", "b"), "d": (inc, "c")}
    assert client.get(graph, ["d", "b"]) == {"d": 5, "b": 2}
    assert len(notes(log)) == 2
    bad, after, good = client.submit_graph({"a": (inc, 1), "b": (dies, "a"), "c": (same, "b")}, ["b", "c", "a"])
    assert good.result(SECONDS) == 2
    for future in (bad, after):
        assert isinstance(future.exception(SECONDS), WorkerDiedError)


def wide(log: str, gate: str, width: int = 12) -> dict[Any, Any]:
    """Return a graph of large values. Half of them are computed before the gate opens."""
    graph: dict[Any, Any] = {"base": (numpy.arange, 50_000)}
    graph.update({("made", i): (add, "base", i) for i in range(width)})
    graph.update({("read", i): (partial(at_gate, log, str(i), gate), ("made", i)) for i in range(width)})
    graph.update({("sum", i): (lambda array, _: int(array.sum()), ("made", i), ("read", i)) for i in range(width)})
    graph["total"] = (sum, [("sum", i) for i in range(width)])
    return graph


TOTAL = 12 * sum(range(50_000)) + 50_000 * sum(range(12))


def test_a_worker_is_killed_during_a_graph(combo: SchedulerClusterCombo, tmp_path: Path, gate: Path) -> None:
    log = str(tmp_path / "log")
    with Client(combo) as client:
        total, one = client.submit_graph(wide(log, str(gate)), ["total", ("sum", 3)])
        wait_until(lambda: len(notes(log)) == 2)
        for each in notes(log):
            os.kill(each.pid, signal.SIGKILL)
        wait_until(lambda: len(notes(log)) == 4, what="other workers")
        gate.touch()
        assert total.result(SECONDS) == TOTAL
        assert one.result(SECONDS) == sum(range(50_000)) + 150_000


@pytest.mark.parametrize("way", ["kill", "stop"])
def test_the_scheduler_is_restarted_during_a_graph(tmp_path: Path, gate: Path, way: str) -> None:
    log = str(tmp_path / "log")
    with restarts(tmp_path) as daemon, cluster(tmp_path, daemon.now.address, 2, *OFTEN) as host:
        with Client(daemon.now.address, heartbeat_interval_seconds=0.2) as client:
            ref = client.send_object(numpy.arange(100_000))
            graph = {**wide(log, str(gate)), "object": (lambda array, _: int(array.sum()), ref, "total")}
            total, answered, of_object = client.submit_graph(graph, ["total", ("made", 1), "object"])
            assert answered.result(SECONDS)[0] == 1
            wait_until(lambda: len(notes(log)) == 2)
            daemon.kill() if way == "kill" else daemon.stop()
            daemon.start(daemon.now.address)
            with monitor(daemon.now.monitor_address) as watch:
                wait_until(lambda: watch.next().waiting > 0, what="the graph is there again")
            gate.touch()
            assert total.result(SECONDS) == TOTAL
            assert of_object.result(SECONDS) == sum(range(100_000))
            assert client.submit(len, ref).result(SECONDS) == 100_000
            del ref, of_object, graph
            wait_until(lambda: not files_of(host))


def test_the_scheduler_is_killed_repeatedly(tmp_path: Path) -> None:
    with restarts(tmp_path) as daemon, cluster(tmp_path, daemon.now.address, 2, *OFTEN):
        with Client(daemon.now.address, heartbeat_interval_seconds=0.2) as client:
            count = 30_000
            graph: dict[int, Any] = {0: (int,), **{key: (inc, key // 3) for key in range(1, count)}}
            targets = list(range(count - 500, count))
            expected = {0: 0}
            for key in range(1, count):
                expected[key] = expected[key // 3] + 1
            futures = client.submit_graph(graph, targets)
            for _ in range(3):
                with monitor(daemon.now.monitor_address) as watch:
                    wait_until(lambda: watch.next().resolved or futures[-1].done(), what="results")
                daemon.kill()
                daemon.start(daemon.now.address)
            assert [future.result(SECONDS) for future in futures] == [expected[key] for key in targets]
