"""`make attack`, shortened: honest clients lose nothing, and nothing stays behind."""

from __future__ import annotations

import os
import re

import pytest
from tests.integration.marked_process import marked_process

PATIENCE_SECONDS = 150

pytestmark = [
    pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="finds its processes in /proc"),
    pytest.mark.timeout(PATIENCE_SECONDS + 30),
]


def test_eight_seconds_of_attacks() -> None:
    with marked_process("tests.chaos.attack", "--seconds", "8", "--seed", "1") as run:
        output, errors = run.process.communicate(timeout=PATIENCE_SECONDS)
        assert run.process.returncode == 0, output + errors
        run.assert_nothing_left()
    for phase in ("no key", "client", "worker", "monitor"):
        assert re.search(rf"^ +\d+ attacks, {phase}: ", output, re.MULTILINE), output
    done = re.search(r"([\d,]+) honest tasks, ([\d,]+) right", output)
    assert done and done[1] == done[2] and int(done[1].replace(",", "")) > 100, output
    assert "scheduler's memory before, at most, after: " in output and "ERROR" not in output
