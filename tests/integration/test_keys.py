"""Connections with keys, as real processes.

Peers with the right keys work; peers with wrong keys get the reason in seconds.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest
import zmq
from tests.integration.commands import (
    SCHEDULER_PYTHON,
    Command,
    SchedulerCommand,
    cluster,
    cluster_command,
    environment,
    key_command,
    monitor,
    run_once,
    scheduler,
    scheduler_command,
)
from tests.waiting import wait_until

from scaler_client import Client, LocalCluster, SchedulerLostError, UnauthorizedError
from scaler_client.commands.addresses import parse_connect_address
from scaler_client.commands.key_files import CLIENT, MONITOR, WORKER, PeerKeys, read_public
from scaler_client.monitor.socket import MonitorAccessError, MonitorSocket
from scaler_client.net.curve import apply_keys, apply_monitor_keys, load_keys
from scaler_client.protocol.messages import NoObject, ReadObject
from scaler_client.protocol.snapshot_decoder import SNAPSHOT_TOPIC

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 30
OFTEN = ("--heartbeat-interval-seconds", "0.2")
PYTHONS = list(dict.fromkeys([SCHEDULER_PYTHON, sys.executable]))


def square(x: int) -> int:
    return x * x


def sum_of_squares(client: Client, count: int) -> int:
    return sum(future.result() for future in [client.submit(square, i) for i in range(count)])


def by_another_name(address: str) -> int:
    """In a task: a client with another form of the address of the worker's own scheduler."""
    with Client(address) as client:
        return client.submit(square, 9).result()


def until_there(path: str) -> str:
    while not os.path.exists(path):
        time.sleep(0.005)
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("keys") / "made")
    key_command("keygen", folder)
    return folder


@pytest.fixture
def keys(made: str, tmp_path: Path) -> str:
    """A separate folder of keys for each test."""
    return str(shutil.copytree(made, tmp_path / "keys"))


@pytest.fixture(scope="module")
def unknown(made: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("keys") / "unknown")
    for role in (CLIENT, WORKER, MONITOR):
        key_command("keygen", folder, "--as", role)
    shutil.copy(os.path.join(made, "server.key"), folder)
    return folder


@pytest.fixture
def strangers(unknown: str, tmp_path: Path) -> str:
    """A folder with the scheduler's public key, and with pairs that the scheduler of `keys` does not know."""
    return str(shutil.copytree(unknown, tmp_path / "strangers"))


@pytest.fixture(params=PYTHONS, ids=lambda python: "the scheduler's" if python != sys.executable else "CPython")
def daemon(request: pytest.FixtureRequest, tmp_path: Path, keys: str) -> Iterator[SchedulerCommand]:
    with scheduler(tmp_path, "--keys", keys, python=request.param) as started:
        yield started


def denied(address: str, keys: str) -> str:
    """Return why this client may not connect. The error must come long before the client's time limit."""
    with pytest.raises(UnauthorizedError) as caught:
        Client(address, keys=keys, timeout_seconds=10 * SECONDS)
    assert str(caught.value).startswith(f"no access to {address}: ")
    return str(caught.value)


def unauthorized(daemon: SchedulerCommand) -> int:
    with monitor(daemon.monitor_address) as watch:
        return watch.next().dropped.get("unauthorized", 0)


def test_with_keys_everything_works(tmp_path: Path, keys: str, daemon: SchedulerCommand) -> None:
    with cluster(tmp_path, daemon.address, 2, "--keys", keys, *OFTEN) as workers:
        with Client(daemon.address, keys=keys, timeout_seconds=SECONDS) as client:
            assert client.submit(square, 3).result(SECONDS) == 9
            assert client.map(square, [(i,) for i in range(1000)])[-1] == 999**2
            assert client.submit(sum_of_squares, client, 5).result(SECONDS) == 30
            assert (
                client.submit(by_another_name, daemon.address.replace("127.0.0.1", "localhost")).result(SECONDS) == 81
            )
            ref = client.send_object(b"x" * 3_000_000)
            assert [client.submit(len, ref).result(SECONDS) for _ in range(2)] == [3_000_000] * 2
            assert client.get({"a": 2, "b": (square, "a"), "c": (square, "b")}, keys=["c"]) == {"c": 16}
            workers.stop()
            later = client.submit(square, 4)
            with cluster(tmp_path, daemon.address, 1, "--keys", keys):
                assert later.result(SECONDS) == 16
    assert unauthorized(daemon) == 0
    assert re.search("INFO.*client( \\S+)? says hello: python .*, by the key of client\n", daemon.log())


def test_a_burst_of_tasks_stays_within_max_waiting(tmp_path: Path, keys: str) -> None:
    key_command(
        "authorize", keys, os.path.join(keys, "client.key"), "--as", "client", "--name", "client", "--max-waiting", "10"
    )
    gate = tmp_path / "gate"
    with scheduler(tmp_path, "--keys", keys) as daemon, monitor(daemon.monitor_address) as watch:
        with Client(daemon.address, keys=keys, timeout_seconds=SECONDS) as client:
            futures = [client.submit(until_there, str(gate)) for _ in range(5000)]
            counts = [watch.next().waiting]
            with cluster(tmp_path, daemon.address, 2, "--keys", keys, *OFTEN):
                wait_until(lambda: watch.next().running, what="no task runs")
                snapshots = [watch.next() for _ in range(3)]
                counts += [each.waiting + each.running for each in snapshots]
                gate.touch()
                assert [future.result(SECONDS) for future in futures] == [str(gate)] * 5000
    assert 0 < max(counts) <= 10


def test_a_restarted_scheduler_with_keys(tmp_path: Path, keys: str) -> None:
    gate = tmp_path / "gate"
    with scheduler(tmp_path, "--keys", keys) as first, cluster(tmp_path, first.address, 2, "--keys", keys, *OFTEN):
        with Client(first.address, keys=keys, timeout_seconds=SECONDS) as client:
            long = client.submit(until_there, str(gate))
            wait_until(long.running, what="it runs")
            first.process.kill()
            first.process.wait()
            (tmp_path / "2").mkdir()
            with scheduler(tmp_path / "2", "--keys", keys, address=first.address):
                assert client.submit(square, 5).result(SECONDS) == 25
                gate.touch()
                assert long.result(SECONDS) == str(gate)


def test_a_rejected_client_gets_the_reason(keys: str, strangers: str, daemon: SchedulerCommand) -> None:
    public = read_public(strangers, CLIENT).hex()
    text = denied(daemon.address, strangers)
    assert f"does not accept the key {public} of {strangers}/client.key" in text
    assert "scaler_scheduler authorize DIR KEY --as client --name NAME" in text
    assert "the scheduler needs keys, and none were given" in denied(daemon.address, "")
    shutil.copy(os.path.join(strangers, "worker.key"), os.path.join(strangers, "server.key"))
    assert f"has another key than {strangers}/server.key" in denied(daemon.address, strangers)
    wait_until(lambda: unauthorized(daemon) >= 3, what="they are counted")
    log = daemon.log()
    assert 1 <= log.count("connection(s) rejected") <= 3 and "Traceback" not in log


def test_keys_for_a_scheduler_that_has_none(tmp_path: Path, keys: str) -> None:
    with scheduler(tmp_path) as daemon:
        text = denied(daemon.address, keys)
        # Either side may end the handshake first.
        no_keys = f"the scheduler has no keys, but this side has those of {keys}"
        another = (
            f"the scheduler has another key than {keys}/server.key ({read_public(keys, 'server').hex()}), or no key"
        )
        assert another in text or no_keys in text


def test_a_folder_without_the_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot read the key .*client.secret"):
        Client("tcp://127.0.0.1:1", keys=tmp_path)


def run_cluster(address: str, keys: str) -> subprocess.CompletedProcess[str]:
    """It ends by itself long before --death-timeout-seconds: `run_once` does not wait for so long."""
    done = run_once(cluster_command("-n", "1", address, "--keys", keys))
    assert "Traceback" not in done.stderr
    return done


def test_a_rejected_cluster_logs_the_reason_and_ends(
    tmp_path: Path, keys: str, strangers: str, daemon: SchedulerCommand
) -> None:
    disguised = shutil.copytree(keys, tmp_path / "disguised")
    for suffix in (".key", ".secret"):
        shutil.copy(os.path.join(keys, "client" + suffix), disguised / ("worker" + suffix))
    for folder, text in [
        (strangers, "worker.key (as worker). Authorize it there: `scaler_scheduler authorize DIR KEY --as worker"),
        (str(disguised), "this is a client's key: agents need a worker's key (authorize --as worker)"),
        ("", "the scheduler needs keys, and none were given"),
    ]:
        done = run_cluster(daemon.address, folder)
        (line,) = [line for line in done.stderr.splitlines() if "no access to the scheduler at" in line]
        assert done.returncode == 1 and line.startswith("[ERROR]") and text in line
    done = run_cluster(daemon.address, str(tmp_path / "nowhere"))
    assert done.returncode == 2 and done.stderr == (
        f"scaler_cluster: there is no folder of keys at {tmp_path / 'nowhere'}\n"
    )


def test_a_workers_key_is_no_clients(tmp_path: Path, keys: str, daemon: SchedulerCommand) -> None:
    disguised = shutil.copytree(keys, tmp_path / "disguised")
    for role, text in [
        ("worker", "this is a worker's key: clients outside of tasks need a client's key"),
        ("monitor", "does not accept the key"),
    ]:
        for suffix in (".key", ".secret"):
            shutil.copy(os.path.join(keys, role + suffix), disguised / ("client" + suffix))
        assert text in denied(daemon.address, str(disguised))


def test_revoked_keys_are_cut_off_and_authorized_keys_are_accepted(
    tmp_path: Path, keys: str, strangers: str, daemon: SchedulerCommand
) -> None:
    gate = tmp_path / "gate"
    key_command("authorize", keys, f"{strangers}/client.key", "--as", "client", "--name", "alice")
    denied(daemon.address, strangers)
    reload(daemon, "4 may connect, 0 connection(s) cut off")
    with cluster(tmp_path, daemon.address, 1, "--keys", keys, *OFTEN):
        with (
            Client(daemon.address, keys=keys, timeout_seconds=SECONDS) as client,
            Client(daemon.address, keys=strangers, timeout_seconds=SECONDS) as alice,
        ):
            long = alice.submit(until_there, str(gate))
            wait_until(long.running, what="Alice's task runs")
            waiting = alice.submit(square, 1)
            key_command("revoke", keys, "alice")
            reload(daemon, "3 may connect, 1 connection(s) cut off")
            with pytest.raises(SchedulerLostError, match="no access to .*: its key was revoked"):
                waiting.result(SECONDS)
            assert client.submit(square, 6).result(SECONDS) == 36  # the only worker was taken from Alice's task
            denied(daemon.address, strangers)
    assert not gate.exists() and "Traceback" not in daemon.log()


def test_a_revoked_cluster_ends_and_its_tasks_run_elsewhere(
    tmp_path: Path, keys: str, strangers: str, daemon: SchedulerCommand
) -> None:
    gate = tmp_path / "gate"
    key_command("authorize", keys, f"{strangers}/worker.key", "--as", "worker", "--name", "rack")
    reload(daemon, "4 may connect, 0 connection(s) cut off")
    with Client(daemon.address, keys=keys, timeout_seconds=SECONDS) as client:
        with cluster(tmp_path, daemon.address, 1, "--keys", strangers, *OFTEN) as rack:
            future = client.submit(until_there, str(gate))
            wait_until(future.running, what="it runs")
            key_command("revoke", keys, "rack")
            reload(daemon, "3 may connect, 2 connection(s) cut off")
            assert rack.process.wait(SECONDS) == 1
            rack.logged("(no access to the scheduler at .*: its key was revoked)")
        gate.touch()
        with cluster(tmp_path, daemon.address, 1, "--keys", keys):
            assert future.result(SECONDS) == str(gate)


def test_tickets_of_data_addresses_end_with_a_revocation(
    tmp_path: Path, keys: str, strangers: str, daemon: SchedulerCommand
) -> None:
    key_command("authorize", keys, f"{strangers}/worker.key", "--as", "worker", "--name", "rack")
    reload(daemon, "4 may connect, 0 connection(s) cut off")
    with Client(daemon.address, keys=keys, timeout_seconds=SECONDS, data_address="tcp://127.0.0.1:*") as client:
        value = client.send_object(bytes(1_000_000))
        with cluster(tmp_path, daemon.address, 1, "--keys", keys, *OFTEN):
            assert client.submit(len, value).result(SECONDS) == 1_000_000
            server = client._io_thread._files._server
            assert server is not None
            old = server.address
            key_command("revoke", keys, "rack")
            reload(daemon, "3 may connect, 0 connection(s) cut off")
            wait_until(lambda: server.address != old, what="the client has a new ticket")
            answer = server._server.answer(ReadObject(old.ticket, 1, 1, 0, 10))
            assert isinstance(answer, NoObject) and answer.reason == "the ticket is wrong"
            other = client.send_object(bytes(2_000_000))
            assert client.submit(len, other).result(SECONDS) == 2_000_000


def reload(daemon: SchedulerCommand, said: str) -> None:
    before = daemon.log().count("keys read again")
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: daemon.log().count("keys read again") > before, what="the keys are read again")
    assert said in daemon.log().rpartition("keys read again")[2]


class Watcher:
    """A subscriber with keys."""

    def __init__(self, address: str, keys: PeerKeys | None) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.setsockopt(zmq.RECONNECT_IVL, 50)
        self._socket.subscribe(SNAPSHOT_TOPIC)
        apply_keys(self._socket, keys)
        self._socket.connect(address)

    def hears(self, seconds: float) -> bool:
        while self._socket.poll(0):
            self._socket.recv()
        return bool(self._socket.poll(round(seconds * 1000)))

    def close(self) -> None:
        self._context.destroy(linger=0)


def test_the_monitor_is_for_its_keys_alone(
    tmp_path: Path, keys: str, strangers: str, request: pytest.FixtureRequest
) -> None:
    key_command("authorize", keys, f"{strangers}/monitor.key", "--as", "monitor", "--name", "eve")
    watchers: list[Watcher] = []
    with scheduler(tmp_path, "--keys", keys, "--monitor-address", "tcp://127.0.0.1:*") as daemon:
        address = daemon.monitor_address
        try:
            for each in (load_keys(keys, MONITOR), load_keys(strangers, MONITOR), load_keys(keys, CLIENT), None):
                watchers.append(Watcher(address, each))
            operator, eve, client, nobody = watchers
            assert operator.hears(SECONDS) and eve.hears(SECONDS)
            assert not client.hears(1.5) and not nobody.hears(0)
            key_command("revoke", keys, "eve")
            reload(daemon, "3 may connect")
            assert operator.hears(SECONDS) and operator.hears(SECONDS)
            assert not eve.hears(1.5)
        finally:
            for watcher in watchers:
                watcher.close()


def test_monitor_programs_report_why_nothing_arrives_and_keep_trying(
    tmp_path: Path, keys: str, strangers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scheduler(tmp_path, "--keys", keys, "--monitor-address", "tcp://127.0.0.1:*") as daemon:
        address = parse_connect_address(daemon.monitor_address)
        with MonitorSocket(address, keys=strangers) as eve, MonitorSocket(address, keys="") as nobody:
            wait_until(lambda: not eve.wait(0.1) and eve.connection_problem(), what="the refusal")
            assert f"{strangers}/monitor.key (as monitor). Authorize it there" in eve.connection_problem()
            wait_until(lambda: not nobody.wait(0.1) and nobody.connection_problem(), what="the refusal")
            assert "needs keys, and none were given" in nobody.connection_problem()
            key_command("authorize", keys, f"{strangers}/monitor.key", "--as", "monitor", "--name", "eve")
            reload(daemon, "4 may connect")
            wait_until(lambda: eve.wait(1.0) and eve.reader.view, what="she is let in")
            assert not eve.connection_problem()
        monkeypatch.setenv("SCALER_KEYS", keys)
        with MonitorSocket(address) as operator:
            wait_until(lambda: operator.wait(1.0) and operator.reader.view, what="the operator is")
        with pytest.raises(MonitorAccessError, match="there is no folder of keys at /nowhere"):
            MonitorSocket(address, keys="/nowhere")


def test_a_monitors_file_needs_no_keys(daemon: SchedulerCommand, keys: str) -> None:
    with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
        subscriber.setsockopt(zmq.LINGER, 0)
        subscriber.subscribe(SNAPSHOT_TOPIC)
        apply_monitor_keys(subscriber, parse_connect_address(daemon.monitor_address), load_keys(keys, MONITOR))
        subscriber.connect(daemon.monitor_address)
        assert subscriber.poll(SECONDS * 1000)


@pytest.mark.parametrize("mechanism", [b"NULL", b"PLAIN"])
def test_a_peer_of_another_mechanism_gets_nothing_and_is_counted(mechanism: bytes, tmp_path: Path, keys: str) -> None:
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + mechanism.ljust(20, b"\0") + bytes(32)
    assert len(greeting) == 64
    with scheduler(tmp_path, "--keys", keys) as daemon:
        host, _, port = daemon.address.removeprefix("tcp://").rpartition(":")
        for _ in range(3):
            with socket.create_connection((host, int(port)), timeout=SECONDS) as peer:
                peer.sendall(greeting)
                said = b""
                while part := peer.recv(4096):  # up to the end, which the scheduler makes
                    said += part
                assert len(said) <= 64  # bytes of ZeroMQ's greeting, and nothing else
        wait_until(lambda: unauthorized(daemon) == 3, what="they are counted")
        assert daemon.log().count("connection(s) rejected") == 1


def test_the_log_names_the_address_of_a_connection_whose_handshake_failed(tmp_path: Path, keys: str) -> None:
    """The connection may end before its address can be read.

    This connection is known to the scheduler when it fails.
    """
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48)
    with scheduler(tmp_path, "--keys", keys) as daemon:
        host, _, port = daemon.address.removeprefix("tcp://").rpartition(":")
        address = (host, int(port))
        with socket.create_connection(address, SECONDS) as known, socket.create_connection(address, SECONDS) as later:
            assert known.recv(10) and later.recv(10)
            later.sendall(greeting)  # its events are reported after the other connection's start
            wait_until(lambda: unauthorized(daemon) == 1, what="it is counted")
            known.sendall(greeting)
            daemon.logged(r"rejected; the last: (127\.0\.0\.1 has no key, or the key of another server)")


def test_a_route_that_a_peer_has_chosen_is_rejected(tmp_path: Path, keys: str) -> None:
    """ZeroMQ lets a peer choose its route, which may be the former route of another peer."""
    with scheduler(tmp_path, "--keys", keys) as daemon, zmq.Context() as context:
        with context.socket(zmq.DEALER) as peer:
            peer.setsockopt(zmq.LINGER, 0)
            peer.setsockopt(zmq.ROUTING_ID, b"mine")
            apply_keys(peer, load_keys(keys, CLIENT))
            peer.connect(daemon.address)
            peer.send(b"anything")
            wait_until(lambda: unauthorized(daemon) == 1, what="it is counted")
            assert not peer.poll(0)


def test_an_empty_list_of_keys_admits_no_peer(tmp_path: Path, keys: str) -> None:
    (Path(keys) / "authorized").write_text("")
    with scheduler(tmp_path, "--keys", keys, address="tcp://0.0.0.0:*") as daemon:
        daemon.logged(r"WARNING.*(/authorized lists no key, so no peer can connect: scaler_scheduler authorize )")
        assert "INSECURE" not in daemon.log()


@pytest.mark.parametrize("options", [["tcp://0.0.0.0:0"], ["tcp://127.0.0.1:0", "--monitor-address", "tcp://*:0"]])
def test_without_keys_only_this_machine_is_served(options: list[str]) -> None:
    done = run_once(scheduler_command(*options))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    for command in ("keygen DIR", "--keys DIR " + re.sub(":0\\b", ":*", " ".join(options))):
        assert f"`scaler_scheduler {command}`" in line
    assert "`scaler_cluster --keys DIR" in line


def test_insecure_warns_at_every_start(tmp_path: Path) -> None:
    for _ in range(2):
        with scheduler(tmp_path, "--insecure", address="tcp://0.0.0.0:*") as daemon:
            daemon.logged(r"(INSECURE: tcp://0.0.0.0:\S+ is bound without keys)")


def test_the_environment_names_the_keys(tmp_path: Path, keys: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = Command(scheduler_command("tcp://0.0.0.0:0"), tmp_path / "log", SCALER_KEYS=keys)
    try:
        port = command.logged(r"address tcp://0\.0\.0\.0:(\d+), event loop")
        monkeypatch.setenv("SCALER_KEYS", keys)
        with Client(f"tcp://127.0.0.1:{port}", timeout_seconds=SECONDS) as client:
            assert not client.submit(square, 1).done()
    finally:
        command.end()


def test_a_local_cluster_hands_its_keys_to_its_clients(keys: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALER_KEYS", "/nowhere")  # this does not matter on the scheduler's machine
    with LocalCluster(n_workers=1, keys=keys) as cluster, Client(cluster, timeout_seconds=SECONDS) as client:
        assert client.submit(square, 7).result(SECONDS) == 49
    with LocalCluster(n_workers=1) as cluster, Client(cluster, timeout_seconds=SECONDS) as client:
        assert cluster.keys == "" and client.submit(square, 8).result(SECONDS) == 64


def test_a_pickled_client_names_the_folder_and_has_no_key(tmp_path: Path, keys: str) -> None:
    with scheduler(tmp_path, "--keys", keys) as daemon, Client(daemon.address, keys=keys) as client:
        pickled = cloudpickle.dumps(client)
        assert keys.encode() in pickled and read_secret(keys) not in pickled
        assert read_secret(keys).hex().encode() not in pickled
        with cloudpickle.loads(pickled) as copy:
            assert copy.address == client.address
    assert environment().get("SCALER_KEYS") is None


def read_secret(keys: str) -> bytes:
    return bytes.fromhex(Path(keys, "client.secret").read_text().splitlines()[-1])
