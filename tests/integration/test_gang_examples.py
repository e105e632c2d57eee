"""The examples of gangs with torch.distributed and with MPI, over two agents."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.commands import cluster, scheduler

EXAMPLES = Path(__file__).resolve().parents[2] / "client_lib" / "examples"
SECONDS = 120


def test_gloo_over_two_agents(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed: its gang example does not run")
    assert output_over_two_agents(tmp_path, "gang_gloo.py") == "[(0, 4.0), (1, 4.0), (2, 4.0), (3, 4.0)]\n"


def test_mpi_over_two_agents(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason="mpi4py is not installed: its gang example does not run")
    if not Path(sys.executable).with_name("mpiexec").exists():
        pytest.skip("mpich is not installed: the gang example of mpi4py does not run")
    assert output_over_two_agents(tmp_path, "gang_mpi.py") == "([0, 1, 2, 3], 4.0)\n"


def output_over_two_agents(tmp_path: Path, example: str) -> str:
    """What an example prints with two agents of two workers each."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    with scheduler(tmp_path) as started, cluster(first, started.address, 2), cluster(second, started.address, 2):
        command = [sys.executable, str(EXAMPLES / example), started.address]
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=True)
    return ran.stdout
