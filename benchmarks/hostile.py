"""An honest client's throughput while a hostile peer is active, as a share of its throughput alone.

All processes share the machine's cores. An unlimited flooder would take one core for itself. The
measure is about the scheduler's time, not the machine's, so the hostile peer runs at niceness 19. Two rows are for
comparison: beside a program that only computes at niceness 19 (`spinning`), and at niceness 0 (`competing`).
"""

from __future__ import annotations

import os
import select
import signal
import tempfile
import time
from dataclasses import dataclass

import psutil
import zmq

from scaler_client.protocol.messages import Role

from .figures import Bar, Figure, at_least, at_most
from .peers import FakeClient, Peer
from .processes import allow_many_files, free_address, make_keys, running_module, running_scheduler
from .scheduler_alone import LEASES, WINDOW, echoing_peers

WORKERS = 4
BOUNDED_RATE = 2000
"""Messages a second of a limited flood: about as many as an honest peer of this measure sends."""

WARM_UP_STEP = 100
"""Submits of a warm-up between two looks at the clock."""

BAR = at_least(0.8)

QUIET = {
    "half_open": "200 connections that send nothing",
    "half_message": "50 peers that stop in the middle of a message",
    "unread": "a client that never reads its 2,000 results of 16 KiB",
    "deaf": "20 subscribers that never read",
}
FLOODS = {
    "heartbeats": "heartbeats",
    "hellos": "hellos, each with the incarnation of another peer",
    "malformed": "malformed messages",
    "strangers": "messages of a peer that never sent a hello",
    "replays": "copies of the honest client's own hello",
    "cancels": "cancels of 1,000 unknown tasks",
    "submits": "submits of one tiny task by a client that reads no answers",
    "subscriptions": "subscriptions at the monitor",
    "connects": "connections that are closed at once",
}


@dataclass(frozen=True)
class Sizes:
    runs: int
    pairs: int
    """Pairs of short measurements in one run: one without the hostile peer, and one with it."""
    batches: int
    """Submits in one such measurement."""
    warm_up_batches: int
    """Submits before the first run, and again with each hostile peer, so that PyPy has compiled both."""
    warm_up_seconds: float
    """After so long a warm-up ends with fewer Submits, so that a slow machine does not take much longer."""
    settle_seconds: float
    """How long a hostile peer is active before a run begins."""
    seconds: float
    """After so long no further run with this peer begins."""


FULL = Sizes(
    runs=2, pairs=2, batches=160, warm_up_batches=2000, warm_up_seconds=0.5, settle_seconds=0.2, seconds=0.7
)  # fmt: skip
QUICK = Sizes(
    runs=1, pairs=1, batches=4, warm_up_batches=4, warm_up_seconds=1.5, settle_seconds=0.0, seconds=0.0
)  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """A hostile behaviour and its rate."""

    name: str
    behaviour: str
    rate: int
    """Messages a second; 0: as many as the peer can send."""
    title: str
    bar: Bar | None = BAR

    def figure(self, client: FakeClient, address: str, monitor: str, sizes: Sizes) -> Figure:
        arguments = (self.behaviour, address, monitor, str(client.incarnation), str(self.rate))
        is_quiet = self.behaviour in QUIET
        shares: list[float] = []
        begin = time.monotonic()
        while not shares or (is_quiet and len(shares) < sizes.runs and time.monotonic() < begin + sizes.seconds):
            before = [_seconds(client, sizes.batches) for _ in range(sizes.pairs)] if is_quiet else []
            with running_module("hostile_peer", *arguments) as peer:
                assert peer.stdout is not None
                while not select.select([peer.stdout], [], [], 0.5)[0]:
                    client.run(1, WINDOW)  # after a long silence, a replayed hello would take its place
                if peer.stdout.readline() != "ready\n":
                    raise RuntimeError(f"the hostile peer did not start: {self.behaviour}")
                time.sleep(sizes.settle_seconds)
                _warm_up(client, sizes)
                if is_quiet:
                    beside = [_seconds(client, sizes.batches) for _ in range(sizes.pairs)]
                    shares.append(sum(before) / sum(beside))
                    continue
                end = time.monotonic() + sizes.seconds
                while not shares or (len(shares) < sizes.runs and time.monotonic() < end):
                    shares.append(_share(client, peer.pid, sizes))
        return Figure(
            f"hostile.{self.name}",
            f"share of its rate that an honest client keeps, beside {self.title}",
            "x",
            shares,
            self.bar,
        )


@dataclass(frozen=True)
class Handshakes:
    """Connections that send a long frame instead of a handshake; measures the growth of the scheduler's memory."""

    count: int
    has_keys: bool
    megabytes: float
    """The bar."""

    def figure(self) -> Figure:
        name = f"hostile.{'keyed_' if self.has_keys else ''}handshakes_{self.count}"
        title = f"memory for {self.count} connections that send a long frame instead of a handshake"
        title += ", with keys" if self.has_keys else ""
        return Figure(name, title, "MB", [self._growth()], at_most(self.megabytes))

    def _growth(self) -> float:
        address = free_address()
        with tempfile.TemporaryDirectory(prefix="scaler-bench-") as folder:
            keys = make_keys(folder) if self.has_keys else ""
            options = ("--logging-level", "ERROR", *(("--keys", keys) if keys else ()))
            with running_scheduler(address, *options) as scheduler, zmq.Context() as context:
                Peer(context, address, Role.CLIENT, keys).socket.close()  # by then it serves
                process = psutil.Process(scheduler.pid)
                before = most = process.memory_info().rss
                behaviour = "long_keyed_handshakes" if keys else "long_handshakes"
                with running_module("hostile_peer", behaviour, address, "-", "0", str(self.count)) as peer:
                    assert peer.stdout is not None
                    while not select.select([peer.stdout], [], [], 0.02)[0]:
                        most = max(most, process.memory_info().rss)
                    if peer.stdout.readline() != "ready\n":
                        raise RuntimeError("the hostile peer did not start: long handshakes")
        return (most - before) / 1e6


HANDSHAKES = [
    Handshakes(count, has_keys, megabytes) for has_keys in (False, True) for count, megabytes in ((6, 8), (100, 32))
]


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    allow_many_files()
    subjects = [
        Subject("spinning", "spinning", 0, "a program that computes at niceness 19, for comparison", None),
        Subject("competing", "competing", 0, "a program that computes at niceness 0, for comparison", None),
    ]
    subjects += [Subject(behaviour, behaviour, 0, title) for behaviour, title in QUIET.items()]
    floods = [
        [
            Subject(behaviour, behaviour, BOUNDED_RATE, f"{title}, {BOUNDED_RATE:,} a second"),
            Subject(f"{behaviour}_unbounded", behaviour, 0, f"{title}, as many as the peer can send"),
        ]
        for behaviour, title in FLOODS.items()
    ]
    if is_quick:  # small sizes give no meaningful figures, and to start a process takes longer than a flood
        groups = [[*subjects[1:], *(flood[0] for flood in floods)]]
    else:  # a scheduler for each flood: its leftovers must not slow the next one
        groups = [subjects, *floods]
    figures = [figure for group in groups for figure in _figures(group, sizes)]
    return figures + [each.figure() for each in (HANDSHAKES[::2] if is_quick else HANDSHAKES)]


def _figures(subjects: list[Subject], sizes: Sizes) -> list[Figure]:
    """Measure these subjects with one scheduler and its workers."""
    address = free_address()
    with tempfile.TemporaryDirectory(prefix="scaler-bench-") as folder:
        monitor = f"ipc://{folder}/monitor"
        options = (*LEASES, "--monitor-address", monitor, "--logging-level", "ERROR")
        with running_scheduler(address, *options), echoing_peers(address, WORKERS) as client:
            _warm_up(client, sizes)
            return [subject.figure(client, address, monitor, sizes) for subject in subjects]


def _warm_up(client: FakeClient, sizes: Sizes) -> None:
    """Let PyPy compile what the scheduler does now."""
    end = time.monotonic() + sizes.warm_up_seconds
    left = sizes.warm_up_batches
    while left > 0 and time.monotonic() < end:
        client.run(min(left, WARM_UP_STEP), WINDOW)
        left -= WARM_UP_STEP


def _share(client: FakeClient, peer: int, sizes: Sizes) -> float:
    """Stop and continue the peer in short turns, so that other load disturbs both alike."""
    alone = beside = 0.0
    for _ in range(sizes.pairs):
        os.kill(peer, signal.SIGSTOP)
        alone += _seconds(client, sizes.batches)
        os.kill(peer, signal.SIGCONT)
        beside += _seconds(client, sizes.batches)
    return alone / beside


def _seconds(client: FakeClient, batches: int) -> float:
    begin = time.perf_counter()
    client.run(batches, WINDOW)
    return time.perf_counter() - begin
