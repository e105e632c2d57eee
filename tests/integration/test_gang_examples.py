"""The example of a gang with torch.distributed, over two agents."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.commands import cluster, scheduler

EXAMPLE = Path(__file__).resolve().parents[2] / "client_lib" / "examples" / "gang_gloo.py"
SECONDS = 120


def test_gloo_over_two_agents(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed: its gang example does not run")
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    with scheduler(tmp_path) as started, cluster(first, started.address, 2), cluster(second, started.address, 2):
        command = [sys.executable, str(EXAMPLE), started.address]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    assert ran.stdout == "[(0, 4.0), (1, 4.0), (2, 4.0), (3, 4.0)]\n"
