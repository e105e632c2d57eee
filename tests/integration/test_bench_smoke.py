"""`make bench` at small sizes: every measure gives its figures, and no process stays. Speed is not tested."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pkgutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import benchmarks
import pytest
from benchmarks import run as bench
from benchmarks.figures import Figure
from benchmarks.namespaces import reason_against
from tests.integration.marked_process import marked_process
from tests.waiting import wait_until

from scaler_client.api.scheduler_commands import SCHEDULER_PYTHON_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
PYPY = ROOT / ".venv-pypy" / "bin" / "python"
PATIENCE_SECONDS = 280

FIGURES = {
    "submit": {"submit.rate", "submit.pool_rate", "submit.ratio_to_pool", "submit.captures"}
    | {f"submit.{way}_ratio_to_pool" for way in ("values", "callbacks", "as_completed")},
    "map": {"map.rate", "map.pool_rate", "map.executor_rate", "map.ratio_to_pool", "map.ratio_to_executor"},
    "latency": {
        "latency.raw_median", "latency.raw_p99",
        *(f"latency.{name}{figure}" for name in ("", "single_", "tcp_") for figure in ("median", "p99")),
        "latency.ratio_to_raw", "latency.p99_ratio", "latency.single_ratio", "latency.single_p99_ratio",
        "latency.tcp_ratio", "latency.tcp_p99_ratio",
    },
    "scheduler": {
        "scheduler.cpython_rate", "scheduler.cpython_cpu", "scheduler.cpython_busy", "scheduler.cpython_booking",
    },  # fmt: skip
    "memory": {"memory.per_waiting_task", "memory.payload", "memory.growth"},
    "monitor": {
        "monitor.cost", "monitor.history_cost", "monitor.all_cost", "monitor.snapshot", "monitor.history",
        "monitor.unwatched_rate", "monitor.rate", "monitor.ratio", "monitor.history_ratio", "monitor.all_ratio",
        "monitor.keyed_cost", "monitor.keyed_ratio",
    },
    "sleep": {"sleep.fixed", "sleep.random", "sleep.map", "sleep.mix"},
    "tcp": {"tcp.map_rate"},
    "start": {"start.seconds"},
    "large": {"large.round_trip"},
    "graph": {
        "graph.plain",
        "graph.tree",
        "graph.tree_ratio",
        "graph.levels",
        "graph.levels_ratio",
        "graph.client_memory",
        "graph.scheduler_memory",
    },
    "chains": {"chains.plain", "chains.plain_processor"}
    | {f"chains.{shape}{what}" for shape in ("chain", "tree") for what in ("", "_ratio", "_processor_ratio")},
    "inputs": {f"inputs.{kind}_{how}" for kind in ("array", "columns", "floats") for how in ("own", "shared")},
    "stencil": {f"stencil.{width}{what}" for width in (2, 8) for what in ("", "_pool", "_ratio")},
    "analysis": {"analysis.tree.999.python", "analysis.levels.1000.python"},
    "data": {
        f"data.{each}"
        for each in (
            "raw", "raw_curve", "task", "tcp", "keyed", "ratio", "tcp_ratio", "keys_ratio", "keyed_ratio",
            "curve_ratio", "curve_share", "memcpy", "fresh", "array", "array_sum", "array_rate", "array_ratio",
            "array_once",
            *(f"{kind}_{size}" for kind in ("result", "local") for size in ("0.1", "0.4", "1", "8", "80")),
        )
    },
    "encryption": {
        f"encryption.{each}"
        for name in ("keyed_", "plain_")
        for each in (f"{name}rate", f"{name}median", f"{name}large")
    }
    | {"encryption.rate_ratio", "encryption.median_ratio", "encryption.large_ratio"},
    "hostile": {
        "hostile.competing", "hostile.half_open", "hostile.half_message", "hostile.unread",
        "hostile.deaf",
        *(
            f"hostile.{flood}"
            for flood in (
                "heartbeats", "hellos", "malformed", "strangers", "replays", "cancels", "submits", "subscriptions",
                "connects",
            )
        ),
        "hostile.handshakes_6", "hostile.keyed_handshakes_6",
    },
    "scale": {
        *(f"scale.cpu{way}_{count}" for way in ("", "_one_by_one") for count in (2, 10, 20, 40, "ratio")),
        "scale.idle", "scale.rate_few", "scale.rate", "scale.rate_ratio", "scale.lone_few", "scale.lone",
        "scale.lone_ratio", "scale.idle_workers", "scale.back",
    },
    "environments": {
        f"environments.{each}"
        for each in (
            "changed", "again", "again_ratio", "again_client", "again_processor",
            "installer", "first", "beyond", "another",
        )
    },
    "hosts": {
        f"hosts.{each}"
        for each in (
            "one", "one_share", "three", "three_ratio", "scheduler_bytes", "rate", "client", "client_share",
            "client_bytes", "argument", "argument_share", "argument_bytes", "shared", "chain", "chain_alone",
            "chain_ratio", "working_set", "resident", "merge", "killed", "killed_seconds",
        )
    },
}  # fmt: skip
UNDER_PYPY = {
    "scheduler.pypy_rate", "scheduler.pypy_cpu", "scheduler.pypy_busy", "scheduler.pypy_booking", "scheduler.ratio",
}  # fmt: skip
WITH_GRAPHBLAS = {
    f"analysis.{shape}.{what}" for shape in ("tree.999", "levels.1000") for what in ("graphblas", "ratio")
}
BARS = {
    "submit.rate": ("at least", 200_000),
    "submit.ratio_to_pool": ("at least", 25),
    "submit.callbacks_ratio_to_pool": ("at least", 15),
    "submit.as_completed_ratio_to_pool": ("at least", 15),
    "map.rate": ("at least", 400_000),
    "map.ratio_to_pool": ("at least", 0.5),
    "map.ratio_to_executor": ("at least", 3),
    "latency.ratio_to_raw": ("at most", 1.5),
    "latency.p99_ratio": ("at most", 1.5),
    "latency.single_ratio": ("at most", 1.5),
    "latency.single_p99_ratio": ("at most", 1.5),
    "scheduler.pypy_rate": ("at least", 500_000),
    "scheduler.pypy_booking": ("at most", 1.25),
    "memory.per_waiting_task": ("at most", 200),
    "monitor.cost": ("at most", 1),
    "monitor.history_cost": ("at most", 1),
    "monitor.all_cost": ("at most", 1),
    "monitor.keyed_cost": ("at most", 1),
    "sleep.fixed": ("at least", 95),
    "sleep.random": ("at least", 95),
    "sleep.map": ("at least", 95),
    "sleep.mix": ("at least", 90),
    "environments.changed": ("at most", 1.0),
    "environments.again_ratio": ("at most", 1.1),
    "environments.beyond": ("at most", 2.0),
    "environments.another": ("at most", 1.0),
    "data.ratio": ("at most", 1.5),
    "data.tcp_ratio": ("at most", 1.5),
    "data.keys_ratio": ("at most", 1.3),
    "data.keyed_ratio": ("at most", 1.5),
    "data.array_ratio": ("at least", 0.5),
    "data.array_once": ("at least", 0.5),
    "graph.tree_ratio": ("at most", 1.4),
    "graph.levels_ratio": ("at most", 2),
    "graph.client_memory": ("at most", 4000),
    "graph.scheduler_memory": ("at most", 1000),
    **{f"chains.{each}_ratio": ("at most", 2) for each in ("chain", "tree", "chain_processor", "tree_processor")},
    "stencil.2_ratio": ("at most", 1),
    "stencil.8_ratio": ("at most", 1),
    "scale.idle": ("at most", 0.25),
    "scale.rate_ratio": ("at least", 0.8),
    "scale.lone_ratio": ("at most", 2),
    "scale.back": ("at most", 10),
    "hosts.one_share": ("at least", 0.7),
    "hosts.three_ratio": ("at most", 1.5),
    "hosts.scheduler_bytes": ("at most", 10),
    "hosts.client_bytes": ("at most", 10),
    "hosts.argument_bytes": ("at most", 10),
    "hosts.shared": ("at most", 1.1),
    "hosts.chain": ("at most", 20),
    "hosts.resident": ("at most", 1.2),
    "hosts.killed": ("at least", 2),
    **dict.fromkeys(FIGURES["hostile"] - {"hostile.competing"}, ("at least", 0.8)),
    "hostile.handshakes_6": ("at most", 8),
    "hostile.keyed_handshakes_6": ("at most", 8),
}


pytestmark = [
    pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="finds its processes in /proc"),
    pytest.mark.timeout(PATIENCE_SECONDS + 60),
]


@pytest.mark.parametrize("name", FIGURES)
def test_a_measure_gives_figures(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "scheduler" and PYPY.exists():  # it compares PyPy with this CPython
        monkeypatch.setenv(SCHEDULER_PYTHON_VARIABLE, str(PYPY))
    with marked_process("benchmarks.run", "--quick", "--only", name, "--results", str(tmp_path)) as run:
        output, errors = run.process.communicate(timeout=PATIENCE_SECONDS)
        assert run.process.returncode == 0, errors
        assert "Traceback" not in errors
        run.assert_nothing_left()
    [file] = tmp_path.iterdir()
    assert str(file) in output
    result = json.loads(file.read_text())
    assert set(result) == {"date", "quick", "machine", "versions", "source", "measures"}
    assert result["quick"] is True
    assert set(result["machine"]) == {"cpu", "cores", "memory_bytes", "kernel"}
    assert set(result["versions"]) == {"client_and_workers", "scheduler", "distributions"}
    assert set(result["source"]) == {"revision", "has_changes"}
    is_pypy = result["versions"]["scheduler"]["implementation"] == "PyPy"
    assert list(result["measures"]) == [name]
    measure = result["measures"][name]
    assert set(measure) == {"seconds", "busy_before_percent", "steal_percent", "error", "figures"}
    expected = FIGURES[name] | (UNDER_PYPY if name == "scheduler" and is_pypy else set())
    if name == "analysis" and importlib.util.find_spec("graphblas") is not None:
        expected |= WITH_GRAPHBLAS
    if name == "hosts" and reason_against():
        assert "not measured, as it needs network namespaces" in output
        expected = set()
    assert {figure["name"] for figure in measure["figures"]} == expected
    for figure in measure["figures"]:
        assert_is_sound(figure)
        assert figure["title"] in output


def test_every_measure_of_the_benchmarks_is_run_and_tested() -> None:
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    modules = [importlib.import_module(f"benchmarks.{name}") for name in names]
    written = {
        value
        for module in modules
        for name, value in vars(module).items()
        if name.startswith("measure") and callable(value) and value.__module__ == module.__name__
    }
    assert written == {*bench.MEASURES.values(), *bench.ON_REQUEST.values()}
    assert set(bench.MEASURES) <= set(FIGURES) <= {*bench.MEASURES, *bench.ON_REQUEST}


def test_a_measure_that_fails_is_named_at_the_end_and_keeps_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def works(is_quick: bool) -> list[Figure]:
        return [Figure("works", "what works", "tasks", [1.0])]

    def fails(is_quick: bool) -> list[Figure]:
        raise RuntimeError("the scheduler does not answer")

    monkeypatch.setattr(bench, "MEASURES", {"first": works, "broken": fails, "last": works})
    monkeypatch.setattr(bench, "interrupt_on_signals", lambda: None)
    for command in ("SCHEDULER", "CLUSTER"):  # the benchmark would set it for this process
        monkeypatch.setenv(f"SCALER_{command}_LOGGING_LEVEL", "WARNING")
    assert bench.main(["--quick", "--results", str(tmp_path)]) == 1
    output, errors = capfd.readouterr()
    assert errors.splitlines()[-1] == "[bench] broken gave no figures: RuntimeError: the scheduler does not answer"
    assert output.count("  what works") == 2
    measures = json.loads(next(tmp_path.iterdir()).read_text())["measures"]
    assert {name: len(measure["figures"]) for name, measure in measures.items()} == {"first": 1, "broken": 0, "last": 1}
    assert measures["broken"]["error"] == "RuntimeError: the scheduler does not answer"


def test_a_measure_that_hangs_is_ended_and_keeps_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ended = []

    def hangs(is_quick: bool) -> list[Figure]:
        try:
            threading.Event().wait()
        finally:
            ended.append(True)
        return []

    def works(is_quick: bool) -> list[Figure]:
        return [Figure("works", "what works", "tasks", [1.0])]

    monkeypatch.setattr(bench, "MEASURES", {"hung": hangs, "last": works})
    monkeypatch.setattr(bench, "MEASURE_SECONDS", 0.2)
    monkeypatch.setattr(bench, "interrupt_on_signals", lambda: None)
    for command in ("SCHEDULER", "CLUSTER"):  # which it would set for this process
        monkeypatch.setenv(f"SCALER_{command}_LOGGING_LEVEL", "WARNING")
    assert bench.main(["--quick", "--results", str(tmp_path / "first")]) == 1
    assert ended
    output, errors = capfd.readouterr()
    assert errors.splitlines()[-1] == "[bench] hung gave no figures: TimeoutError: not done within 0 s"
    assert "  what works" in output
    monkeypatch.setattr(bench, "RUN_SECONDS", 0.0)
    assert bench.main(["--quick", "--results", str(tmp_path / "second")]) == 1
    assert capfd.readouterr().err.splitlines()[-2:] == [
        f"[bench] {name} gave no figures: TimeoutError: the whole run has taken 0 minutes" for name in ("hung", "last")
    ]


def assert_is_sound(figure: dict[str, Any]) -> None:
    assert set(figure) == {"name", "title", "unit", "runs", "median", "min", "max", "bar", "bar_is", "is_met"}
    name, runs = figure["name"], figure["runs"]
    assert isinstance(name, str) and isinstance(runs, list) and runs
    # For few tasks and few connections, the memory that PyPy already has may be enough.
    # A few idle workers may take less than a tick. A difference of two noisy times has any sign.
    exempt = ("memory.per_waiting_task", "scale.idle_workers", "data.curve_share", "environments.beyond")
    if name not in exempt and "handshakes" not in name:
        assert min(runs) > 0, figure
    least, median, most = figure["min"], figure["median"], figure["max"]
    assert isinstance(median, float) and least == min(runs) and most == max(runs)
    assert least <= median <= most
    if name in BARS:
        kind, bar = BARS[name]
        assert (figure["bar_is"], figure["bar"]) == (kind, bar)
        assert figure["is_met"] is (median >= bar if kind == "at least" else median <= bar)
    else:
        assert (figure["bar_is"], figure["bar"], figure["is_met"]) == (None, None, None)


@pytest.mark.parametrize("measure, processes", [("submit", 16), ("latency", 16), ("scheduler", 2)])
def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, measure: str, processes: int) -> None:
    with marked_process("benchmarks.run", "--quick", "--only", measure, "--results", str(tmp_path)) as run:
        wait_until(lambda: len(run.descendants()) >= processes, what=f"{processes} processes")
        run.process.send_signal(signal.SIGINT)
        _, errors = run.process.communicate(timeout=PATIENCE_SECONDS)
        assert run.process.returncode == 130
        assert errors.endswith("interrupted\n")
        assert "Traceback" not in errors
        run.assert_nothing_left()
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_measure_is_one_error_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.run", "--only", "submit,speed"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("benchmarks.run: error: argument --only: no measure 'speed'")
