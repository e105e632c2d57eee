"""The one-file scheduler on a system without Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system import roots
from tests.system.nspawn import Nspawn
from tests.system.packages import Packages
from tests.system.service import free_port
from tests.system.work import check, submit_many, workers_and_client

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def bare_root(can_boot: None) -> Path:
    root = roots.base()
    programs = [path for folder in ("bin", "sbin", "local/bin") for path in (root / "usr" / folder).iterdir()]
    assert [path.name for path in programs if path.name.startswith(("python", "pypy"))] == []
    assert list((root / "usr" / "lib").glob("*/libpython*")) == list((root / "usr" / "lib").glob("python*")) == []
    return root


@pytest.fixture
def address(bare_root: Path, built: Packages, tmp_path: Path) -> Iterator[str]:
    """The address of a scheduler on it. Only the scheduler's file was added."""
    there = f"tcp://127.0.0.1:{free_port()}"
    binds = {built.one_file: "/scaler_scheduler"}
    container = Nspawn(bare_root, tmp_path / "scheduler.log", binds, "--as-pid2", "/scaler_scheduler", there)
    yield there
    container.end()


def test_scheduler_without_python_runs_tasks(address: str, tmp_path: Path) -> None:
    with workers_and_client(tmp_path, address) as client:
        check(submit_many(client, 20))
    assert "on PyPy" in (tmp_path / "scheduler.log").read_text()
