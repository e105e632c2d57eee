"""Warnings about secrets in the folder of keys of a program that connects."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaler_client.commands.addresses import parse_connect_address
from scaler_client.commands.key_files import CLIENT, WORKER, PeerKeys
from scaler_client.net.curve import is_local_address, warn_about_secrets

HERE = parse_connect_address("tcp://127.0.0.1:2345")
ELSEWHERE = parse_connect_address("tcp://192.0.2.1:2345")  # an address for documentation


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("server", "client", "worker", "monitor"):
        (tmp_path / f"{name}.secret").write_text("")
    return tmp_path


def keys(folder: Path, role: str) -> PeerKeys:
    return PeerKeys(str(folder), role, b"", b"", b"")


def test_addresses_of_this_machine() -> None:
    assert is_local_address(HERE)
    assert is_local_address(parse_connect_address("ipc:///tmp/x"))
    assert not is_local_address(ELSEWHERE)


def test_a_remote_client_is_warned_of_the_servers_secret_only(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    warn_about_secrets(keys(folder, CLIENT), ELSEWHERE)
    [line] = caplog.messages
    assert line == (
        f"the folder of keys {folder} has secrets that a client does not use: remove {folder}/server.secret from this "
        "machine (a program that reads the first one can pretend to be the scheduler)"
    )


def test_a_remote_worker_is_warned_of_all_other_secrets(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "server.secret").unlink()
    warn_about_secrets(keys(folder, WORKER), ELSEWHERE)
    [line] = caplog.messages
    wanted = f"remove {folder}/client.secret and {folder}/monitor.secret from this machine (tasks that run here may "
    assert wanted in line


def test_no_warning_on_the_schedulers_machine_or_without_secrets(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    warn_about_secrets(keys(folder, WORKER), HERE)
    warn_about_secrets(None, ELSEWHERE)
    (folder / "server.secret").unlink()
    warn_about_secrets(keys(folder, CLIENT), ELSEWHERE)
    assert caplog.messages == []
