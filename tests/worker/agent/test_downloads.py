"""The files that an agent gets from other agents: chunks, credit, failures."""

from __future__ import annotations

import pytest

from scaler_client.protocol.messages import DataAddress, NoObject, ObjectChunk, ReadObject, TransferObjects, Transferred
from scaler_worker.agent.downloads import (
    CHUNK_BYTES,
    CHUNKS_IN_FLIGHT,
    CONNECT_SECONDS,
    FIRST_CHUNK_BYTES,
    IDLE_SECONDS,
    MAX_IDLE,
    MOST_ROOM_SECONDS,
    ROOM_SECONDS,
    SILENCE_SECONDS,
    Downloads,
)
from scaler_worker.agent.effects import AskSource, CloseSource, DropPart, Effect, FinishFile, LinkFile, Send, WritePart

SOURCE = DataAddress("tcp://10.0.0.7:1", "", "ticket")
OTHER = DataAddress("tcp://10.0.0.8:1", "", "ticket")
CLIENT, AGENT = 4, 9
HEADER = 128


def order(size: int, number: int = 7, source: DataAddress = SOURCE) -> TransferObjects:
    return TransferObjects(AGENT, source, [CLIENT], [number], [size])


class Fetching:
    """Downloads, and the requests that are not answered yet."""

    def __init__(self, *orders: TransferObjects, files: tuple[tuple[int, int], ...] = (), room: int = 1 << 40) -> None:
        self.room = room
        self.linkable: set[tuple[int, int]] = set()
        """The files of clients on this host."""
        self.downloads = Downloads(
            lambda name: name in files,
            lambda size, coming: coming + size <= self.room,
            lambda name: name in self.linkable,
        )
        self.now = 100.0
        self.asked: list[ReadObject] = []
        self.content = b""
        self.rest: list[Effect] = []
        for each in orders:
            self.do(self.downloads.start(each, self.now))

    def do(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, AskSource):
                assert effect.source.ticket == effect.message.ticket
                self.asked.append(effect.message)
            elif isinstance(effect, WritePart):
                assert effect.offset == len(self.content)
                self.content += effect.payload
            else:
                self.rest.append(effect)

    def answer(self, file: bytes) -> None:
        """Answer the oldest request."""
        asked = self.asked.pop(0)
        part = file[asked.offset : asked.offset + asked.bytes]
        self.say(ObjectChunk(asked.client, asked.id, asked.offset, len(file), part))

    def say(self, message: ObjectChunk | NoObject, source: DataAddress = SOURCE) -> None:
        self.do(self.downloads.received(source, message, self.now))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.do(self.downloads.tick(self.now))

    @property
    def answers(self) -> list[Transferred]:
        return [effect.message for effect in self.rest if isinstance(effect, Send)]


def of_client(number: int = 7) -> TransferObjects:
    """An order of a file that its client has."""
    return TransferObjects(CLIENT, SOURCE, [CLIENT], [number], [1000])


def linking() -> Fetching:
    """A file of a client on this host is being linked."""
    fetching = Fetching()
    fetching.linkable.add((CLIENT, 7))
    fetching.do(fetching.downloads.start(of_client(), fetching.now))
    assert fetching.rest == [LinkFile((CLIENT, 7))] and not fetching.asked
    return fetching


def test_a_file_of_a_client_on_this_host_is_linked():
    fetching = linking()
    fetching.do(fetching.downloads.start(of_client(), fetching.now))
    assert fetching.rest == [LinkFile((CLIENT, 7))], "the order was repeated"
    fetching.do(fetching.downloads.linked((CLIENT, 7), True, fetching.now))
    fetching.do(fetching.downloads.linked((CLIENT, 7), True, fetching.now))
    assert fetching.answers == [Transferred(CLIENT, [CLIENT], [7])]


def test_a_file_that_cannot_be_linked_is_fetched():
    fetching = linking()
    fetching.do(fetching.downloads.linked((CLIENT, 7), False, fetching.now))
    assert not fetching.answers and [request.id for request in fetching.asked] == [7]


def test_a_file_that_is_being_linked_is_forgotten():
    fetching = linking()
    fetching.do(fetching.downloads.forget([(CLIENT, 7)]))
    fetching.do(fetching.downloads.linked((CLIENT, 7), True, fetching.now))
    (answer,) = fetching.answers
    assert answer.error and not fetching.asked


def test_a_new_scheduler_knows_no_file_that_is_being_linked():
    fetching = linking()
    fetching.do(fetching.downloads.clear())
    fetching.do(fetching.downloads.linked((CLIENT, 7), True, fetching.now))
    assert not fetching.answers


def test_a_file_comes_in_chunks_with_credit():
    file = bytes(range(256)) * (10 * CHUNK_BYTES // 256) + b"end"
    fetching = Fetching(order(len(file) - HEADER))
    assert [(asked.offset, asked.bytes) for asked in fetching.asked] == [(0, FIRST_CHUNK_BYTES)]
    most = 0
    while fetching.asked:
        fetching.answer(file)
        most = max(most, len(fetching.asked))
    assert most == CHUNKS_IN_FLIGHT
    assert fetching.content == file
    done = Transferred(AGENT, [CLIENT], [7])
    assert fetching.rest == [FinishFile((CLIENT, 7), done)]
    assert len(fetching.downloads) == 0 and fetching.downloads.deadline() == fetching.now + IDLE_SECONDS
    fetching.pass_time(IDLE_SECONDS)
    assert fetching.rest[1:] == [CloseSource(SOURCE)] and fetching.downloads.deadline() == float("inf")


def test_a_small_file_takes_one_chunk():
    fetching = Fetching(order(10))
    fetching.answer(bytes(10 + HEADER))
    assert len(fetching.content) == 10 + HEADER and len(fetching.downloads) == 0


def test_a_file_that_is_there_is_answered_at_once():
    fetching = Fetching(order(10), files=((CLIENT, 7),))
    assert fetching.answers == [Transferred(AGENT, [CLIENT], [7])] and not fetching.asked


def test_a_repeated_order_changes_nothing():
    fetching = Fetching(order(10), order(10))
    assert len(fetching.asked) == 1 and not fetching.rest


def test_another_source_replaces_the_first():
    fetching = Fetching(order(10), order(10, source=OTHER))
    assert fetching.rest == [DropPart((CLIENT, 7)), CloseSource(SOURCE)]
    fetching.say(ObjectChunk(CLIENT, 7, 0, 10 + HEADER, bytes(10 + HEADER)))  # late
    assert len(fetching.downloads) == 1 and not fetching.content


@pytest.mark.parametrize(
    "chunk",
    [
        ObjectChunk(CLIENT, 7, 1, 1000, bytes(999)),
        ObjectChunk(CLIENT, 7, 0, 1000, bytes(999)),
        ObjectChunk(CLIENT, 7, 0, 1000, bytes(1001)),
        ObjectChunk(CLIENT, 7, 0, 899, bytes(899)),
        ObjectChunk(CLIENT, 7, 0, 900 + (1 << 30), bytes(FIRST_CHUNK_BYTES)),
        ObjectChunk(CLIENT, 7, 1 << 63, 1000, b""),
    ],
    ids=["other offset", "too short", "too long", "smaller than its frames", "much larger", "beyond the end"],
)
def test_a_wrong_chunk_ends_the_transfer(chunk):
    fetching = Fetching(order(900))
    fetching.say(chunk)
    (answer,) = fetching.answers
    assert answer.error and not answer.is_unreachable and not fetching.content
    assert fetching.rest[:2] == [DropPart((CLIENT, 7)), CloseSource(SOURCE)]


def test_a_file_that_changes_its_size_ends_the_transfer():
    fetching = Fetching(order(3 * CHUNK_BYTES))
    fetching.answer(bytes(3 * CHUNK_BYTES + HEADER))
    fetching.answer(bytes(3 * CHUNK_BYTES + 2 * HEADER))
    assert fetching.answers[0].error


def test_a_missing_file_is_reported():
    fetching = Fetching(order(900))
    fetching.say(NoObject(CLIENT, 7, "there is no such file"))
    assert fetching.answers == [Transferred(AGENT, [CLIENT], [7], "there is no such file")]


def test_a_source_that_never_answers_is_unreachable():
    fetching = Fetching(order(900))
    fetching.pass_time(CONNECT_SECONDS - 0.1)
    assert not fetching.answers
    assert fetching.downloads.deadline() == 100 + CONNECT_SECONDS
    fetching.pass_time(0.2)
    assert [answer.is_unreachable for answer in fetching.answers] == [True]


def test_a_source_that_falls_silent_has_failed_but_is_reachable():
    fetching = Fetching(order(3 * CHUNK_BYTES))
    fetching.answer(bytes(3 * CHUNK_BYTES + HEADER))
    fetching.pass_time(SILENCE_SECONDS - 0.1)
    assert not fetching.answers
    fetching.pass_time(0.2)
    (answer,) = fetching.answers
    assert "sent nothing" in answer.error and not answer.is_unreachable


def test_the_connection_stays_for_the_next_file():
    fetching = Fetching(order(900), order(900, number=8))
    fetching.answer(bytes(900 + HEADER))
    for number in (9, 10):
        fetching.content = b""
        fetching.answer(bytes(900 + HEADER))
        fetching.pass_time(IDLE_SECONDS - 0.1)
        fetching.do(fetching.downloads.start(order(900, number), fetching.now))
        fetching.pass_time(0.2)
        assert CloseSource(SOURCE) not in fetching.rest
    fetching.content = b""
    fetching.answer(bytes(900 + HEADER))
    fetching.pass_time(IDLE_SECONDS)
    assert fetching.rest[-1] == CloseSource(SOURCE) and len(fetching.answers) == 0


def test_an_open_connection_brings_the_same_chunks_without_a_wait_for_the_first():
    file = bytes(range(256)) * (3 * CHUNK_BYTES // 256)
    requested: list[list[tuple[int, int]]] = []
    fetching = Fetching()
    for number in (7, 8):
        fetching.do(fetching.downloads.start(order(len(file) - HEADER, number), fetching.now))
        assert len(fetching.asked) == (1 if number == 7 else 4)
        requested.append([])
        fetching.content = b""
        while fetching.asked:
            requested[-1].append((fetching.asked[0].offset, fetching.asked[0].bytes))
            fetching.answer(file)
        assert fetching.content == file
    assert requested[0] == requested[1] and not fetching.answers


def test_a_failure_closes_the_connection():
    fetching = Fetching(order(900))
    fetching.answer(bytes(900 + HEADER))
    fetching.do(fetching.downloads.start(order(2 * CHUNK_BYTES, 8), fetching.now))
    fetching.do(fetching.downloads.forget([(CLIENT, 8)]))
    assert CloseSource(SOURCE) in fetching.rest
    fetching.asked.clear()
    fetching.do(fetching.downloads.start(order(2 * CHUNK_BYTES, 9), fetching.now))
    assert len(fetching.asked) == 1


def test_a_source_that_dies_while_its_connection_is_idle_is_unreachable():
    fetching = Fetching(order(900))
    fetching.answer(bytes(900 + HEADER))
    fetching.do(fetching.downloads.start(order(900, 8), fetching.now))
    fetching.pass_time(CONNECT_SECONDS)
    assert [answer.is_unreachable for answer in fetching.answers] == [True]
    assert fetching.rest[-2:] == [CloseSource(SOURCE), Send(fetching.answers[0])]


def test_few_connections_stay_idle():
    sources = [DataAddress(f"tcp://10.0.0.8:{port}", "", "ticket") for port in range(1, MAX_IDLE + 3)]
    fetching = Fetching()
    for number, source in enumerate(sources):
        fetching.do(fetching.downloads.start(order(900, number, source), fetching.now))
        fetching.asked.clear()
        fetching.content = b""
        fetching.say(ObjectChunk(CLIENT, number, 0, 900 + HEADER, bytes(900 + HEADER)), source)
    assert [effect.source for effect in fetching.rest if isinstance(effect, CloseSource)] == sources[:2]


def test_what_was_not_asked_for_is_ignored():
    fetching = Fetching(order(900))
    fetching.say(ObjectChunk(CLIENT, 8, 0, 1000, bytes(1000)))
    fetching.say(ObjectChunk(CLIENT, 7, 0, 1000, bytes(1000)), OTHER)
    assert not fetching.rest and not fetching.content and len(fetching.downloads) == 1


def test_a_forgotten_file_is_answered_and_dropped():
    fetching = Fetching(order(900))
    fetching.do(fetching.downloads.forget([(CLIENT, 7), (CLIENT, 8)]))
    assert fetching.answers[0].error and DropPart((CLIENT, 7)) in fetching.rest


def test_a_new_scheduler_gets_no_answers():
    fetching = Fetching(order(900), order(900, number=8))
    fetching.do(fetching.downloads.clear())
    assert not fetching.answers and len(fetching.downloads) == 0


def test_a_part_that_cannot_be_written_ends_the_transfer():
    fetching = Fetching(order(900))
    fetching.do(fetching.downloads.write_failed((CLIENT, 7), "No space left on device: /dev/shm"))
    assert fetching.answers == [Transferred(AGENT, [CLIENT], [7], "No space left on device: /dev/shm")]


def test_a_file_waits_for_room():
    fetching = Fetching(order(900), order(200, 8), order(100, 9), room=1000)
    assert [asked.id for asked in fetching.asked] == [7, 9]
    assert fetching.downloads.deadline() == 100 + ROOM_SECONDS
    fetching.pass_time(ROOM_SECONDS)
    assert [asked.id for asked in fetching.asked] == [7, 9]
    fetching.room = 1200
    fetching.pass_time(ROOM_SECONDS)
    assert [asked.id for asked in fetching.asked] == [7, 9, 8]
    assert fetching.downloads.deadline() == 100 + CONNECT_SECONDS and not fetching.rest


def test_a_file_waits_for_room_only_for_a_while():
    fetching = Fetching(order(900), room=100)
    fetching.pass_time(MOST_ROOM_SECONDS - ROOM_SECONDS)
    assert not fetching.asked
    fetching.pass_time(ROOM_SECONDS)
    assert [asked.id for asked in fetching.asked] == [7]
    assert MOST_ROOM_SECONDS < CONNECT_SECONDS


def test_if_a_file_has_waited_in_vain_others_do_not_wait():
    fetching = Fetching(order(900), room=100)
    fetching.pass_time(MOST_ROOM_SECONDS)
    fetching.do(fetching.downloads.start(order(800, 8), fetching.now))
    assert [asked.id for asked in fetching.asked] == [7, 8]
    fetching.pass_time(MOST_ROOM_SECONDS)
    fetching.do(fetching.downloads.start(order(800, 9), fetching.now))
    assert [asked.id for asked in fetching.asked] == [7, 8]


def test_a_file_that_waits_for_room_can_be_forgotten():
    fetching = Fetching(order(900), room=100)
    fetching.do(fetching.downloads.forget([(CLIENT, 7)]))
    assert len(fetching.downloads) == 0 and not fetching.asked
    assert fetching.answers == [Transferred(AGENT, [CLIENT], [7], "it is not needed any more")]
