"""The C++ client and worker with CURVE: right keys work, wrong keys are reported and end the program."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.commands import Command, SchedulerCommand, key_command, scheduler
from tests.integration.restarts import Restarts
from tests.interop.cpp_programs import SECONDS, build, cpp_client, cpp_worker
from tests.interop.restart_story import check_restart

from scaler_client import Client, named

pytestmark = pytest.mark.timeout(600)
"""The first test compiles the programs, which takes minutes on a busy machine."""


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    build()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("keys") / "made")
    key_command("keygen", folder)
    return folder


@pytest.fixture
def daemon(tmp_path: Path, keys: str) -> Iterator[SchedulerCommand]:
    with scheduler(tmp_path, "--keys", keys) as started:
        yield started


def ends(command: Command) -> str:
    """Return the error text of a program that ends by itself."""
    assert command.process.wait(SECONDS) == 1
    return command.log()


def denied(address: str, *options: str) -> str:
    """Return why the scheduler does not accept this C++ client."""
    with cpp_client(address, *options) as client:
        client.say("submit json add [1, 1]")
        assert client.status() == 1
        (line,) = client.seen
        assert line.startswith(f"no access to {address}: ")
        return line


def disguised(keys: str, folder: Path, role: str, to_be: str) -> str:
    """Make a folder of keys in which one role has the key pair of another role."""
    shutil.copytree(keys, folder)
    for suffix in (".key", ".secret"):
        shutil.copy(os.path.join(keys, role + suffix), folder / (to_be + suffix))
    return str(folder)


def test_clients_of_both_languages_with_the_cpp_worker(tmp_path: Path, keys: str, daemon: SchedulerCommand) -> None:
    long = "x" * 200_000
    with cpp_worker(tmp_path, daemon.address, "--keys", keys):
        with cpp_client(daemon.address, "--keys", keys) as cpp:
            cpp.say("submit json add [1, 2.5]", f"submit raw reverse {long}y", "many json add 2000")
            with Client(daemon.address, keys=keys) as client:
                assert client.submit(named("add"), 20, 22).result(SECONDS) == 42
                assert client.map(named("add"), [(i, 1) for i in range(1000)]) == list(range(1, 1001))
            cpp.end()
    assert cpp.resolved[0] == ("value", "3.5") and cpp.resolved[1] == ("value", f"y{long}")
    assert [cpp.resolved[2 + i] for i in range(2000)] == [("value", str(i + 1)) for i in range(2000)]


def test_open_tasks_survive_a_restarted_scheduler(tmp_path: Path, keys: str) -> None:
    check_restart(tmp_path, Restarts.stop, "--keys", keys)


def test_a_peer_with_an_unauthorized_key_reports_it_and_ends(
    tmp_path: Path, keys: str, daemon: SchedulerCommand
) -> None:
    strangers = str(tmp_path / "strangers")
    for role in ("client", "worker"):
        key_command("keygen", strangers, "--as", role)
    shutil.copy(os.path.join(keys, "server.key"), strangers)
    public = Path(strangers, "client.key").read_text().split()[-1]
    text = denied(daemon.address, "--keys", strangers)
    assert text.endswith(f"the scheduler does not accept the key {public} of {strangers}/client.key")
    assert "the scheduler needs keys, and none were given" in denied(daemon.address)
    with cpp_worker(tmp_path, daemon.address, "--keys", strangers) as worker:
        assert f"does not accept the key {Path(strangers, 'worker.key').read_text().split()[-1]}" in ends(worker)
    shutil.copy(os.path.join(strangers, "worker.key"), os.path.join(strangers, "server.key"))
    assert f"the scheduler has another key than {strangers}/server.key" in denied(daemon.address, "--keys", strangers)


def test_keys_for_a_scheduler_without_keys(tmp_path: Path, keys: str) -> None:
    with scheduler(tmp_path) as daemon:
        text = denied(daemon.address, "--keys", keys)
    # Either side may end the handshake first.
    another = (
        f"the scheduler has another key than {keys}/server.key, or no key, or has reached its limit of connections"
    )
    assert text.endswith(another) or "the scheduler has no keys" in text


def test_a_key_has_one_role(tmp_path: Path, keys: str, daemon: SchedulerCommand) -> None:
    wrong = disguised(keys, tmp_path / "worker", "client", to_be="worker")
    with cpp_worker(tmp_path, daemon.address, "--keys", wrong) as worker:
        assert "refused: this is a client's key: workers need a worker's key (authorize --as worker)" in ends(worker)
    wrong = disguised(keys, tmp_path / "client", "worker", to_be="client")
    with cpp_client(daemon.address, "--keys", wrong) as client:
        assert client.status() == 1
    assert client.seen[-1].startswith("refused: this is a worker's key: clients outside of tasks need a client's key")


def test_a_peer_with_a_revoked_key_reports_it_and_ends(tmp_path: Path, keys: str) -> None:
    own, alice = shutil.copytree(keys, tmp_path / "own"), str(tmp_path / "alice")
    key_command("keygen", alice, "--as", "client")
    shutil.copy(os.path.join(keys, "server.key"), alice)
    key_command("authorize", str(own), f"{alice}/client.key", "--as", "client", "--name", "alice")
    with scheduler(tmp_path, "--keys", str(own)) as daemon, cpp_client(daemon.address, "--keys", alice) as client:
        client.expect("welcome")
        key_command("revoke", str(own), "alice")
        daemon.process.send_signal(signal.SIGHUP)
        assert client.status() == 1
        assert client.seen[-1].startswith("refused: its key was revoked")
        assert "does not accept the key" in denied(daemon.address, "--keys", alice)


def test_a_folder_without_key_files(tmp_path: Path) -> None:
    with cpp_client("tcp://127.0.0.1:1", "--keys", str(tmp_path)) as client:
        assert client.status() == 1
    assert client.seen == [f"cannot read the key {tmp_path}/server.key: No such file or directory"]
