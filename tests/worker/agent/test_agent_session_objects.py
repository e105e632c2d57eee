"""Which objects a host agent writes to files, and when it removes the files."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from tests.worker.agent.agent_host import AGAIN, WELCOME, Host, lines, only

from scaler_client.protocol.messages import (
    FetchObjects,
    ForgetObjects,
    Goodbye,
    HeartbeatEcho,
    HelloWanted,
    Object,
    Shutdown,
    Welcome,
)
from scaler_worker.agent.effects import (
    Effect,
    Exit,
    Log,
    MarkObjectLost,
    RemoveObjects,
    Send,
    SendHeartbeat,
    SendObjects,
    SignalWorker,
    WriteObject,
)
from scaler_worker.agent.scheduler_link import ROOM_GAP_SECONDS

CLIENT = 40
ANOTHER = 41
FRAMES = [b"pickle", b"x" * 100]


def an_object(number: int, client: int = CLIENT, frames: Sequence[bytes] = FRAMES) -> Object:
    return Object(number, frames, client, "name")


def forget(*numbers: int, client: int = CLIENT) -> ForgetObjects:
    return ForgetObjects(list(numbers), [client] * len(numbers))


def test_an_object_is_written_once() -> None:
    host = Host()
    assert host.receive(an_object(7)) == [WriteObject((CLIENT, 7), FRAMES)]
    assert host.receive(an_object(7)) == [], "as it comes again after a lost connection"
    assert host.receive(an_object(7, ANOTHER)) == [WriteObject((ANOTHER, 7), FRAMES)]
    assert host.session.object_written((CLIENT, 7)) == []


def test_the_room_is_told_at_once_but_not_too_often() -> None:
    host = Host()
    host.at(1.0)
    host.session.tell_room(host.now)
    assert len(only(SendHeartbeat, host.at(1.0))) == 1
    host.session.tell_room(host.now)
    host.session.tell_room(host.now)
    assert only(SendHeartbeat, host.at(1.0)) == []
    assert len(only(SendHeartbeat, host.at(1.0 + ROOM_GAP_SECONDS))) == 1
    assert only(SendHeartbeat, host.at(2.9)) == [], "the next one comes an interval later"


def test_a_file_of_a_scheduler_of_another_version_is_not_read() -> None:
    host = Host()
    sent = Object(7, (), CLIENT, "name", file_bytes=1_000_000)
    [mark] = host.receive(sent)
    assert mark == MarkObjectLost((CLIENT, 7), "it is a file of a scheduler of another version")
    assert host.receive(forget(7)) == [RemoveObjects(((CLIENT, 7),))]


def test_an_object_is_removed_when_it_is_forgotten() -> None:
    host = Host()
    for number in (7, 8, 9):
        host.receive(an_object(number))
    names = (CLIENT, 7), (CLIENT, 9), (CLIENT, 99)
    assert host.receive(forget(7, 9, 99)) == [RemoveObjects(names)], "one may be a worker's"
    assert host.session.object_bytes == 106
    assert host.receive(an_object(7)) == [WriteObject((CLIENT, 7), FRAMES)]


def test_an_object_that_can_not_be_written_is_marked_lost() -> None:
    host = Host()
    host.receive(an_object(7))
    line, mark = host.session.object_written((CLIENT, 7), "No space left on device: /dev/shm/x")
    assert mark == MarkObjectLost((CLIENT, 7), "No space left on device: /dev/shm/x (106 bytes)")
    assert isinstance(line, Log) and line.level == logging.ERROR
    for part in (
        "object 7",
        f"client {CLIENT}",
        "106 bytes",
        "No space left on device",
        "/dev/shm/x",
        "the scheduler sends it to each worker",
    ):
        assert part in line.text
    assert host.receive(an_object(7)) == [], "what is marked stays so"
    assert host.receive(forget(7)) == [RemoveObjects(((CLIENT, 7),))], "the mark as well"


def test_missing_space_is_logged_once() -> None:
    host = Host()

    def written(number: int, error: str) -> list[Effect]:
        host.receive(an_object(number))
        return host.session.object_written((CLIENT, number), error)

    said = [lines(written(number, error), logging.ERROR) for number, error in enumerate(["full", "full", "", "full"])]
    assert list(map(len, said)) == [1, 0, 0, 1]


def test_a_new_scheduler_makes_all_objects_removed() -> None:
    host = Host()
    host.receive(an_object(7))
    host.receive(an_object(8))
    host.receive(HelloWanted())
    effects = host.receive(Welcome(1, "0.9", 6000, 60.0))
    assert only(RemoveObjects, effects) == [RemoveObjects(((CLIENT, 7), (CLIENT, 8)))]
    assert host.session.object_bytes == 0
    assert host.receive(an_object(7)) == [WriteObject((CLIENT, 7), FRAMES)]


def test_a_welcome_of_the_same_scheduler_keeps_objects() -> None:
    host = Host()
    host.receive(an_object(7))
    host.receive(HelloWanted())
    assert only(RemoveObjects, host.receive(WELCOME)) == []
    assert host.receive(an_object(7)) == []


def test_objects_that_do_not_come_again_are_removed() -> None:
    host = Host()
    for number in (7, 8, 9):
        host.receive(an_object(number))
    beat = only(SendHeartbeat, host.at(5.0))[-1]
    host.receive(HelloWanted())
    host.receive(WELCOME)
    host.receive(an_object(8))
    host.receive(forget(9))
    assert only(RemoveObjects, host.receive(HeartbeatEcho(beat.sequence))) == [], "it was sent before the welcome"
    beat = only(SendHeartbeat, host.at(10.0))[-1]
    assert only(RemoveObjects, host.receive(HeartbeatEcho(beat.sequence))) == [RemoveObjects(((CLIENT, 7),))]
    assert host.session.object_bytes == 106


def test_objects_are_still_written_while_the_agent_ends() -> None:
    host = Host()
    host.session.stop("SIGTERM", host.now)
    assert host.receive(an_object(7)) == [WriteObject((CLIENT, 7), FRAMES)]


def test_a_shutdown_by_a_client_ends_the_agent() -> None:
    host = Host(workers=2)
    effects = host.receive(Shutdown())
    assert only(SignalWorker, effects) == [SignalWorker(101, kill=False), SignalWorker(102, kill=False)]
    assert host.receive(Shutdown()) == [], "no order to hurry"
    host.receive(Goodbye("shut down by a client"))
    assert host.ends(101) == []
    assert host.ends(102) == [Send(Goodbye("shut down by a client")), Exit(0)]


def test_a_new_scheduler_names_the_files_of_workers_that_are_removed() -> None:
    """A worker may have written its file for the new scheduler already."""
    host = Host()
    host.files += [(CLIENT, 7), (CLIENT, 9)]
    host.receive(HelloWanted())
    assert only(RemoveObjects, host.receive(Welcome(1, "0.9", 6000, 60.0))) == []
    assert host.receive(forget(9)) == [RemoveObjects(((CLIENT, 9),))]


def test_the_scheduler_fetches_files_of_workers() -> None:
    host = Host()
    effects = host.receive(FetchObjects([7, 8], [CLIENT, ANOTHER]))
    assert effects == [SendObjects(((CLIENT, 7), (ANOTHER, 8)))]


def test_a_hello_names_files_of_workers() -> None:
    """The message that removes a file may have been lost with the connection."""
    host = Host()
    host.receive(an_object(7))
    host.files = [(CLIENT, 9), (CLIENT, 8), (CLIENT, 7)]
    host.at(1.0)
    (hello,) = only(Send, host.receive(HelloWanted()))
    assert hello.message == replace(AGAIN, running=[(CLIENT, 8, 0), (CLIENT, 9, 0)])
    assert host.receive(forget(8)) == [RemoveObjects(((CLIENT, 8),))]
