"""`make bench-peers` at small sizes, with Scaler and the standard library. Speed is not tested."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import metg
from benchmarks.compared import rows, run
from benchmarks.compared.catalogue import ROWS, SYSTEMS
from benchmarks.compared.program import MEASURES
from tests.integration.marked_process import marked_process

PATIENCE_SECONDS = 280

pytestmark = [
    pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="it finds processes in /proc"),
    pytest.mark.timeout(PATIENCE_SECONDS + 60),
]


@pytest.fixture
def environments(tmp_path: Path) -> Path:
    """This environment in place of those of `packaging/setup.sh peers`."""
    folder = tmp_path / "environments"
    folder.mkdir()
    for name in ("scaler", "standard"):
        (folder / name).symlink_to(sys.prefix)
    return folder


def test_rows_give_figures_and_a_missing_system_is_said(tmp_path: Path, environments: Path) -> None:
    results = tmp_path / "results"
    options = ["--quick", "--results", str(results), "--environments", str(environments)]
    chosen = ["--systems", "scaler,executor,hyperqueue", "--rows", "submit,graph,memory"]
    with marked_process("benchmarks.compared.run", *options, *chosen) as command:
        output, errors = command.process.communicate(timeout=PATIENCE_SECONDS)
        assert command.process.returncode == 0, errors
        command.assert_nothing_left()
    assert "[peers] hyperqueue is left out" in output
    [file] = results.iterdir()
    assert str(file) in output
    result = json.loads(file.read_text())
    assert result["systems"]["scaler"]["version"] and not result["systems"]["hyperqueue"]["version"]
    figures = {row: {name: each["figures"] for name, each in found.items()} for row, found in result["rows"].items()}
    for name in ("scaler", "executor"):
        assert figures["submit"][name]["submit"]["median"] > 0
    assert figures["graph"]["scaler"]["graph"]["median"] > 0
    assert figures["graph"]["executor"]["graph"] == {"unable": "it has no dependencies between tasks"}
    assert len(figures["memory"]["scaler"]["memory"]["runs"]) == 1
    assert "waiting tasks are in the program" in figures["memory"]["executor"]["memory"]["unable"]


def test_a_failure_is_named_at_the_end_and_loses_nothing_else(
    tmp_path: Path, environments: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The environment of loky does not have it, and its version is made up."""
    (environments / "loky").symlink_to(sys.prefix)
    monkeypatch.setattr(run, "_version", lambda python, entry: "1.0")
    monkeypatch.setattr(run, "interrupt_on_signals", lambda: None)
    options = ["--quick", "--results", str(tmp_path / "results"), "--environments", str(environments)]
    assert run.main([*options, "--systems", "executor,loky", "--rows", "start"]) == 1
    errors = capfd.readouterr().err
    assert errors.splitlines()[-1].startswith("[peers] start of loky: status 1: ModuleNotFoundError")
    result = json.loads(next((tmp_path / "results").iterdir()).read_text())
    assert result["rows"]["start"]["executor"]["figures"]["start"]["median"] > 0


HOLDER = """if True:
    import multiprocessing, sys, time
    from multiprocessing import resource_tracker
    context = multiprocessing.get_context("spawn")
    lock = context.Lock()
    worker = context.Process(target=time.sleep, args=(1000,))  # it keeps the pipe to the tracker open
    worker.start()
    print(lock._semlock.name, flush=True)
    time.sleep(1000)
"""


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="it finds semaphores in /dev/shm")
def test_a_killed_system_leaves_no_semaphore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "GRACE_SECONDS", 5.0)
    environment = {**os.environ, run.MARK: "of this test"}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        semaphore = Path("/dev/shm") / ("sem." + process.stdout.readline().strip().lstrip("/"))
        assert semaphore.exists()
        run._end(process, "of this test")
    assert not semaphore.exists()


def test_every_system_has_a_module_and_every_row_a_measure() -> None:
    folder = Path(rows.__file__).parent / "systems"
    for entry in SYSTEMS.values():
        assert f"class {entry.class_name}(" in (folder / f"{entry.module}.py").read_text("utf-8")
    assert {*MEASURES, "start"} == set(ROWS)


@pytest.mark.parametrize("overhead", [40e-6, 1e-3, 0.02])
def test_metg_is_the_duration_that_equals_the_overhead(monkeypatch: pytest.MonkeyPatch, overhead: float) -> None:
    monkeypatch.setattr(metg, "available_share", lambda cores, seconds: 1.0)

    def run_stencil(steps: int, seconds: float) -> float:
        return steps * 8 / 2 * (seconds + overhead)

    assert metg.shortest_useful_task(run_stencil, 8, 2, metg.FULL) == pytest.approx(overhead, rel=0.02)


def test_a_system_whose_longest_tasks_are_inefficient_has_no_metg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metg, "available_share", lambda cores, seconds: 1.0)
    with pytest.raises(metg.InefficientError, match="with tasks of 1 s"):
        metg.shortest_useful_task(lambda steps, seconds: steps * 8 / 2 * (seconds + 2), 8, 2, metg.FULL)
