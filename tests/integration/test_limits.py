"""Limits of tasks across a real cluster: never more at once, an error for a limit that is not there, a reload."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from scaler_client import Client, SchedulerClusterCombo
from scaler_client.errors import TaskRefusedError


def enter(folder: str, number: int) -> int:
    """Return how many calls were inside at once, as seen by this one."""
    mark = Path(folder, str(number))
    mark.touch()
    time.sleep(0.02)
    inside = len(os.listdir(folder))
    mark.unlink()
    return inside


def test_a_limit_holds_across_workers(tmp_path: Path) -> None:
    with SchedulerClusterCombo(n_workers=4, limits={"db": 2}) as combo, Client(combo.address) as client:
        limited = client.options(limit="db")
        arguments = [(str(tmp_path), number) for number in range(20)]
        futures = [limited.submit(enter, *each) for each in arguments]
        assert max(future.result() for future in futures) <= 2
        assert max(limited.map(enter, arguments)) <= 2
        with pytest.raises(TaskRefusedError, match=r"the limit 'dbx' is not defined .*; defined: db"):
            client.options(limit=["db", "dbx"]).submit(abs, 1).result()
