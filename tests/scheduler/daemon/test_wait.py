"""How long the daemon waits for the next message."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scaler_scheduler.commands import command_line
from scaler_scheduler.commands.addresses import parse_bind_address
from scaler_scheduler.commands.systemd_notify import SystemdNotifier
from scaler_scheduler.config import config
from scaler_scheduler.config.pending_config import PendingConfig
from scaler_scheduler.daemon.loop import Daemon, Network
from scaler_scheduler.net.connections import ConnectionLimits
from scaler_scheduler.net.router import ZmqContext


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    address = f"ipc://{tmp_path}/scheduler"
    arguments = command_line.parse_arguments(config.COMMAND, [address])
    loaded = config.load(arguments, {})
    context = ZmqContext(1, ConnectionLimits(100, 100, 100, 100.0), None)
    router = context.bind_router(parse_bind_address(address), loaded.message_size_limit)
    monitor = context.bind_monitor(parse_bind_address(f"{address}_monitor"))
    pending = PendingConfig(config.COMMAND, arguments, {})
    yield Daemon(loaded, Network(router, monitor, context.zap), None, SystemdNotifier({}), pending)
    monitor.close()
    router.close()
    context.close()


@pytest.mark.parametrize(
    ("due_seconds", "milliseconds"), [(0.05, range(1, 51)), (-1.0, [1]), (10.0, [None]), (float("inf"), [None])]
)
def test_the_wait_ends_at_the_next_timer(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch, due_seconds: float, milliseconds: list[int | None]
) -> None:
    """A rate of 20/s starts a task each 50 ms. A wait of 250 ms would let few tasks begin."""
    waits: list[int | None] = []
    monkeypatch.setattr(daemon.router, "wait", lambda: waits.append(None))
    monkeypatch.setattr(daemon.router, "wait_up_to", waits.append)
    daemon.core.dispatcher.next_wait_at = time.monotonic() + due_seconds
    assert daemon.wait() is None
    assert len(waits) == 1 and waits[0] in milliseconds
