"""Files go from host to host, and from clients to hosts. Chooses the source of each transfer, and bounds their number.

Every host that has the file can be its source, the least loaded first. A host sends one copy of a file at once. A host
that is still getting the file can be a source too, so a file goes through many hosts in about the time of one. Tasks
wait, blocked, until the file is on the host. What cannot be transferred goes through the scheduler. A client is a
source of its own large objects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TypeVar

from scaler_scheduler.core.ids import DataAddress
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.state.operator_log import OperatorLog
from scaler_scheduler.core.state.records import Agent, StoredObject
from scaler_scheduler.core.state.timers import Clock
from scaler_scheduler.core.state.value_states import ABSENT, ORDER
from scaler_scheduler.core.values.copies import files, move, state_at

MAX_IN = 4.0
"""Transfers to one host at once. Of small files more go at once (`_part_of`)."""

MAX_OUT = 4.0
"""Transfers from one host at once."""

MAX_BETWEEN = 2.0
"""Transfers from one host to one other at once. So a silent host leaves others half of what they may get and send."""

WHOLE_BYTES = 1 << 20
"""A file of at least this size counts as one transfer. Smaller ones count as parts: an order takes the same time for
each file, so a single one would leave the link idle (`make bench ONLY=small_values`)."""

LEAST_PART = 1 / 8
"""A file counts at least as this part of a transfer. So at most 32 files come to a host at once."""

WAITING_TASKS = 64
"""At most so many tasks wait for one transfer. Further tasks stay in their lane, for hosts that have the file."""

QUEUE_SECONDS = 30.0
"""What waits for longer for its turn goes through the scheduler."""

UNREACHABLE_SECONDS = 300.0
"""For so long no transfer between two hosts is tried after one could not connect to the other."""

MAX_UNREACHABLE = 1000
"""Beyond so many such pairs, those that may be tried again are forgotten."""

LATE_SECONDS = 2.0
"""A transfer is late if it has not ended so long after its request."""

GRACE_SECONDS = 30.0
LEAST_BYTES_PER_SECOND = 4 << 20
"""A transfer that takes longer than the grace, and is slower than this, goes through the scheduler."""

MOST_SECONDS = 3600.0
"""No transfer may take longer."""

FIRST_BYTES_PER_SECOND = 100_000_000
"""The rate of transfers before one was measured."""

FADING = 0.9
"""What earlier transfers count, relative to the last one."""

SCANNED = 100
"""The most transfers in the queue that are looked at in one go."""

Name = tuple[int, int]
"""The client's incarnation, and the id of the file."""


_Key = TypeVar("_Key")


class Transfer:
    """One file on its way to one host."""

    __slots__ = ("deadline", "part", "requested_at", "source", "started_at", "stored", "target", "tasks")

    def __init__(self, stored: StoredObject, target: Agent, requested_at: float) -> None:
        self.stored = stored
        self.target = target
        self.part = _part_of(stored.size)
        """How many transfers it counts as."""
        self.source: Agent | None = None
        """The host that sends it. None: it waits for its turn."""
        self.started_at = 0.0
        """When its source was chosen, in seconds of the monotonic clock."""
        self.requested_at = requested_at
        """When the first task needed it, in seconds of the monotonic clock."""
        self.deadline = requested_at + QUEUE_SECONDS
        """When it is given up, in seconds of the monotonic clock."""
        self.tasks = 0
        """How many tasks were blocked for it."""


class Transfers:
    """The transfers that wait or run, and the pairs of hosts that cannot reach each other."""

    def __init__(self, outbox: Outbox, operator_log: OperatorLog, clock: Clock) -> None:
        self._outbox = outbox
        self._operator_log = operator_log
        self._clock = clock
        self._all: dict[StoredObject, list[Transfer]] = {}
        """The transfers of each file."""
        self._named: dict[Name, list[Transfer]] = {}
        """The same by the names of the files."""
        self._queue: deque[Transfer] = deque()
        """Transfers without a source. Some may have ended."""
        self._incoming: dict[Agent, float] = {}
        self._outgoing: dict[Agent, float] = {}
        self._between: dict[tuple[Agent, Agent], float] = {}
        """The transfers that run, by source and target."""
        self._measured_bytes: float = FIRST_BYTES_PER_SECOND
        """The bytes of the last transfers, and in `_measured_seconds` how long each took, in total."""
        self._measured_seconds = 1.0
        self.unreachable: dict[tuple[Agent | str, Agent], float] = {}
        """Pairs of a source and a target that could not connect: when that was, in seconds of the monotonic clock. A
        text stands for all clients of a host."""
        self.done = 0
        """The number of transfers that have ended well."""

    def __iter__(self) -> Iterator[Transfer]:
        for transfers in list(self._all.values()):
            yield from transfers

    def of(self, stored: StoredObject) -> list[Transfer]:
        """The transfers of a file that wait or run."""
        return self._all.get(stored, [])

    def find(self, stored: StoredObject, target: Agent) -> Transfer | None:
        """The oldest transfer of a file to a host."""
        return next((transfer for transfer in self.of(stored) if transfer.target is target), None)

    def find_ordered(self, name: Name, target: Agent, source: int) -> Transfer | None:
        """The transfer of the file with this name that the target was told to get from this source (an
        incarnation)."""
        for transfer in self._named.get(name, ()):
            if transfer.target is target and transfer.source is not None and transfer.source.incarnation == source:
                return transfer
        return None

    def has_enough_tasks(self, stored: StoredObject, target: int) -> bool:
        """Whether so many tasks wait for the file on this host (an agent's incarnation) that no more should."""
        return any(each.target.incarnation == target and each.tasks >= WAITING_TASKS for each in self.of(stored))

    def request(self, stored: StoredObject, target: Agent) -> bool:
        """Let a task wait until the file is on this host. Returns False if it has to come from the scheduler."""
        transfer = self.find(stored, target)
        if transfer is None:
            if state_at(stored, target) != ABSENT or not any(self._sources(stored, target)):
                return False
            transfer = Transfer(stored, target, self._clock.now)
            self._all.setdefault(stored, []).append(transfer)
            self._named.setdefault(_name(stored), []).append(transfer)
            target.room.coming += stored.size
            if not self._start(transfer):
                self._queue.append(transfer)
        transfer.tasks += 1
        return True

    def expected_ns(self, target: Agent | None, size: int) -> int:
        """Nanoseconds until so many more bytes are on a host, by the rate of the last transfers."""
        before = 0 if target is None else target.room.coming
        return int((size + before / MAX_IN) * 1e9 * self._measured_seconds / self._measured_bytes)

    def is_late(self, transfer: Transfer) -> bool:
        """Whether a transfer is late. The time in the queue counts."""
        return self._clock.now >= transfer.requested_at + LATE_SECONDS

    def forget_tasks(self, stored: StoredObject) -> None:
        """Note that no task is blocked for a file any more. Its transfers go on."""
        for transfer in self.of(stored):
            transfer.tasks = 0

    def end(self, transfer: Transfer) -> None:
        """Forget a transfer that has ended, well or not. Then call `start_waiting`."""
        self._remove(transfer)
        if transfer.source is not None:
            _count(self._outgoing, transfer.source, -transfer.part)
            _count(self._incoming, transfer.target, -transfer.part)
            _count(self._between, (transfer.source, transfer.target), -transfer.part)

    def _remove(self, transfer: Transfer) -> None:
        _remove_from(self._all, transfer.stored, transfer)
        _remove_from(self._named, _name(transfer.stored), transfer)
        transfer.target.room.coming -= transfer.stored.size

    def start_waiting(self) -> None:
        """Begin transfers that wait, as far as the limits allow."""
        for _ in range(min(SCANNED, len(self._queue))):
            transfer = self._queue.popleft()
            if transfer not in self.of(transfer.stored):
                continue
            if not _is_wanted(transfer.stored):
                self._remove(transfer)
            elif not self._start(transfer):
                self._queue.append(transfer)

    def repeat(self, target: Agent) -> None:
        """Send the orders to a host again that has a new connection."""
        for transfer in self:
            if transfer.target is target and transfer.source is not None:
                self._order(transfer, transfer.source)

    def note_unreachable(self, source: Agent, target: Agent, error: str) -> None:
        """Remember that the target could not connect to the source. What holds for a client holds for all clients of
        its host: each program would find it out again."""
        pair = _origin(source), target
        if pair not in self.unreachable:
            text = f"host {target.host} can't connect to {_address(source)} of {_whose(source)} ({error})"
            self._operator_log.warning(f"{text}: values between them go through the scheduler")
        self.unreachable[pair] = self._clock.now
        if len(self.unreachable) > MAX_UNREACHABLE:
            for each in [each for each, at in self.unreachable.items() if self._is_over(at)]:
                del self.unreachable[each]

    def note_success(self, transfer: Transfer) -> None:
        """Remember that the target could connect to the source, and how long the transfer took."""
        source, target = transfer.source, transfer.target
        assert source is not None
        self.done += 1
        target.received_bytes += transfer.stored.size
        source.sent_bytes += transfer.stored.size
        target.room.free -= transfer.stored.size
        seconds = max(0.0001, self._clock.now - transfer.started_at) * transfer.part  # small files share their time
        self._measured_bytes = self._measured_bytes * FADING + transfer.stored.size
        self._measured_seconds = self._measured_seconds * FADING + seconds
        if self.unreachable.pop((_origin(source), target), None) is not None:
            self._operator_log.info(f"host {target.host} can connect to {_address(source)} of {_whose(source)} again")

    def forget_agent(self, agent: Agent) -> None:
        """Forget what is known of the connections of a lost host."""
        for pair in [pair for pair in self.unreachable if agent in pair]:
            del self.unreachable[pair]

    # ---------------------------------------------------------------------------------------------------------- inside

    def _sources(self, stored: StoredObject, target: Agent) -> Iterator[Agent]:
        """The hosts that have the file, or get it, and may send it to this one, busy or not."""
        for source in (*files(stored), *(each.target for each in self.of(stored) if each.source is not None)):
            if source is not target and _can_send(source, target):
                failed_at = self.unreachable.get((_origin(source), target))
                if failed_at is None or self._is_over(failed_at):
                    yield source

    def _is_over(self, failed_at: float) -> bool:
        """Whether a pair that could not connect then may be tried again."""
        return self._clock.now >= failed_at + UNREACHABLE_SECONDS

    def _start(self, transfer: Transfer) -> bool:
        """Begin a transfer, if its hosts are not too busy."""
        if state_at(transfer.stored, transfer.target) != ABSENT or self._incoming.get(transfer.target, 0) >= MAX_IN:
            return False
        of_this = [each.source for each in self.of(transfer.stored)]
        free = [
            source
            for source in self._sources(transfer.stored, transfer.target)
            if self._outgoing.get(source, 0) < MAX_OUT
            and self._between.get((source, transfer.target), 0) < MAX_BETWEEN
            and source not in of_this
        ]
        if not free:
            return False
        has_file = set(files(transfer.stored))
        source = min(free, key=lambda each: (each not in has_file, self._outgoing.get(each, 0), each.incarnation))
        transfer.source = source
        transfer.started_at = self._clock.now
        move(transfer.stored, transfer.target, ORDER)
        seconds = min(MOST_SECONDS, GRACE_SECONDS + transfer.stored.size / LEAST_BYTES_PER_SECOND)
        transfer.deadline = self._clock.now + seconds
        _count(self._outgoing, source, transfer.part)
        _count(self._incoming, transfer.target, transfer.part)
        _count(self._between, (source, transfer.target), transfer.part)
        self._order(transfer, source)
        return True

    def _order(self, transfer: Transfer, source: Agent) -> None:
        stored, target = transfer.stored, transfer.target
        if _can_send(source, target):  # else it has joined again without an address: the transfer is given up in time
            data = source.data or DataAddress("", "", "")
            self._outbox.transfer_object(
                target.route, source.incarnation, data, stored.client.incarnation, stored.file_id, stored.size
            )


def _can_send(source: Agent, target: Agent) -> bool:
    """Whether a host may get files from this source: by data addresses, or from the memory of its own machine."""
    if source.is_client and source.host == target.host:
        return True
    return source.data is not None and target.data is not None


def _is_wanted(stored: StoredObject) -> bool:
    """Whether tasks wait for the file."""
    is_alive = stored.client.objects.get(stored.id) is stored
    return is_alive and stored.is_remote and stored.is_blocking


def _name(stored: StoredObject) -> Name:
    return stored.client.incarnation, stored.file_id


def _part_of(size: int) -> float:
    """How many transfers a file of this size counts as: 1 or less. A power of two, so that sums of parts are exact."""
    part = 1.0
    while part > LEAST_PART and size <= WHOLE_BYTES * part / 2:
        part /= 2
    return part


def _remove_from(lists: dict[_Key, list[Transfer]], key: _Key, transfer: Transfer) -> None:
    transfers = lists[key]
    transfers.remove(transfer)
    if not transfers:
        del lists[key]


def _count(counts: dict[_Key, float], key: _Key, change: float) -> None:
    counts[key] = counts.get(key, 0) + change
    if not counts[key]:
        del counts[key]


def _origin(source: Agent) -> Agent | str:
    """What stands for a source among the pairs that could not connect."""
    if not source.is_client:
        return source
    return source.host if source.data is not None else f"{source.host} (shared memory)"


def _whose(source: Agent) -> str:
    return f"client {source.name} on host {source.host}" if source.is_client else f"host {source.host}"


def _address(agent: Agent) -> str:
    return "the shared memory" if agent.data is None else agent.data.address
