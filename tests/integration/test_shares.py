"""Two users with long and with short tasks share the workers of a real cluster."""

from __future__ import annotations

import time

import pytest

from scaler_client import Client, SchedulerClusterCombo
from scaler_client.commands.addresses import parse_connect_address
from scaler_client.monitor.newest_snapshot import NewestSnapshot
from scaler_client.protocol.snapshots import Snapshot


def run_long() -> None:
    time.sleep(0.1)


def run_short() -> None:
    time.sleep(0.002)


def test_users_get_equal_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with SchedulerClusterCombo(n_workers=2) as combo:
        clients = []
        for user in ("ada", "bob"):
            monkeypatch.setenv("LOGNAME", user)
            clients.append(Client(combo.address))
        with clients[0] as ada, clients[1] as bob:
            ada.submit(run_long).result()
            bob.submit(run_short).result()
            for _ in range(5000):
                bob.submit(run_short)
            for _ in range(100):
                ada.submit(run_long)
            monitor = NewestSnapshot(parse_connect_address(combo.address))
            snapshot = monitor.wait(0, 30, lambda snapshot: used(snapshot).get("ada", 0) >= 1.5)
            ada.clear()
            bob.clear()
            monitor.close()
    assert snapshot is not None
    seconds_of = used(snapshot)
    assert set(seconds_of) == {"ada", "bob"}
    # A task of Ada runs that is not in her time yet.
    assert seconds_of["bob"] / sum(seconds_of.values()) == pytest.approx(0.5, abs=0.1)


def used(snapshot: Snapshot) -> dict[str, float]:
    """The time of the tasks that have ended, by user."""
    return {share.name.partition("@")[0]: share.used_seconds for share in snapshot.shares}
