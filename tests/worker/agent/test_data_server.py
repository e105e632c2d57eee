"""The data address of an agent: who gets files there, and what bad messages do. Real sockets."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
import zmq
from tests.waiting import wait_until

from scaler_client.commands.addresses import Address, parse_bind_address
from scaler_client.commands.key_files import PeerKeys
from scaler_client.commands.object_files import objects_in, path_of, read_frames, write_object
from scaler_client.net.data_server import DataAddressError
from scaler_client.net.host_lookup import interface_to
from scaler_client.protocol.messages import DataAddress, NoObject, ObjectChunk, ReadObject, TransferObjects, Transferred
from scaler_worker.agent import data_server
from scaler_worker.agent.data_server import DataServer
from scaler_worker.agent.data_sources import DataSources, PartFiles
from scaler_worker.agent.disk_thread import DiskThread
from scaler_worker.agent.downloads import CHUNK_BYTES, Downloads
from scaler_worker.agent.effects import AskSource, CloseSource, DropPart, Effect, FinishFile, Send, WritePart
from scaler_worker.objects.host_storage import HostStorage

SCHEDULER = parse_bind_address("tcp://127.0.0.1:2345")
NAME = (4, 7)


def keys(public: bytes, secret: bytes) -> PeerKeys:
    from zmq.utils import z85

    return PeerKeys("", "worker", bytes(32), z85.decode(public), z85.decode(secret))


class Host:
    """An agent's data plane."""

    def __init__(self, folder: Path, with_keys: PeerKeys | None = None, wanted: Address | str = "auto") -> None:
        folder.mkdir(exist_ok=True)
        self.folder = str(folder)
        self.server = DataServer(wanted, SCHEDULER, with_keys, self.folder)
        self.sources = DataSources(with_keys, zmq.Poller())
        self.parts = PartFiles(self.folder)
        self.server.read_part = self.parts.read
        self.downloads = Downloads()
        self.answers: list[Transferred] = []

    def do(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, AskSource):
                self.sources.ask(effect.source, effect.message)
            elif isinstance(effect, CloseSource):
                self.sources.close_source(effect.source)
            elif isinstance(effect, WritePart):
                self.parts.write(effect)
            elif isinstance(effect, FinishFile):
                self.parts.finish(effect.name)
                self.answers.append(effect.answer)
            elif isinstance(effect, DropPart):
                self.parts.drop(effect.name)
            elif isinstance(effect, Send):
                assert isinstance(effect.message, Transferred)
                self.answers.append(effect.message)

    def get(self, size: int, source: DataAddress) -> None:
        self.do(self.downloads.start(TransferObjects(9, source, [NAME[0]], [NAME[1]], [size]), time.monotonic()))

    def turn(self) -> None:
        self.server.serve()
        if self.server.disk is not None:
            self.server.disk.finish()
        for source, message in self.sources.receive():
            self.do(self.downloads.received(source, message, time.monotonic()))
        self.do(self.downloads.tick(time.monotonic()))

    def close(self) -> None:
        self.sources.close()
        self.server.close()


def fetch(one: Host, other: Host, size: int, source: DataAddress | None = None) -> list[Transferred]:
    other.get(size, source or one.server.address)

    def is_answered() -> bool:
        one.turn()
        other.turn()
        return bool(other.answers)

    wait_until(is_answered, 30, "the transfer ends")
    return other.answers


@pytest.fixture
def hosts(tmp_path: Path):
    made: list[Host] = []

    def make(**options) -> Host:
        made.append(Host(tmp_path / str(len(made)), **options))
        return made[-1]

    yield make
    for host in made:
        host.close()


@pytest.mark.parametrize("has_keys", [False, True], ids=["plain", "with keys of two pairs"])
def test_a_file_goes_from_host_to_host(hosts, has_keys):
    one, other = (hosts(with_keys=keys(*zmq.curve_keypair()) if has_keys else None) for _ in range(2))
    frames = [b"a" * (3 * CHUNK_BYTES), b"", b"end"]
    write_object(one.folder, NAME, frames)
    (answer,) = fetch(one, other, sum(map(len, frames)))
    assert answer == Transferred(9, [NAME[0]], [NAME[1]])
    assert read_frames(other.folder, NAME) == frames
    assert objects_in(other.folder, with_unfinished=True) == [NAME]


def test_a_spilled_file_goes_from_host_to_host(hosts, tmp_path):
    one, other = hosts(), hosts()
    one.server.disk = DiskThread("disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    storage = HostStorage(one.folder)
    storage.create(1, 1 << 30, str(disk))
    frames = [b"a" * (3 * CHUNK_BYTES), b"", b"end"]
    storage.write(NAME, frames)
    assert storage.disk_path(NAME)
    assert fetch(one, other, sum(map(len, frames))) == [Transferred(9, [NAME[0]], [NAME[1]])]
    assert read_frames(other.folder, NAME) == frames
    os.unlink(storage.disk_path(NAME))
    other.answers.clear()
    (answer,) = fetch(one, other, sum(map(len, frames)))
    assert "is gone" in answer.error


def test_a_new_ticket_replaces_the_old_one(hosts):
    """As after the revocation of a key."""
    one = hosts()
    old = one.server.address
    one.server.take_ticket("new")
    assert one.server.address == replace(old, ticket="new")
    answer = one.server.answer(ReadObject(old.ticket, *NAME, 0, 10))
    assert isinstance(answer, NoObject) and "ticket" in answer.reason
    answer = one.server.answer(ReadObject("new", *NAME, 0, 10))
    assert answer is None, "the file may come"


def test_a_wrong_ticket_gets_nothing(hosts):
    one, other = hosts(), hosts()
    write_object(one.folder, NAME, [b"secret"])
    (answer,) = fetch(one, other, 6, DataAddress(one.server.address.address, "", "0" * 32))
    assert "ticket" in answer.error and not answer.is_unreachable
    assert objects_in(other.folder, with_unfinished=True) == []


def test_a_file_goes_through_a_host_that_is_still_getting_it(hosts):
    one, between, last = hosts(), hosts(), hosts()
    frames = [b"a" * (20 * CHUNK_BYTES), b"end"]
    size = sum(map(len, frames))
    last.get(size, between.server.address)  # it asks before the host between has asked
    for _ in range(10):
        last.turn()
        between.turn()
    between.get(size, one.server.address)
    write_object(one.folder, NAME, frames)
    early = []

    def is_done() -> bool:
        for host in (one, between, last):
            host.turn()
        if not between.answers:
            early.extend(last.parts._files)
        return bool(last.answers)

    wait_until(is_done, 30, "both transfers end")
    assert between.answers == last.answers == [Transferred(9, [NAME[0]], [NAME[1]])]
    assert early, "the last host got parts of the file before the other one had all of it"
    assert read_frames(last.folder, NAME) == read_frames(between.folder, NAME) == frames


def test_a_missing_file_is_reported_after_a_while(hosts, monkeypatch):
    monkeypatch.setattr(data_server, "WAIT_SECONDS", 0.01)
    one, other = hosts(), hosts()
    assert one.server.answer(ReadObject(one.server.address.ticket, *NAME, 0, 10)) is None
    assert one.server.deadline() == float("inf")
    (answer,) = fetch(one, other, 10)
    assert "no such file" in answer.error and not answer.is_unreachable


def test_few_requests_wait(hosts, monkeypatch):
    monkeypatch.setattr(data_server, "MAX_WAITING", 0)
    one, other = hosts(), hosts()
    (answer,) = fetch(one, other, 10)
    assert "no such file" in answer.error


def test_an_unreadable_file_is_reported(hosts):
    one = hosts()
    ticket = one.server.address.ticket
    Path(path_of(one.folder, NAME)).symlink_to("/etc/passwd")
    assert isinstance(one.server.answer(ReadObject(ticket, *NAME, 0, 10)), NoObject)


def test_a_request_gets_a_chunk_at_most(hosts):
    one = hosts()
    write_object(one.folder, NAME, [bytes(2 * CHUNK_BYTES)])
    ticket = one.server.address.ticket
    sizes = []
    for offset in (0, 2 * CHUNK_BYTES, 1 << 63, (1 << 64) - 1):
        answer = one.server.answer(ReadObject(ticket, *NAME, offset, (1 << 32) - 1))
        assert isinstance(answer, ObjectChunk)
        sizes.append(len(answer.payload))
    assert sizes == [CHUNK_BYTES, 64, 0, 0]


def test_a_damaged_file_is_not_taken(hosts):
    one, other = hosts(), hosts()
    Path(path_of(one.folder, NAME)).write_bytes(b"no header" * 100)
    with pytest.raises(ValueError, match="damaged"):
        fetch(one, other, 800)
    assert objects_in(other.folder, with_unfinished=True) == []


def test_garbage_does_not_end_the_server(hosts):
    one, other = hosts(), hosts()
    write_object(one.folder, NAME, [b"value"])
    with zmq.Context() as context, context.socket(zmq.DEALER) as hostile:
        hostile.setsockopt(zmq.LINGER, 0)
        hostile.connect(one.server.address.address)
        for garbage in ([b""], [b"garbage"], [bytes(8000)], [b"", b""], [b"\xff" * 64, b"x"], [bytes(1 << 20)]):
            hostile.send_multipart(garbage)
        assert fetch(one, other, 5) == [Transferred(9, [NAME[0]], [NAME[1]])]


def test_an_open_address_without_keys_is_refused(hosts):
    with pytest.raises(DataAddressError, match="--keys"):
        hosts(wanted=parse_bind_address("tcp://0.0.0.0:*"))
    pair = keys(*zmq.curve_keypair())
    announced = hosts(with_keys=pair, wanted=parse_bind_address("tcp://0.0.0.0:*")).server.address
    assert announced.address.startswith("tcp://127.0.0.1:") and announced.key == pair.public.hex()


def test_a_taken_port_is_named(hosts):
    taken = parse_bind_address(hosts().server.address.address)
    with pytest.raises(DataAddressError, match="by another process"):
        hosts(wanted=taken)


def test_no_data_address(hosts):
    assert hosts(wanted="").server.address == DataAddress()
    assert interface_to(parse_bind_address("ipc:///tmp/scaler")) == ""
    assert interface_to(parse_bind_address("tcp://no-such-host.invalid:1")) == ""
