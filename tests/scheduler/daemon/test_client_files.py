"""Objects that clients write as files: which are taken, who gets the file or its bytes, and when it is removed."""

from __future__ import annotations

import os
from array import array
from pathlib import Path

import pytest
from tests.scheduler.daemon.test_throttle import BY_NAME, GOOD, Rig

from scaler_scheduler.commands import object_files
from scaler_scheduler.commands.object_directory import ObjectDirectory
from scaler_scheduler.commands.object_files import SHARED_BYTES, path_of, write_object
from scaler_scheduler.core import effects, events
from scaler_scheduler.daemon.client_files import ClientFile, ClientFiles, SharedMemory, make_store
from scaler_scheduler.wire.errors import WireError

CLIENT = BY_NAME["hello-client"].fields["incarnation"]
AGENT = BY_NAME["hello-agent"].fields["incarnation"]
FRAMES = [b"pickle", b"x" * SHARED_BYTES]
SIZE = SHARED_BYTES + 6
NAME = (CLIENT, 32)
OTHER = b"other"


class Files:
    def __init__(self, place: Path) -> None:
        self.path = str(place / "scaler-0000000000000001")
        self.rig = Rig()
        self.rig.say(GOOD, "hello-client")
        self.files = ClientFiles(self.rig.core, SharedMemory(ObjectDirectory(self.path)))

    def announce(self, size: int = SIZE, route: bytes = GOOD) -> events.Object:
        """Receive an object as a file."""
        event = events.Object(route, 32, "table", [], file_bytes=size)
        self.files.take(event)
        self.rig.core.handle(event, self.rig.clock.now)
        return event

    def sent(self, event: events.Object, route: bytes) -> effects.Object:
        effect = effects.Object(route, CLIENT, 32, "table", event.frames)
        self.files.resolve(effect)
        return effect

    def names(self) -> list[str]:
        return os.listdir(self.path)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    monkeypatch.setattr(object_files, "SHARED_MEMORY", str(tmp_path))
    return Files(tmp_path)


def test_object_counts_with_the_size_of_its_frames(files: Files) -> None:
    write_object(files.path, NAME, FRAMES)
    event = files.announce()
    assert type(event.frames[0]) is ClientFile
    assert files.rig.core.tables.objects.bytes == SIZE


@pytest.mark.parametrize("size", [SIZE - (1 << 17), SIZE + 1000, 1 << 61], ids=["smaller", "larger", "much larger"])
def test_size_that_the_file_does_not_have(files: Files, size: int) -> None:
    write_object(files.path, NAME, [b"p", bytes(SIZE - 1)])
    with pytest.raises(WireError, match="object 32 has no file of"):
        files.announce(size)


def test_object_without_a_file(files: Files) -> None:
    with pytest.raises(WireError, match="object 32 has no file of"):
        files.announce()
    os.symlink("/etc/passwd", path_of(files.path, NAME))
    with pytest.raises(WireError, match="object 32 has no file of"):
        files.announce()


def test_scheduler_without_a_directory(files: Files) -> None:
    files.files = ClientFiles(files.rig.core, None)
    with pytest.raises(WireError, match="has no file"):
        files.announce()
    files.files.remove_unneeded()
    files.files.close()


def test_only_clients_have_files(files: Files) -> None:
    files.rig.say(OTHER, "hello-agent")
    with pytest.raises(WireError, match="a peer that is no client"):
        files.announce(route=OTHER)
    files.announce(route=b"unknown")
    assert files.rig.core.tables.objects.bytes == 0


def test_agent_of_this_host_gets_the_file_and_others_get_the_bytes(files: Files, tmp_path: Path) -> None:
    write_object(files.path, NAME, FRAMES)
    event = files.announce()
    files.rig.say(OTHER, "hello-agent")
    for route in (OTHER, b"a worker"):
        effect = files.sent(event, route)
        assert (effect.frames, effect.file_bytes) == (FRAMES, 0)
    (tmp_path / f"scaler-{AGENT:016x}").mkdir()
    effect = files.sent(event, OTHER)
    assert (effect.frames, effect.file_bytes) == ([], SIZE)


@pytest.mark.parametrize("damage", [b"", b"scalerO1", b"scalerO1" + b"\xff" * 16, b"x" * 100])
def test_damaged_file_ends_no_scheduler(files: Files, damage: bytes) -> None:
    write_object(files.path, NAME, FRAMES)
    event = files.announce()
    Path(path_of(files.path, NAME)).write_bytes(damage)
    assert files.sent(event, b"a worker").frames == []
    os.unlink(path_of(files.path, NAME))
    assert files.sent(event, b"a worker").frames == []


def test_file_is_removed_with_its_object(files: Files) -> None:
    write_object(files.path, NAME, FRAMES)
    files.announce()
    files.files.remove_unneeded()
    assert len(files.names()) == 1
    forget = events.ForgetObjects(GOOD, [32])  # type: ignore[arg-type]
    files.rig.core.handle(forget, files.rig.clock.now)
    files.files.remove_unneeded()
    assert files.names() == []


def test_file_whose_message_was_dropped_is_removed_when_the_client_forgets_it(files: Files) -> None:
    write_object(files.path, NAME, FRAMES)
    files.files.remove_unneeded()
    assert files.names(), "its message may still come"
    files.files.forget(events.ForgetObjects(GOOD, array("Q", [32, 33])))
    files.files.remove_unneeded()
    assert not files.names()


def test_files_of_a_client_that_has_left_are_removed(files: Files) -> None:
    for name in (NAME, (CLIENT + 1, 5)):
        write_object(files.path, name, FRAMES)
    Path(path_of(files.path, (CLIENT + 1, 6)) + ".77.part").write_bytes(b"half")
    files.files.remove_unneeded()
    assert files.names() == [os.path.basename(path_of(files.path, NAME))], "a message about it may be on its way"
    files.rig.say(GOOD, "goodbye")
    files.files.remove_unneeded()
    assert files.names() == []
    files.files.close()
    assert not os.path.exists(files.path)


def test_no_directory_can_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("scaler_scheduler.daemon.client_files.SHARED_MEMORY", str(tmp_path / "missing"))
    assert make_store(5) is None
