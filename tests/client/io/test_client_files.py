"""Objects as files of a client: who gets them, when their bytes are sent instead, and what is left behind."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq
from tests.waiting import wait_until

from scaler_client.commands import object_directory, object_files
from scaler_client.commands.addresses import Address, parse_bind_address
from scaler_client.commands.object_directory import ObjectDirectory, make_directory
from scaler_client.commands.object_files import (
    CHUNK_BYTES,
    SHARED_BYTES,
    directory_of,
    file_id,
    path_of,
    read_frames,
    write_object,
)
from scaler_client.io import client_files
from scaler_client.io.client_files import ClientFiles
from scaler_client.net.data_server import DataAddressError
from scaler_client.pickling.object_frames import ResultFile
from scaler_client.protocol.messages import DataAddress, FileResult, NoObject, Object, ObjectChunk, ReadObject
from scaler_client.protocol.wire import decode, encode

CLIENT = 6
SCHEDULER = parse_bind_address("tcp://127.0.0.1:2345")
FRAMES = [b"pickle", b"x" * SHARED_BYTES]
MESSAGE = Object(7, FRAMES, name="table")
SECONDS = 20

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and permissions as on Unix")

Make = Callable[..., ClientFiles]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    for module in (object_files, client_files):
        monkeypatch.setattr(module, "SHARED_MEMORY", str(tmp_path))
    made: list[ClientFiles] = []

    def make(wanted: Address | str = "", scheduler: Address = SCHEDULER) -> ClientFiles:
        made.append(ClientFiles(CLIENT, scheduler, None, wanted))
        return made[-1]

    yield make
    for files in made:
        files.close()


def ask(address: str, *frames: bytes) -> list[bytes]:
    """Send one message to a data address; return the answer. Empty: there is none in time."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(address)
        socket.send_multipart(frames)
        return socket.recv_multipart() if socket.poll(SECONDS * 1000) else []


def request(data: DataAddress, object_id: int, offset: int = 0, client: int = CLIENT) -> list[bytes]:
    return [bytes(frame) for frame in encode(ReadObject(data.ticket, client, object_id, offset, CHUNK_BYTES))]


def test_a_large_object_becomes_a_file(make: Make) -> None:
    files = make()
    assert files.share(MESSAGE) == Object(7, (), name="table", file_bytes=SHARED_BYTES + 6)
    directory = directory_of(CLIENT)
    assert read_frames(directory, (CLIENT, 7)) == FRAMES == files.read(7)
    assert files.has(7) and list(files.ids()) == [7]
    files.remove(7)
    assert not os.listdir(directory) and not files.has(7)
    files.close()
    assert not os.path.exists(directory)
    assert files.share(MESSAGE) is MESSAGE, "a closed client writes no file"


def test_a_small_object_is_sent_and_makes_no_directory(make: Make) -> None:
    small = Object(7, [b"x" * (SHARED_BYTES - 1)])
    assert make("auto").share(small) is small
    assert not os.path.exists(directory_of(CLIENT))
    assert not [thread for thread in threading.enumerate() if thread.name == "scaler-data"]


def test_no_shared_memory(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_files, "SHARED_MEMORY", str(tmp_path / "missing"))
    assert make("auto").share(MESSAGE) is MESSAGE


def test_no_space(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(client_files, "write_object", fail)
    files = make()
    assert files.share(MESSAGE) is MESSAGE and not files.ids()


def test_a_removed_file_is_an_error_of_one_object(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    files = make()
    files.share(MESSAGE)
    os.unlink(object_files.path_of(directory_of(CLIENT), (CLIENT, 7)))
    assert files.read(7) is None
    assert "object 7 is lost with its file" in caplog.text


def test_an_agent_gets_a_file_in_chunks(make: Make) -> None:
    files = make("auto")
    large = [b"p", b"y" * (CHUNK_BYTES + 5)]
    data = files.share(Object(7, large)).data
    size = object_files.file_bytes(large)
    chunks = [decode(ask(data.address, *request(data, 7, offset))) for offset in (0, CHUNK_BYTES)]
    assert all(isinstance(chunk, ObjectChunk) and chunk.file_bytes == size for chunk in chunks)
    path = object_files.path_of(directory_of(CLIENT), (CLIENT, 7))
    assert b"".join(bytes(chunk.payload) for chunk in chunks) == Path(path).read_bytes()  # type: ignore[union-attr]


def test_who_does_not_know_the_ticket_or_the_name_gets_nothing(make: Make) -> None:
    files = make("auto")
    data = files.share(MESSAGE).data
    wrong = DataAddress(data.address, "", "0" * 32)
    assert decode(ask(data.address, *request(wrong, 7))) == NoObject(CLIENT, 7, "the ticket is wrong")
    assert decode(ask(data.address, *request(data, 8))) == NoObject(CLIENT, 8, "there is no such file")
    assert decode(ask(data.address, *request(data, 7, client=5))) == NoObject(5, 7, "there is no such file")


def test_garbage_is_dropped_and_logged_once(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    files = make("auto")
    data = files.share(MESSAGE).data
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(data.address)
        for number in range(200):
            socket.send_multipart([os.urandom(number)] * (number % 4 + 1))
        socket.send_multipart(request(data, 7))
        assert socket.poll(SECONDS * 1000)
        assert isinstance(decode(socket.recv_multipart()), ObjectChunk)
    wait_until(lambda: caplog.text.count("no requests of an agent") == 1, SECONDS)


def test_a_port_that_is_scanned(make: Make) -> None:
    import socket

    files = make("auto")
    data = files.share(MESSAGE).data
    host, port = data.address.removeprefix("tcp://").split(":")
    for garbage in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 10_000, b"\0" * 64):
        with socket.create_connection((host, int(port)), SECONDS) as connection:
            connection.sendall(garbage)
    assert isinstance(decode(ask(data.address, *request(data, 7))), ObjectChunk)


def test_close_while_an_agent_reads(make: Make) -> None:
    files = make("auto")
    data = files.share(Object(7, [b"y" * (8 * CHUNK_BYTES)])).data
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(data.address)
        for _ in range(100):  # more than the server queues, and nothing is read
            socket.send_multipart(request(data, 7))
        assert socket.poll(SECONDS * 1000)
        files.close()
    assert not os.path.exists(directory_of(CLIENT))
    assert not [thread for thread in threading.enumerate() if thread.name == "scaler-data"]


def test_an_address_that_is_taken_is_an_error_at_the_start(make: Make) -> None:
    first = make(parse_bind_address("tcp://127.0.0.1:*"))
    taken = first.share(MESSAGE).data.address
    with pytest.raises(DataAddressError, match=f"data_address: cannot bind {taken}: .*another process"):
        ClientFiles(CLIENT + 1, SCHEDULER, None, parse_bind_address(taken))
    assert not os.path.exists(directory_of(CLIENT + 1))


def test_an_open_address_needs_keys_if_the_scheduler_is_here(make: Make) -> None:
    with pytest.raises(DataAddressError, match="can be reached from other machines.*give keys=DIR"):
        make(parse_bind_address("tcp://*:*"))


def test_without_an_interface_that_others_reach_only_this_host_gets_files(make: Make) -> None:
    files = make("auto", Address("ipc", "", 0, "/tmp/somewhere"))
    assert files.share(MESSAGE).data == DataAddress()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_leaves_the_files_to_its_parent(make: Make) -> None:
    files = make("auto")
    data = files.share(MESSAGE).data
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            files.mark_forked()
            files.close()
            os.write(writer, b"o" if files.share(MESSAGE) is MESSAGE else b"x")
        finally:
            os._exit(0)
    os.close(writer)
    try:
        assert os.read(reader, 1) == b"o"
    finally:
        os.close(reader)
        os.waitpid(child, 0)
    assert read_frames(directory_of(CLIENT), (CLIENT, 7)) == FRAMES
    assert isinstance(decode(ask(data.address, *request(data, 7))), ObjectChunk)


def test_files_of_a_killed_client_are_removed(make: Make, tmp_path: Path) -> None:
    files = make()
    files.share(MESSAGE)
    assert files._directory is not None
    object_directory.remove_stale(str(tmp_path))
    assert os.listdir(directory_of(CLIENT)), "its client lives"
    files._directory.release_lock()  # as the system does when a process is killed
    object_directory.remove_stale(str(tmp_path))
    assert not os.path.exists(directory_of(CLIENT))


def test_make_directory_removes_what_killed_clients_have_left(tmp_path: Path) -> None:
    left = ObjectDirectory(str(tmp_path / "scaler-0000000000000005"))
    left.release_lock()
    made = make_directory(6, [str(tmp_path)])
    assert os.listdir(tmp_path) == ["scaler-0000000000000006"]
    made.remove()


def write_result(directory: Path, task_id: int, frames: list[bytes], attempt: int = 1) -> FileResult:
    """Do what a worker does with a large result."""
    file = file_id(task_id, attempt)
    write_object(str(directory), (CLIENT, file), frames)
    return FileResult(file, sum(map(len, frames)))


def test_a_result_is_taken_out_of_its_file(make: Make) -> None:
    files = make()
    files.take_results()
    directory = Path(directory_of(CLIENT))
    result = write_result(directory, 7, FRAMES)
    taken = files.take_result(result)
    assert isinstance(taken, ResultFile) and len(taken) == result.size and not os.listdir(directory)
    assert list(map(bytes, taken.frames)) == FRAMES
    (own,) = taken._own
    assert isinstance(own, memoryview)
    own[:5] = b"again"
    assert bytes(taken.frames[1]) == FRAMES[1], "other tasks read what the task has returned"


def test_a_result_of_one_frame_is_its_bytes(make: Make) -> None:
    files = make()
    files.take_results()
    taken = files.take_result(write_result(Path(directory_of(CLIENT)), 7, [FRAMES[1]]))
    assert isinstance(taken, memoryview) and taken == FRAMES[1]


def test_a_result_without_a_mapping_is_read(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process has some 65,000 mappings at most."""

    def fail(*_: object) -> memoryview:
        raise OSError(12, "no more mappings")

    files = make()
    files.take_results()
    result = write_result(Path(directory_of(CLIENT)), 7, FRAMES)
    monkeypatch.setattr(client_files, "map_copy", fail)
    taken = files.take_result(result)
    assert isinstance(taken, ResultFile) and list(map(bytes, taken.frames)) == FRAMES
    (own,) = taken._own
    assert isinstance(own, memoryview) and not own.readonly


@pytest.mark.parametrize("damage", [None, b"", b"no object"])
def test_a_result_without_a_file_is_lost(make: Make, damage: bytes | None) -> None:
    files = make()
    files.take_results()
    if damage is not None:
        Path(path_of(directory_of(CLIENT), (CLIENT, file_id(7, 1)))).write_bytes(damage)
    assert files.take_result(FileResult(file_id(7, 1), 5)) is None


def test_results_that_nobody_takes_are_removed(make: Make) -> None:
    files = make()
    files.take_results()
    directory = Path(directory_of(CLIENT))
    wanted = write_result(directory, 7, FRAMES)
    write_result(directory, 8, FRAMES, attempt=3)
    files.share(Object(9, FRAMES))
    files.remove_results(lambda task_id: task_id == 7)
    assert files.has(9) and len(os.listdir(directory)) == 2
    assert files.take_result(wanted) is not None
    write_result(directory, 8, FRAMES, attempt=4)
    files.remove_results(lambda _: False)
    assert len(os.listdir(directory)) == 1 and read_frames(str(directory), (CLIENT, 9)) == FRAMES


def test_a_closed_client_has_no_results(make: Make) -> None:
    files = make()
    files.take_results()
    result = write_result(Path(directory_of(CLIENT)), 7, FRAMES)
    files.close()
    assert files.take_result(result) is None and not os.path.exists(directory_of(CLIENT))
    files.remove_results(lambda _: False)
