"""Gets object files from the agents of other hosts and from clients, in chunks. Sans-IO.

An agent asks for each chunk (`readObject`), so the requests that are not answered yet are the credit of the other side.
Each file of a `transferObjects` is answered once, by `transferred`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from scaler_client.commands.object_files import CHUNK_BYTES, ObjectName
from scaler_client.protocol.messages import (
    DataAddress,
    Message,
    NoObject,
    ObjectChunk,
    ReadObject,
    TransferObjects,
    Transferred,
)

from .effects import AskSource, CloseSource, DropPart, Effect, FinishFile, LinkFile, Send, WritePart

FIRST_CHUNK_BYTES = 256 * 1024
"""The first chunk is small, so that it shows soon whether there is a connection, but not so small that files of 64 KiB
and a little more need two. All agents ask for the same chunks, because an agent that still gets a file passes on the
chunks that it has."""

IDLE_SECONDS = 2.0
"""A connection stays open so long after the last file came through it. A shuffle gets many small files from each host:
a new connection for each file would cost more than the file."""

MAX_IDLE = 16
"""The most connections that stay open with nothing to fetch."""

CHUNKS_IN_FLIGHT = 4
"""The most requests of one file that are not answered yet."""

CONNECT_SECONDS = 5.0
"""A source that has sent nothing for this time cannot be reached."""

SILENCE_SECONDS = 15.0
"""A source that has sent nothing of a file for this time has failed."""

ROOM_SECONDS = 0.05
"""The time to the next look whether there is room for a file that waits for it."""

MOST_ROOM_SECONDS = 2.0
"""A file waits for room at most so long. It must be less than CONNECT_SECONDS: other hosts may get the file from this
one. If a file has waited in vain, nothing makes room: during the next MOST_ROOM_SECONDS no file waits."""

MAX_HEADER_BYTES = 64 * 1024
"""A file has at most so many bytes more than its frames: the header, and the gaps between the frames."""


@dataclass(frozen=True)
class Order:
    """The scheduler's request to get one file."""

    name: ObjectName
    bytes: int
    """The size of the object's frames in all."""
    source: int
    """The incarnation of the agent or client that has the file."""
    data: DataAddress
    """Its data address."""

    def answer(self, error: str = "", is_unreachable: bool = False) -> Transferred:
        client, object_id = self.name
        return Transferred(self.source, [client], [object_id], error, is_unreachable)


@dataclass
class _Download:
    """One file that is being fetched."""

    order: Order
    ordered_at: float
    """When the scheduler asked for it."""
    heard_at: float
    """When the source last sent a part of it, or when it was asked first. While the file waits for room: when it was
    looked for."""
    is_waiting: bool = False
    """Whether it waits for room on this host. Nothing was asked for yet."""
    file_bytes: int = 0
    """The size of the file; 0: not known yet."""
    next_offset: int = 0
    """The first byte that was not asked for."""
    received_bytes: int = 0
    is_connected: bool = False
    """Whether the source had a connection when it was first asked. If so, the second chunk does not wait."""
    awaited: dict[int, int] = field(default_factory=dict)
    """The chunks that were asked for: their sizes by offset."""

    @property
    def name(self) -> ObjectName:
        return self.order.name

    @property
    def end(self) -> int:
        """The end of the file as far as it is known. It is larger than its frames."""
        return self.file_bytes or self.order.bytes

    def is_expected(self, chunk: ObjectChunk) -> bool:
        """Whether the chunk is what was asked for."""
        wanted = self.awaited.get(chunk.offset, 0)
        least, most = self.order.bytes, self.order.bytes + MAX_HEADER_BYTES
        is_size_known = self.file_bytes in (0, chunk.file_bytes)
        if not wanted or not is_size_known or not least <= chunk.file_bytes <= most:
            return False
        return len(chunk.payload) == min(wanted, chunk.file_bytes - chunk.offset)


class Downloads:
    """The files that an agent fetches from others.

    A file waits for a while until the host has room for it, unless another file has just waited in vain. A file of a
    client on this host is linked at once.

    Args:
        has_file: whether an object is a file of this host.
        has_room: whether the host has room for a file of so many bytes, beside so many bytes that are being fetched.
        can_link: whether a client on this host has the object's file.
    """

    def __init__(
        self,
        has_file: Callable[[ObjectName], bool] = lambda name: False,
        has_room: Callable[[int, int], bool] = lambda size, coming: True,
        can_link: Callable[[ObjectName], bool] = lambda name: False,
    ) -> None:
        self._has_file = has_file
        self._can_link = can_link
        self._has_room = has_room
        self._downloads: dict[ObjectName, _Download] = {}
        self._linking: dict[ObjectName, Order] = {}
        """The files of clients on this host that are being linked."""
        self._used: Counter[DataAddress] = Counter()
        """The number of files that are being fetched from each source, or wait to be."""
        self._coming_bytes = 0
        """The size of the files that are being fetched."""
        self._crowded_until = float("-inf")
        """Until when files do not wait for room, in seconds of the monotonic clock."""
        self._heard: set[DataAddress] = set()
        """The sources that have sent something since they were asked first."""
        self._idle: dict[DataAddress, float] = {}
        """The sources with an open connection from which nothing is fetched, and since when; oldest first."""

    def __len__(self) -> int:
        return len(self._downloads)

    def start(self, orders: TransferObjects, now: float) -> list[Effect]:
        """Handle the scheduler's request to get files."""
        effects: list[Effect] = []
        for client, object_id, size in zip(orders.clients, orders.ids, orders.bytes):
            effects += self._start(Order((client, object_id), size, orders.source, orders.data), now)
        return effects

    def _start(self, order: Order, now: float) -> list[Effect]:
        name = order.name
        effects: list[Effect] = []
        known = self._downloads.get(name)
        if known is not None:
            if known.order == order:
                return []  # the scheduler repeats it after a lost connection
            effects += self._drop(known)
        if self._linking.get(name) == order:
            return effects
        self._linking.pop(name, None)
        if self._has_file(name):
            return [*effects, Send(order.answer())]
        if order.source == name[0] and self._can_link(name):
            self._linking[name] = order
            return [*effects, LinkFile(name)]
        return effects + self._fetch(order, now)

    def linked(self, name: ObjectName, is_linked: bool, now: float) -> list[Effect]:
        """Handle the outcome of LinkFile."""
        order = self._linking.pop(name, None)
        if order is None:
            return []
        return [Send(order.answer())] if is_linked else self._fetch(order, now)

    def _fetch(self, order: Order, now: float) -> list[Effect]:
        """Begin to get a file that is not on this host."""
        if not order.data.address:
            text = "its client has no data address and shares no memory with this host"
            return [Send(order.answer(text, is_unreachable=True))]
        download = self._downloads[order.name] = _Download(order, now, now, is_waiting=True)
        self._used[order.data] += 1
        return self._begin(download, now)

    def _begin(self, download: _Download, now: float) -> list[Effect]:
        """Ask for the first part of a file, if there is room for the file."""
        download.heard_at = now
        size = download.order.bytes
        if now >= self._crowded_until and not self._has_room(size, self._coming_bytes):
            if now < download.ordered_at + MOST_ROOM_SECONDS:
                return []
            self._crowded_until = now + MOST_ROOM_SECONDS
        download.is_waiting = False
        self._coming_bytes += size
        source = download.order.data
        if self._idle.pop(source, None) is not None or source in self._heard:
            download.is_connected = True
        return self._ask(download)

    def received(self, source: DataAddress, message: Message, now: float) -> list[Effect]:
        """Handle a message of a source. What was not asked for is ignored."""
        if not isinstance(message, (ObjectChunk, NoObject)):
            return []
        download = self._downloads.get((message.client, message.id))
        if download is None or download.order.data != source:
            return []
        self._heard.add(source)
        if isinstance(message, NoObject):
            return self._fail(download, message.reason or "it has no such file")
        if not download.is_expected(message):
            return self._fail(download, "it has sent another part than the one asked for")
        del download.awaited[message.offset]
        download.heard_at = now
        download.file_bytes = message.file_bytes
        download.received_bytes += len(message.payload)
        effects: list[Effect] = [WritePart(download.name, message.offset, message.payload, message.file_bytes)]
        if download.received_bytes < download.file_bytes:
            return effects + self._ask(download)
        self._remove(download)
        return [*effects, FinishFile(download.name, download.order.answer()), *self._rest(source, now)]

    def write_failed(self, name: ObjectName, reason: str) -> list[Effect]:
        """Handle a part that could not be written."""
        download = self._downloads.get(name)
        return [] if download is None else self._fail(download, reason)

    def forget(self, names: Iterable[ObjectName]) -> list[Effect]:
        """Drop files that no task needs any more."""
        effects: list[Effect] = []
        for name in names:
            order = self._linking.pop(name, None)
            if order is not None:
                effects.append(Send(order.answer("it is not needed any more")))
            if name in self._downloads:
                effects += self._fail(self._downloads[name], "it is not needed any more")
        return effects

    def clear(self) -> list[Effect]:
        """Drop all files, without answers: another scheduler knows none of them."""
        effects: list[Effect] = []
        self._linking.clear()
        for download in list(self._downloads.values()):
            effects += self._drop(download)
        return effects

    def tick(self, now: float) -> list[Effect]:
        """Give up the files whose source is silent, begin with files for which there is room now, and close connections
        that were not used for a while."""
        effects: list[Effect] = []
        for source, since in list(self._idle.items()):
            if now >= since + IDLE_SECONDS:
                del self._idle[source]
                effects.append(CloseSource(source))
        for download in list(self._downloads.values()):
            if now < self._due_at(download):
                continue
            if download.is_waiting:
                effects += self._begin(download, now)
                continue
            if download.order.data in self._heard:
                effects += self._fail(download, f"it has sent nothing for {SILENCE_SECONDS:g} s")
            else:
                effects += self._fail(download, f"no connection within {CONNECT_SECONDS:g} s", is_unreachable=True)
        return effects

    def deadline(self) -> float:
        """When `tick` is to be called next, at the latest."""
        close_at = next(iter(self._idle.values()), float("inf")) + IDLE_SECONDS
        return min(close_at, min(map(self._due_at, self._downloads.values()), default=close_at))

    def _due_at(self, download: _Download) -> float:
        if download.is_waiting:
            return download.heard_at + ROOM_SECONDS
        is_heard = download.order.data in self._heard
        return download.heard_at + (SILENCE_SECONDS if is_heard else CONNECT_SECONDS)

    def _ask(self, download: _Download) -> list[Effect]:
        """Ask for further chunks, while there is credit."""
        effects: list[Effect] = []
        order = download.order
        while download.next_offset < download.end and len(download.awaited) < CHUNKS_IN_FLIGHT:
            offset = download.next_offset
            if offset and not download.file_bytes and not download.is_connected:
                break
            size = CHUNK_BYTES if offset else FIRST_CHUNK_BYTES  # the source cuts it at the end of the file
            download.awaited[offset] = size
            download.next_offset = offset + size
            effects.append(AskSource(order.data, ReadObject(order.data.ticket, *download.name, offset, size)))
        return effects

    def _fail(self, download: _Download, reason: str, is_unreachable: bool = False) -> list[Effect]:
        return [*self._drop(download), Send(download.order.answer(reason, is_unreachable))]

    def _drop(self, download: _Download) -> list[Effect]:
        self._remove(download)
        return [DropPart(download.name), *self._close(download.order.data)]

    def _remove(self, download: _Download) -> None:
        del self._downloads[download.name]
        if not download.is_waiting:
            self._coming_bytes -= download.order.bytes
        source = download.order.data
        self._used[source] -= 1
        if not self._used[source]:
            del self._used[source]

    def _close(self, source: DataAddress) -> list[Effect]:
        """Close the connection to a source from which nothing is fetched any more."""
        if source in self._used:
            return []
        self._heard.discard(source)
        self._idle.pop(source, None)
        return [CloseSource(source)]

    def _rest(self, source: DataAddress, now: float) -> list[Effect]:
        """If nothing more is fetched from a source, keep its connection open for a while."""
        if source in self._used:
            return []
        self._heard.discard(source)
        self._idle[source] = now
        if len(self._idle) <= MAX_IDLE:
            return []
        oldest = next(iter(self._idle))
        del self._idle[oldest]
        return [CloseSource(oldest)]


class TransferAnswers:
    """The answers of one round of the poll loop, which go to the scheduler together."""

    def __init__(self) -> None:
        self._answers: dict[tuple[int, str, bool], Transferred] = {}

    @property
    def is_empty(self) -> bool:
        return not self._answers

    def add(self, answer: Transferred) -> None:
        """Add an answer. Those with the same source and outcome become one message."""
        key = answer.source, answer.error, answer.is_unreachable
        known = self._answers.get(key)
        if known is None:
            self._answers[key] = answer
        else:
            known.clients.extend(answer.clients)
            known.ids.extend(answer.ids)

    def take(self) -> list[Transferred]:
        """Return the messages, and forget them."""
        answers, self._answers = list(self._answers.values()), {}
        return answers
