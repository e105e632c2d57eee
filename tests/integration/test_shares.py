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


def have_equal_time(snapshot: Snapshot) -> bool:
    """Whether both users have used much time, and equally much. On a busy machine this takes a moment longer."""
    seconds_of = used(snapshot)
    # A task of Ada runs that is not in her time yet.
    return seconds_of.get("ada", 0) >= 1.5 and abs(seconds_of.get("bob", 0) / sum(seconds_of.values()) - 0.5) <= 0.1


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
            snapshot = monitor.wait(0, 30, have_equal_time)
            ada.clear()
            bob.clear()
            monitor.close()
    assert snapshot is not None and set(used(snapshot)) == {"ada", "bob"}


def used(snapshot: Snapshot) -> dict[str, float]:
    """The time of the tasks that have ended, by user."""
    return {share.name.partition("@")[0]: share.used_seconds for share in snapshot.shares}
