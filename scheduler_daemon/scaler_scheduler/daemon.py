"""The loop: receive, decode, handle, encode, send. Everything the daemon does happens in `Daemon.step`.

Data goes one way: messages are drained (bounded), each becomes an event for the core, and what the core collected from
all of them goes out as one batch a peer. Batching waits for nothing: under load what is there is a batch.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
import traceback
from typing import Callable, List, Optional

from . import __version__, event_loops, logs
from .addresses import Address, default_monitor_address
from .config import Config, fail
from .core import effects, events
from .core.errors import InvariantError
from .core.limits import Limits
from .core.scheduler import Scheduler
from .publishing import PAUSE_SECONDS, Publisher
from .service_manager import ServiceManager, take_variables
from .sockets import BindError, Context, Monitor, Router
from .status import Status, interpreter
from .tidying import Tidying
from .wire.decode import decode
from .wire.encode import PROTOCOL_VERSION, Identity, encode
from .wire.errors import WireError

DRAIN_MESSAGES = 256
"""Messages taken in one step: more would let the first of them wait for its answer."""

DRAIN_BYTES = 16 << 20
"""Bytes taken in one step, for the same reason."""

DRAIN_SECONDS = 0.005
"""Time spent on them: workers could begin with what has come first, such as the first rows of a large graph."""

LOOK_AROUND_SECONDS = 1.0
"""How often is said how it goes, and looked whether there is memory to give back and whether the parent lives."""

MALFORMED_LOG_SECONDS = 1.0
"""At most one line about malformed messages in this time: whoever floods the port does not flood the log."""

MALFORMED_ANSWERS = 10_000
"""Most answers to malformed messages in that time: whoever sends them and never reads does not fill the memory."""

FAREWELL_MILLISECONDS = 500
EXIT_SOFTWARE = 70

_log = logging.getLogger(__name__)


class StopWaiting(BaseException):
    """Raised by a signal's handler to get the loop out of its wait for a message."""


class Daemon:
    def __init__(
        self, config: Config, router: Router, monitor: Monitor, manager: ServiceManager, clock: Callable[[], float]
    ) -> None:
        self.router = router
        self.monitor = monitor
        self.is_stopping = False
        self.is_hung_up = False
        """Whether the log files are to be opened again: somebody has moved them away."""
        self.is_waiting = False
        self.identity = Identity(int.from_bytes(os.urandom(8), "little") >> 1 | 1, __version__)
        limits = Limits(
            config.client_timeout_seconds,
            config.worker_timeout_seconds,
            config.per_worker_queue_size,
            config.task_retries,
            config.memory_limit_bytes,
            config.protected,
        )
        self.core = Scheduler(limits, PROTOCOL_VERSION, clock())
        self.status = Status(self.core, self.identity, str(router.address), clock())
        self.traffic = self.status.traffic
        self._publisher = Publisher(monitor, self.status, clock())
        self._parent_process = config.parent_process
        self._clock = clock
        self._turn_began = now = clock()
        self._next_look_around = now
        self._manager = manager
        self._next_beat = now if manager.beat_seconds else float("inf")
        self._next_malformed_line = now
        self._malformed_unsaid = 0
        self._malformed_answers = 0
        self._tidying = Tidying()
        self._resolved = 0
        """Tasks that were when it was looked last whether nothing is under way."""

    def wait(self) -> Optional[List[bytes]]:
        """The next message, waited for; None when it took too long or the daemon stops."""
        self.is_waiting = True
        try:
            if self.is_stopping:
                return None
            if self._publisher.is_in_haste:
                return self.router.wait_briefly(int(PAUSE_SECONDS * 1000))
            return self.router.wait()
        except StopWaiting:
            return None
        finally:
            self.is_waiting = False

    def step(self, first: Optional[List[bytes]] = None) -> bool:
        """One turn of the loop, without waiting, beginning with a message that was received already, if any.

        Returns:
            Whether anything was received or sent.
        """
        received = self._receive(first)
        now = self._clock()
        self.core.tick(now)
        collected = self.core.collect()
        self._send(collected)
        if self.core.is_shut_down and not self.is_stopping:
            _log.info("a client has asked that everything ends")
            self.is_stopping = True
        for is_warning, text in self.core.notices.take():
            _log.log(logging.WARNING if is_warning else logging.INFO, logs.on_one_line(text))
        if now >= self._publisher.next:
            self._publisher.turn(now)
        if now >= self._next_look_around:
            self._next_look_around = now + LOOK_AROUND_SECONDS
            self._tell_status()
            self._tidy()
            self._look_for_parent()
        if now >= self._next_beat:
            self._next_beat = now + self._manager.beat_seconds
            self._manager.beat()
        if self.is_hung_up:
            self.is_hung_up = False
            _log.info("SIGHUP: the log files are opened again")  # by this line
        if not received and not collected:
            return False
        self.status.loop.note(self._clock() - self._turn_began)
        return True

    def seconds_to_wait(self) -> float:
        """How long the loop may sleep when nothing is received."""
        due = min(self.core.next_deadline, self._publisher.next, self._next_look_around, self._next_beat)
        return max(0.0, due - self._clock())

    def say_goodbye(self) -> None:
        self._send(self.core.farewell("the scheduler stops"))

    def _receive(self, frames: Optional[List[bytes]]) -> int:
        """Take what has arrived, up to a bound; returns the number of messages."""
        now = self._turn_began = self._clock()
        size = 0
        for received in range(DRAIN_MESSAGES):
            if frames is None:
                # Not once it stops: the signal may have cut a message in two, and what is left of it is none.
                frames = None if self.is_stopping or size >= DRAIN_BYTES else self.router.receive()
            if frames is None:
                return received
            route = frames.pop(0)
            try:
                event = decode(route, frames)
            except WireError as error:
                self._drop(route, frames, error, now)
            else:
                self.traffic.received[event.kind] += 1
                if event.kind == events.HELLO:
                    self._tell_hello(event)
                self.core.handle(event, now)
            for frame in frames:
                size += len(frame)
            frames = None
            if self._clock() - now > DRAIN_SECONDS:
                return received + 1
        return DRAIN_MESSAGES

    def _drop(self, route: bytes, frames: List[bytes], error: WireError, now: float) -> None:
        """A malformed message is counted, logged at a limited rate and dropped, and its sender is told."""
        self.traffic.dropped["malformed"] += 1
        self._malformed_unsaid += 1
        if now >= self._next_malformed_line:
            self._next_malformed_line = now + MALFORMED_LOG_SECONDS
            size = sum(len(frame) for frame in frames)
            count = self._malformed_unsaid
            reason = logs.on_one_line(str(error))
            _log.warning("dropped %d malformed message(s), the last of %d bytes: %s", count, size, reason)
            self._malformed_unsaid = 0
            self._malformed_answers = MALFORMED_ANSWERS
        if self._malformed_answers:
            self._malformed_answers -= 1
            self._send([effects.Error(route, str(error))])

    def _send(self, collected: List[effects.Effect]) -> None:
        sent = self.traffic.sent
        for effect in collected:
            if self.router.send(effect.route, encode(effect, self.identity)):
                sent[effect.kind] += 1
            else:
                # It reconnects with a new route and a hello, which tells the core; or its lease runs out.
                self.traffic.dropped["unreachable"] += 1

    def _tell_hello(self, event: events.Event) -> None:
        """Log who comes."""
        assert isinstance(event, events.Hello)
        # Until it is welcomed an agent repeats its hello, and all of them arrive together.
        tables = self.core.tables
        peer = tables.clients.by_route.get(event.route) or tables.agents.by_route.get(event.route)
        is_known = peer is not None and peer.incarnation == event.incarnation
        level = logging.DEBUG if is_known or event.role == events.WORKER else logging.INFO
        role = events.ROLE_NAMES[event.role] if 0 <= event.role < len(events.ROLE_NAMES) else "peer"
        who = " ".join(filter(None, (role, event.name)))
        text = f"{who} says hello: {event.language}, process {event.pid} on {event.host}"
        _log.log(level, logs.on_one_line(text))

    def _tell_status(self) -> None:
        tables, counts = self.core.tables, self.core.counts
        self._manager.status(
            f"{len(tables.workers)} workers on {len(tables.agents)} hosts, {len(tables.clients)} clients; "
            f"{counts.waiting:,} tasks wait, {counts.dispatched:,} are with workers, {counts.resolved:,} are done"
        )

    def _tidy(self) -> None:
        counts = self.core.counts
        is_idle = not counts.waiting and not counts.dispatched and counts.resolved == self._resolved
        self._resolved = counts.resolved
        self._tidying.look(is_idle)

    def _look_for_parent(self) -> None:
        if self._parent_process and os.getppid() != self._parent_process and not self.is_stopping:
            _log.info("the parent process %d is gone", self._parent_process)
            self.is_stopping = True


def run(config: Config) -> int:
    """The scheduler's life, from binding to the last goodbye. Returns the exit status."""
    context = Context(config.io_threads)
    try:
        router = context.bind_router(config.address)
    except BindError as error:
        return fail(str(error))
    try:
        monitor = context.bind_monitor(config.monitor_address or _default_monitor_address(router.address))
    except (BindError, ValueError) as error:
        router.close()
        return fail(str(error))
    manager = ServiceManager(take_variables(os.environ))
    daemon = Daemon(config, router, monitor, manager, time.monotonic)
    status = 0
    try:
        _run_until_signal(config, daemon, manager)
        manager.stopping()
        daemon.say_goodbye()
    except InvariantError:
        _log.critical("broken invariant, the scheduler ends: %s", traceback.format_exc())
        status = EXIT_SOFTWARE
    monitor.close()
    router.close(FAREWELL_MILLISECONDS)
    context.close()
    _log.info("stopped")
    manager.close()
    return status


def _default_monitor_address(bound: Address) -> Address:
    return default_monitor_address(bound, os.environ.get("RUNTIME_DIRECTORY", ""))


def _log_start(config: Config, daemon: Daemon) -> None:
    _log.info("scaler_scheduler %s on %s, process %d", __version__, interpreter(), os.getpid())
    address = daemon.router.address
    _log.info("address %s, event loop %s, %d I/O thread(s)", address, config.event_loop, config.io_threads)
    _log.info("monitor address %s", daemon.monitor.address)


def _run_until_signal(config: Config, daemon: Daemon, manager: ServiceManager) -> None:
    """Run the loop; SIGTERM and SIGINT end it after the step that it is in."""
    wake_receiver, wake_sender = os.pipe()
    os.set_blocking(wake_sender, False)
    os.set_blocking(wake_receiver, False)

    def stop(number: int, _frame: object) -> None:
        daemon.is_stopping = True
        _log.info("%s received", signal.Signals(number).name)
        if daemon.is_waiting:
            raise StopWaiting

    def hang_up(_number: int, _frame: object) -> None:
        daemon.is_hung_up = True

    # The pipe is for loops that poll.
    signal.set_wakeup_fd(wake_sender, warn_on_full_buffer=False)
    # They stay to the end of the process: a second signal must not cut the last goodbyes short.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    if not sys.stdin or not sys.stdin.isatty():  # what was started in a terminal ends with it
        signal.signal(signal.SIGHUP, hang_up)
    try:
        # Not before: whoever has waited for one of these may send signals.
        _log_start(config, daemon)
        manager.ready()
        event_loops.LOOPS[config.event_loop](daemon, wake_receiver)
    finally:
        signal.set_wakeup_fd(-1)
        os.close(wake_receiver)
        os.close(wake_sender)
