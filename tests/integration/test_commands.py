"""The two commands as a user runs them: addresses, configuration, signals, event loops, and errors for bad input."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

import cloudpickle
import pytest
from tests.integration.commands import (
    SCHEDULER_PYTHON,
    STOP_SECONDS,
    Command,
    SchedulerCommand,
    cluster,
    cluster_command,
    run_once,
    scheduler,
    scheduler_command,
)
from tests.waiting import wait_until

from scaler_client import Client, SchedulerClusterCombo
from scaler_client.commands.addresses import make_socket_directory

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 30
IS_PYPY = "pypy" in run_once([SCHEDULER_PYTHON, "-c", "import sys; print(sys.implementation.name)"]).stdout


def square(x: int) -> int:
    return x * x


def serves(address: str) -> bool:
    """Results of a client's tasks arrive."""
    with Client(address, timeout_seconds=SECONDS) as client:
        return client.submit(square, 3).result(SECONDS) == 9 and client.map(square, [(4,)] * 100) == [16] * 100


# ----------------------------------------------------------------------------------------------- interpreters and loops


@pytest.mark.parametrize("loop", ["zmq", "builtin"])
@pytest.mark.parametrize("python", sorted({SCHEDULER_PYTHON, sys.executable}))
def test_event_loops(tmp_path: Path, python: str, loop: str) -> None:
    with scheduler(tmp_path, "--event-loop", loop, python=python) as daemon:
        assert f"event loop {loop}" in daemon.log()
        with cluster(tmp_path, daemon.address):
            assert serves(daemon.address)
        assert daemon.stop() == 0


def test_uvloop(tmp_path: Path) -> None:
    pytest.importorskip("uvloop")
    with scheduler(tmp_path, "--event-loop", "uvloop", python=sys.executable) as daemon:
        with cluster(tmp_path, daemon.address):
            assert serves(daemon.address)
        assert daemon.stop() == 0


def test_the_combo_with_a_chosen_interpreter() -> None:
    with SchedulerClusterCombo(n_workers=1, scheduler_python=sys.executable) as combo:
        assert serves(combo.get_address())


def test_the_log_names_version_and_interpreter(tmp_path: Path) -> None:
    with scheduler(tmp_path) as daemon, cluster(tmp_path, daemon.address) as workers:
        assert daemon.logged(r"(\[INFO\]\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d{4}: )scaler_scheduler \S+ on \w+ [\d.]+")
        assert daemon.monitor_address.startswith(f"ipc://{make_socket_directory()}/127.0.0.1_")
        assert ("PyPy" if IS_PYPY else "CPython") in daemon.log()
        text = f"{daemon.address} is bound without keys: every user of this machine can run code on the workers"
        assert daemon.log().count(text) == 1
        assert daemon.address in workers.logged(r"(scaler_cluster .*)")


# ------------------------------------------------------------------------------------------------------------ addresses


@pytest.mark.parametrize("port", ["0", "*"])
def test_a_free_port_is_logged(tmp_path: Path, port: str) -> None:
    with scheduler(tmp_path, address=f"tcp://127.0.0.1:{port}") as daemon:
        assert 0 < int(daemon.address.rpartition(":")[2]) < 65536
        with cluster(tmp_path, daemon.address):
            assert serves(daemon.address)


def test_ipc(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with scheduler(tmp_path, address=f"ipc://{path}") as daemon:
        assert path.stat().st_mode & 0o777 == 0o600 and "without keys" not in daemon.log()
        assert Path(f"{path}_monitor").stat().st_mode & 0o777 == 0o660
        with cluster(tmp_path, f"ipc://{path}"):
            assert serves(f"ipc://{path}")
        assert daemon.stop() == 0
        assert not path.exists() and not Path(f"{path}_monitor").exists()


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 address here")
def test_ipv6(tmp_path: Path) -> None:
    with scheduler(tmp_path, address="tcp://[::1]:0") as daemon, cluster(tmp_path, daemon.address):
        assert daemon.address.startswith("tcp://[::1]:")
        assert serves(daemon.address)


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 address here")
def test_the_combo_at_an_ipv6_address() -> None:
    with SchedulerClusterCombo("tcp://[::1]:0", 1) as combo:
        assert serves(combo.get_address())


# -------------------------------------------------------------------------------------------------------- configuration


def test_the_address_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"ipc://{tmp_path}/socket"
    daemon = Command(scheduler_command(), tmp_path / "scheduler.log", SCALER_ADDRESS=address)
    workers = Command(cluster_command("-n", "1"), tmp_path / "cluster.log", SCALER_ADDRESS=address)
    try:
        monkeypatch.setenv("SCALER_ADDRESS", address)
        with Client() as client:
            assert client.address == address and client.submit(square, 3).result(SECONDS) == 9
        assert workers.stop() == 0 and daemon.stop() == 0
    finally:
        workers.end()
        daemon.end()


def test_the_address_from_a_file(tmp_path: Path) -> None:
    address = f"ipc://{tmp_path}/socket"
    (tmp_path / "scheduler.toml").write_text(f'address = "{address}"\nevent_loop = "builtin"\n')
    (tmp_path / "cluster.toml").write_text(f'address = "{address}"\nnum_of_workers = 2\n')
    daemon = Command(scheduler_command("--config", f"{tmp_path}/scheduler.toml"), tmp_path / "scheduler.log")
    workers = Command(cluster_command("--config", f"{tmp_path}/cluster.toml"), tmp_path / "cluster.log")
    try:
        assert serves(address)
        assert "event loop builtin" in daemon.log() and "2 workers" in workers.log()
        assert workers.stop() == 0 and daemon.stop() == 0
    finally:
        workers.end()
        daemon.end()


# -------------------------------------------------------------------------------------------------------------- signals


def spin() -> None:
    while True:
        pass


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_both_in_time(tmp_path: Path, number: signal.Signals, busy: bool) -> None:
    with scheduler(tmp_path) as daemon, cluster(tmp_path, daemon.address, 2) as workers:
        client = Client(daemon.address)
        try:
            assert client.submit(square, 3).result(SECONDS) == 9
            if busy:
                tasks = [client.submit(spin), client.submit(time.sleep, 600)]
                wait_until(lambda: all(task.running() for task in tasks))
                queued = [client.submit(square, i) for i in range(1000)]
            assert len(workers.descendants()) == 3
            assert workers.stop(number) == 0
            assert daemon.stop(number) == 0
        finally:
            client.disconnect()
        assert "Traceback" not in daemon.log() + workers.log()
        if busy:
            assert all(task.cancelled() for task in [*tasks, *queued])
        assert not os.path.exists(daemon.monitor_address.removeprefix("ipc://"))


def test_the_scheduler_first(tmp_path: Path) -> None:
    with scheduler(tmp_path) as daemon, cluster(tmp_path, daemon.address, 2) as workers:
        assert serves(daemon.address)
        assert daemon.stop() == 0
        assert workers.stop() == 0


def test_a_restarted_scheduler_gets_all_tasks_again(tmp_path: Path) -> None:
    address = f"ipc://{tmp_path}/socket"
    with scheduler(tmp_path, address=address) as daemon, cluster(tmp_path, address, 1) as workers:
        client = Client(address, heartbeat_interval_seconds=0.2)
        try:
            assert client.submit(square, 3).result(SECONDS) == 9
            long = client.submit(time.sleep, 0.5)
            wait_until(long.running)
            waiting = [client.submit(square, i) for i in range(100)]
            daemon.process.kill()
            daemon.process.wait()
            with scheduler(tmp_path, address=address):
                assert [task.result(SECONDS) for task in waiting] == [i * i for i in range(100)]
                assert long.result(SECONDS) is None
                assert client.submit(square, 5).result(SECONDS) == 25
                assert client.map(square, [(6,)] * 10) == [36] * 10
                client.disconnect()
                assert workers.stop() == 0
        finally:
            client.disconnect()


# ------------------------------------------------------------------------------------------------------------ bad input


BAD = {
    "no address": [],
    "no port": ["tcp://127.0.0.1"],
    "no transport": ["127.0.0.1:2345"],
    "another transport": ["udp://127.0.0.1:2345"],
    "a port too high": ["tcp://127.0.0.1:70000"],
    "an unknown option": ["tcp://127.0.0.1:0", "--no-such-option"],
    "an option without its value": ["tcp://127.0.0.1:2345", "--logging-level"],
    "a wrong value": ["tcp://127.0.0.1:2345", "--logging-level", "LOUD"],
    "two addresses": ["tcp://127.0.0.1:2345", "tcp://127.0.0.1:2346"],
    "a missing file": ["tcp://127.0.0.1:2345", "--config", "/no/such/file.toml"],
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD)
@pytest.mark.parametrize("command", [scheduler_command, cluster_command], ids=["scheduler", "cluster"])
def test_bad_input_gets_one_line_and_status_2(command: object, arguments: list[str]) -> None:
    ended = run_once(command(*arguments))  # type: ignore[operator]
    assert ended.returncode == 2 and ended.stdout == ""
    assert ended.stderr.count("\n") == 1 and "Traceback" not in ended.stderr
    assert ended.stderr.startswith(("scaler_scheduler: ", "scaler_cluster: "))


def test_a_port_in_use(tmp_path: Path) -> None:
    with scheduler(tmp_path) as daemon:
        ended = run_once(scheduler_command(daemon.address))
        assert ended.returncode == 1
        (line,) = ended.stderr.splitlines()
        assert daemon.address in line and "in use" in line
        with pytest.raises(RuntimeError, match="in use"):
            SchedulerClusterCombo(daemon.address, 1)


def test_an_address_of_another_host() -> None:
    ended = run_once(scheduler_command("tcp://192.0.2.77:2345", "--insecure"))
    assert ended.returncode == 1, "it may come up later"
    (line,) = ended.stderr.splitlines()
    assert "192.0.2.77" in line


def test_uvloop_under_pypy_is_refused() -> None:
    if not IS_PYPY:
        pytest.skip("the scheduler runs under CPython here")
    ended = run_once(scheduler_command("tcp://127.0.0.1:0", "--event-loop", "uvloop"))
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert "uvloop does not run under PyPy" in line


def test_a_combo_with_a_missing_interpreter() -> None:
    with pytest.raises((RuntimeError, OSError), match="no/such/python"):
        SchedulerClusterCombo(n_workers=1, scheduler_python="/no/such/python")


def test_a_client_without_a_scheduler_raises() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{nobody.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(ConnectionError, match=f"no scheduler answers at {address} within 0.5 seconds"):
            Client(address, timeout_seconds=0.5)
        assert time.monotonic() - began > 0.45


@pytest.mark.parametrize("address", ["", "nonsense", "tcp://127.0.0.1", "tcp://*:2345", "tcp://127.0.0.1:0"])
def test_a_client_of_a_bad_address(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCALER_ADDRESS", raising=False)
    with pytest.raises(ValueError, match="address"):
        Client(address)


def test_cluster_without_a_scheduler_gives_up(tmp_path: Path) -> None:
    with cluster(tmp_path, f"ipc://{tmp_path}/nobody", 1, "--death-timeout-seconds", "1") as workers:
        workers.descendants()
        assert workers.process.wait(STOP_SECONDS + 1) == 1
        assert "giving up" in workers.log()


def test_a_preload_that_fails_ends_the_cluster_with_one_line(tmp_path: Path) -> None:
    with cluster(tmp_path, f"ipc://{tmp_path}/nobody", 3, "--preload", "no_such_module:load") as workers:
        assert workers.process.wait(STOP_SECONDS + 20) == 78
        (line,) = [line for line in workers.log().splitlines() if "no_such_module" in line]
        assert line.startswith("[ERROR]")
        assert ": the first worker could not be prepared: --preload no_such_module:load: ModuleNotFoundError: " in line
        assert "Traceback" not in workers.log()


def test_a_missing_offered_function_ends_the_cluster_with_one_line(tmp_path: Path) -> None:
    with cluster(tmp_path, f"ipc://{tmp_path}/nobody", 2, "--offer", "math:sqrt,math:square") as workers:
        assert workers.process.wait(STOP_SECONDS + 20) == 78
        (line,) = [line for line in workers.log().splitlines() if "square" in line]
        assert "the first worker could not be prepared: --offer math:square: AttributeError: module 'math'" in line
        assert "Traceback" not in workers.log()


def test_each_worker_is_prepared_before_its_first_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prepared.py").write_text("import os\n\ndef load():\n    os.environ['PREPARED'] = str(os.getpid())\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    with scheduler(tmp_path) as daemon, cluster(tmp_path, daemon.address, 2, "--preload", "prepared:load"):
        with Client(daemon.address) as client:
            seen = client.map(lambda: (os.environ["PREPARED"], str(os.getpid())), [()] * 20)
    assert all(prepared == own for prepared, own in seen)


def test_start_up_is_quick(tmp_path: Path) -> None:
    """The scheduler answers -h without sockets, and both versions name the interpreter."""
    for command in (scheduler_command, cluster_command):
        shown = run_once(command("-h"))
        assert shown.returncode == 0 and "default:" in shown.stdout and "--logging-level" in shown.stdout
        version = run_once(command("--version"))
        assert version.returncode == 0 and "Py" in version.stdout


def test_scheduler_command_object_reads_its_log(tmp_path: Path) -> None:
    daemon = SchedulerCommand(tmp_path)
    try:
        assert daemon.stop() == 0
        assert "stopped" in daemon.log()
    finally:
        daemon.end()


@pytest.mark.parametrize("option", [[], ["--monitor-address"]], ids=["address", "monitor address"])
def test_a_file_that_is_no_socket_stays(tmp_path: Path, option: list[str]) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    address = ["tcp://127.0.0.1:*"] if option else []
    ended = run_once(scheduler_command(*address, *option, f"ipc://{path}"))
    assert ended.returncode == 1
    assert f"can't bind ipc://{path}: the path exists and is not a socket" in ended.stderr
    assert path.read_text() == "mine"
