"""The monitor socket, and how programs find the address to connect to."""

from __future__ import annotations

import grp  # noqa: F401  # these two here, while the files that they are in can be read
import os
import pwd  # noqa: F401
import select
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

from scaler_client.commands.addresses import Address, parse_bind_address, usual_socket_directory
from scaler_client.commands.command_line import parse_arguments, resolve
from scaler_client.commands.options import Command, Option, OptionError, integer
from scaler_client.monitor import monitor_address
from scaler_client.monitor.monitor_address import resolve_monitor_address
from scaler_client.monitor.options import MONITOR_OPTIONS
from scaler_client.monitor.socket import MonitorAccessError, MonitorSocket, check_access, connection_problem

GARBAGE = b"snapshotgarbage."


@pytest.fixture
def address(tmp_path: Path) -> Address:
    return Address("ipc", "", 0, str(tmp_path / "monitor"))


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield context
    context.destroy(linger=0)


def publisher(context: zmq.Context[zmq.Socket[bytes]], address: Address) -> zmq.Socket[bytes]:
    publishing = context.socket(zmq.XPUB)
    publishing.bind(str(address))
    return publishing


def subscription_frame(publishing: zmq.Socket[bytes]) -> bytes:
    assert publishing.poll(10_000), "no subscription"
    return publishing.recv()


def test_published_messages_reach_the_reader(context: zmq.Context[zmq.Socket[bytes]], address: Address) -> None:
    publishing = publisher(context, address)
    with MonitorSocket(address, [b"snapshot"]) as watching:
        assert subscription_frame(publishing) == b"\1snapshot"
        watching.subscribe(b"history\0")
        assert subscription_frame(publishing) == b"\1history\0"
        publishing.send(GARBAGE)
        while not watching.reader.malformed:
            watching.wait(0.05)
        watching.unsubscribe(b"history\0")
        assert subscription_frame(publishing) == b"\0history\0"


def test_event_loop_waits_for_the_descriptor(context: zmq.Context[zmq.Socket[bytes]], address: Address) -> None:
    publishing = publisher(context, address)
    with MonitorSocket(address) as watching:
        subscription_frame(publishing)
        watching.read()
        publishing.send(GARBAGE)
        while not watching.reader.malformed:
            assert select.select([watching.fileno()], [], [], 10)[0]
            watching.read()


def test_waits_for_a_scheduler_and_reconnects(address: Address) -> None:
    with MonitorSocket(address) as watching:
        assert (
            watching.connection_problem()
            == f"{address.path} does not exist yet: the scheduler does not run, or publishes elsewhere"
        )
        assert not watching.wait(0.01)
        for _ in range(2):
            context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
            publishing = publisher(context, address)
            while not publishing.poll(10):
                watching.read()  # a subscriber sends its subscriptions when it reads
            assert (publishing.recv(), watching.connection_problem()) == (b"\1snapshot", "")
            context.destroy(linger=0)  # close() waits until the socket's file is removed


def test_path_without_a_socket_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(MonitorAccessError, match=f"ipc://{path}: {path} is not a socket"):
        MonitorSocket(Address("ipc", "", 0, str(path)))
    assert (
        connection_problem(parse_bind_address("tcp://127.0.0.1:1"))
        == ""
        == connection_problem(Address("ipc", "", 0, "@name"))
    )


def as_other_user(ask: Callable[[], None]) -> str:
    """The error for a user who owns no files."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        try:
            ask()
        except MonitorAccessError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can enter. They cannot enter pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="needs root, to become another user")
def test_permission_error_names_user_and_group(open_folder: Path) -> None:
    address = Address("ipc", "", 0, str(open_folder / "monitor"))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address.path)
        os.chmod(address.path, 0o770)
        said = as_other_user(lambda: check_access(address))
        assert said == f"{address}: permission denied: the socket is for the user root and the group root"
        os.chmod(address.path, 0o700)
        assert as_other_user(lambda: check_access(address)).endswith("the socket is for the user root only")
        os.chmod(open_folder, 0o700)
        said = as_other_user(lambda: check_access(address))
        assert said.startswith(f"{address}: permission denied: the folder of {address.path} cannot be entered")


OWN = usual_socket_directory()
COMMAND = Command(
    "", "SCALER_EXAMPLE", "/nonexistent/example.toml", (*MONITOR_OPTIONS, Option("limit", integer(1, 9), 1, "a limit"))
)


def found(*argv: str, scheduler_file: Path | None = None, **environ: str) -> str:
    values = resolve(COMMAND, parse_arguments(COMMAND, argv), environ)
    return str(resolve_monitor_address(values, str(scheduler_file or "/nonexistent")))


def test_monitor_address_from_all_sources(tmp_path: Path) -> None:
    beside = f"ipc://{tmp_path}/scheduler"
    assert found("ipc:///a", SCALER_MONITOR_ADDRESS="ipc:///b", SCALER_ADDRESS="tcp://h:1") == "ipc:///a"
    assert found(SCALER_MONITOR_ADDRESS="tcp://h:2346", SCALER_ADDRESS="tcp://h:1") == "tcp://h:2346"
    assert found(SCALER_ADDRESS=beside) == f"{beside}_monitor"
    assert found("--scheduler-address", beside, SCALER_ADDRESS="tcp://h:1") == f"{beside}_monitor"
    file = tmp_path / "scheduler.toml"
    file.write_text(f'address = "{beside}"\nio_threads = 2\n')
    (tmp_path / "scheduler_monitor").touch()
    assert found(scheduler_file=file) == f"{beside}_monitor"
    file.write_text(f'address = "{beside}"\nmonitor_address = "ipc:///m"\n')
    assert found(scheduler_file=file) == "ipc:///m"
    assert found(scheduler_file=file, SCALER_ADDRESS=beside) == f"{beside}_monitor"


def test_a_schedulers_own_address_stands_for_its_monitor_address(open_folder: Path) -> None:
    own, monitor = f"ipc://{open_folder}/s", f"ipc://{open_folder}/s_monitor"
    with socket.socket(socket.AF_UNIX) as scheduler, socket.socket(socket.AF_UNIX) as listening:
        scheduler.bind(f"{open_folder}/s")
        scheduler.listen()
        assert found(own) == own
        listening.bind(f"{open_folder}/s_monitor")
        assert found(own) == own, "the file of a scheduler that was killed"
        listening.listen()
        assert found(own) == found(monitor) == monitor
    for long in ("ipc:///" + "x" * 100, "ipc://@" + "x" * 100):
        assert found(long) == long


def test_a_schedulers_own_port_stands_for_its_monitor_address(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {f"ipc://{OWN}/*_2345_monitor"}
    monkeypatch.setattr(monitor_address, "_is_listening", lambda address: str(address) in there)
    assert found("tcp://127.0.0.1:2345") == found("tcp://localhost:2345") == f"ipc://{OWN}/*_2345_monitor"
    for monitor in ("tcp://127.0.0.1:2346", "tcp://node-7:2345"):
        assert found(monitor) == monitor, "the scheduler of this machine is another one"
    there.add(f"ipc://{OWN}/node-7_2345_monitor")
    assert found("tcp://node-7:2345") == f"ipc://{OWN}/node-7_2345_monitor"


def test_scheduler_on_all_interfaces_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = {f"{OWN}/*_2345_monitor"}
    monkeypatch.setattr(os.path, "exists", lambda path: path in there)
    assert found(SCALER_ADDRESS="tcp://127.0.0.1:2345") == f"ipc://{OWN}/*_2345_monitor"
    there.clear()
    assert found(SCALER_ADDRESS="tcp://node-7:2345") == f"ipc://{OWN}/node-7_2345_monitor"
    there.add("/run/scaler/monitor")
    assert found(SCALER_ADDRESS="tcp://127.0.0.1:2345") == "ipc:///run/scaler/monitor"


def test_monitor_of_the_service_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.toml"
    file.write_text('address = "tcp://127.0.0.1:1"\n')
    assert found(scheduler_file=file) == "ipc:///run/scaler/monitor"
    for bound, reached in (("*", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("[::]", "[::1]"), ("10.0.0.1", "10.0.0.1")):
        file.write_text(f'address = "tcp://*:1"\nmonitor_address = "tcp://{bound}:2"\n')
        assert found(scheduler_file=file) == f"tcp://{reached}:2"


@pytest.mark.parametrize(
    "argv, complaint",
    [
        ([], "no monitor address: give it as an argument, in SCALER_MONITOR_ADDRESS or in the configuration"),
        (["tcp://*:1"], "monitor-address: bad address 'tcp://.:1': the host . is only for binding"),
        (["nonsense"], "monitor-address: bad address 'nonsense': it must be tcp://HOST:PORT or ipc://PATH"),
        (["--scheduler-address", "ipc:///" + "x" * 100], "the monitor address of .*: bad address .* at most"),
    ],
)
def test_missing_and_wrong_addresses(argv: list[str], complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        found(*argv)
