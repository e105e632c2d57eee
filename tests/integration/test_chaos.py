"""`make chaos`, shortened: it finds nothing wrong, and nothing stays behind."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from tests.chaos.load import Outcome
from tests.chaos.report import Figures, Repeats, repeats
from tests.integration.executions import note, notes
from tests.integration.marked_process import marked_process
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 100

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="finds its processes in /proc")


OFTEN = ("--worker-every", "0.2", "--host-every", "1", "--scheduler-every", "2")


def test_five_seconds_of_chaos() -> None:
    with marked_process("tests.chaos.run", "--seconds", "5", *OFTEN, "--seed", "1") as run:
        output, errors = run.process.communicate(timeout=PATIENCE_SECONDS)
        assert run.process.returncode == 0, output + errors
        run.assert_nothing_left()
    killed = re.search(r"killed +(\d+) workers, (\d+) schedulers", output)
    assert killed and int(killed[1]) >= 10 and int(killed[2]) >= 1, output
    done = re.search(r"tasks done +([\d,]+) of ([\d,]+)", output)
    assert done and done[1] == done[2] and int(done[1].replace(",", "")) > 500, output
    assert "cluster stopped" in output and "graph's target, cancelled" in output and "of an object" in output
    graphs = re.search(r"graphs +([\d,]+)", output)
    assert graphs and int(graphs[1].replace(",", "")) > 10, output
    for nothing in ("lost", "resolved twice", "wrong values", "failed"):
        assert re.search(rf"^{nothing} +0$", output, re.MULTILINE), output
    assert re.search(r"scheduler killed +to the next result: median [\d.]+ m?s, p99", output), output
    # On a busy machine each worker may be replaced while no scheduler is there.
    replaced = r"(?:worker killed +to the first task of its replacement:|  without scheduler +)"
    assert re.search(replaced + r" *median [\d.]+ m?s, p99", output), output


def test_failures_are_reported(tmp_path: Path) -> None:
    assert Figures(Outcome(submitted=2, done=2)).is_good
    for name in ("lost", "resolved_twice", "wrong", "failed"):
        together = Figures(Outcome(submitted=2, done=2))
        together.add(Figures(Outcome(**{name: ["1-17"]})))
        assert not together.is_good
        said = together.lines()
        assert any(re.match(rf"{name.split('_')[0]}.* 1\n    1-17$", line) for line in said), said
    assert not Figures(complaints=["a cluster ended with status 1"]).is_good
    log = str(tmp_path / "log")
    for event, task in (
        ("begin", "a"),
        ("end", "a"),
        ("begin", "a"),
        ("begin", "b"),
        ("begin", "b"),
        ("end", "b"),
        ("end", "b"),
    ):
        note(log, event, task)
    assert repeats(notes(log)) == Repeats(executions=4, repeated=2, finished_before=1)


def test_an_interrupt_leaves_nothing_behind() -> None:
    with marked_process("tests.chaos.run") as run:
        # A scheduler; two agents with a fork server and four workers each; four clients.
        wait_until(lambda: len(run.descendants()) >= 17 or run.process.poll() is not None, what="its processes")
        run.process.send_signal(signal.SIGINT)
        _, errors = run.process.communicate(timeout=PATIENCE_SECONDS)
        assert run.process.returncode == 130 and errors == "interrupted\n"
        run.assert_nothing_left()
