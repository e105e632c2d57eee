"""`make chaos`, shortened: it finds nothing wrong, and nothing stays behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.chaos.killers import Deaths
from tests.chaos.load import Outcome
from tests.chaos.report import Recoveries, Repeats, lines, repeats, total, went_well
from tests.integration.executions import note, notes
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
MARK = "CHAOS_TEST_MARK"
PATIENCE_SECONDS = 100

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="finds its processes in /proc")


class Chaos:
    """The chaos as a process; all its descendants carry a mark."""

    def __init__(self, *arguments: str) -> None:
        self._mark = uuid.uuid4().hex
        self._temporary = tempfile.TemporaryDirectory(prefix="chaos-")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.run", *arguments],
            cwd=ROOT,
            env={**os.environ, MARK: self._mark, "TMPDIR": self._temporary.name},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def descendants(self) -> list[int]:
        """The marked processes other than its own."""
        wanted = f"{MARK}={self._mark}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != self.process.pid:
                try:
                    if wanted in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
                except OSError:  # ended meanwhile, or another user's
                    continue
        return found

    def assert_nothing_left(self) -> None:
        wait_until(lambda: not self.descendants(), what="its processes to end")
        assert os.listdir(self._temporary.name) == []

    def end(self) -> None:
        for process in [self.process.pid, *self.descendants()]:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.communicate()
        self._temporary.cleanup()


@contextmanager
def chaos(*arguments: str) -> Iterator[Chaos]:
    started = Chaos(*arguments)
    try:
        yield started
    finally:
        started.end()


def test_five_seconds_of_chaos() -> None:
    with chaos("--seconds", "5", "--scheduler-every", "2", "--seed", "1") as run:
        output, errors = run.process.communicate(timeout=PATIENCE_SECONDS)
        assert run.process.returncode == 0, output + errors
        run.assert_nothing_left()
    killed = re.search(r"killed +(\d+) workers, (\d+) schedulers", output)
    assert killed and int(killed[1]) >= 10 and int(killed[2]) >= 1, output
    done = re.search(r"tasks done +([\d,]+) of ([\d,]+)", output)
    assert done and done[1] == done[2] and int(done[1].replace(",", "")) > 500, output
    for nothing in ("lost", "resolved twice", "wrong values", "failed"):
        assert re.search(rf"^{nothing} +0$", output, re.MULTILINE), output
    assert re.search(r"scheduler killed +to the next result: median [\d.]+ m?s, p99", output), output
    assert re.search(r"worker killed +to the first task of its replacement: median [\d.]+ m?s, p99", output), output


def test_what_goes_wrong_is_said(tmp_path: Path) -> None:
    assert went_well(Outcome(submitted=2, done=2), [])
    for name in ("lost", "resolved_twice", "wrong", "failed"):
        outcome = total([Outcome(submitted=2, done=2), Outcome(**{name: ["1-17"]})])
        assert not went_well(outcome, [])
        said = lines(outcome, Deaths(), Recoveries(), repeats([]), 1.0)
        assert any(re.match(rf"{name.split('_')[0]}.* 1\n    1-17$", line) for line in said), said
    assert not went_well(Outcome(), ["a cluster ended with status 1"])
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
    with chaos() as run:
        # A scheduler; two agents with a nursery and four workers each; four clients.
        wait_until(lambda: len(run.descendants()) >= 17 or run.process.poll() is not None, what="its processes")
        run.process.send_signal(signal.SIGINT)
        _, errors = run.process.communicate(timeout=PATIENCE_SECONDS)
        assert run.process.returncode == 130 and errors == "interrupted\n"
        run.assert_nothing_left()
