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

from .. import __version__
from ..auth.bind_policy import insecure_warning, refusal
from ..auth.keyring import Gate
from ..commands import logs
from ..commands.addresses import Address, default_monitor_address
from ..commands.key_files import KeyFileError
from ..commands.options import UNAVAILABLE, WRONG
from ..commands.systemd_notify import ServiceManager, take_variables
from ..config.config import Config, fail
from ..config.pending_config import Changes
from ..core import effects
from ..core.errors import InvariantError
from ..core.limits import Limits
from ..core.scheduler import Scheduler
from ..net.connections import ConnectionLimits, allow_many_files, limit_by_files
from ..net.monitor_socket import Monitor
from ..net.router import Context, Router
from ..net.socket_paths import BindError
from ..net.zap import Doorkeeper
from ..publish.memory_trim import Tidying
from ..publish.publisher import PAUSE_SECONDS, Publisher
from ..publish.snapshots import Status, interpreter
from ..wire.encode import PROTOCOL_VERSION, Identity, encode
from . import event_loops
from .message_pump import Intake
from .throttle import Muting

IGNORED_PAUSE_SECONDS = 0.0005
"""The loop rests for a moment where there is nothing but what muted connections send: whoever floods fills its own
buffers then, and not a processor that others need."""

LISTEN_AGAIN_SECONDS = 0.25
"""How often is looked whether somebody was ignored for long enough."""

LOOK_AROUND_SECONDS = 1.0
"""How often is said how it goes, and looked whether there is memory to give back and whether the parent lives."""

SILENT_LEASES = 2
"""Times the longer lease that a connection may say nothing before it is cut: its peer is given up after one."""

CONNECTIONS_LOG_SECONDS = 10.0
"""At most one line of a kind about connections in this time."""

FAREWELL_MILLISECONDS = 500
EXIT_SOFTWARE = 70

_log = logging.getLogger(__name__)


class StopWaiting(BaseException):
    """Raised by a signal's handler to get the loop out of its wait for a message."""


class Daemon:
    def __init__(
        self,
        config: Config,
        changes: Changes,
        router: Router,
        monitor: Monitor,
        doorkeeper: Doorkeeper,
        manager: ServiceManager,
        clock: Callable[[], float],
    ) -> None:
        self.router = router
        self.monitor = monitor
        self.is_stopping = False
        self.is_hung_up = False
        """Whether keys are to be read and log files to be opened again: somebody has changed or moved them."""
        self.is_waiting = False
        self.identity = Identity(int.from_bytes(os.urandom(8), "little") >> 1 | 1, __version__)
        limits = Limits(
            config.client_timeout_seconds,
            config.worker_timeout_seconds,
            config.per_worker_queue_size,
            config.task_retries,
            config.memory_limit_bytes,
            config.protected,
            config.batch_limit,
            config.client_task_limit,
            config.client_object_limit,
            config.client_object_size_limit,
            config.client_function_limit,
            config.peer_limit,
            config.hello_rate_limit,
            config.message_size_limit,
        )
        self.core = Scheduler(limits, PROTOCOL_VERSION, clock(), self._is_connected, self.identity.incarnation)
        self.status = Status(self.core, self.identity, str(router.address), clock())
        self.traffic = self.status.traffic
        self._publisher = Publisher(monitor, self.status, clock())
        self._gate: Optional[Gate] = None
        self._doorkeeper = doorkeeper
        self._connections = doorkeeper.connections
        self._next_connections_line = clock()
        self._changes = changes
        self._parent_process = config.parent_process
        self._clock = clock
        self._turn_began = now = clock()
        self._next_look_around = self._next_listen = now
        self._manager = manager
        self._next_beat = now if manager.beat_seconds else float("inf")
        self._intake = Intake(router, self.core, self.traffic, self.identity, Muting(config.waste_limit), clock)
        self._tidying = Tidying()
        self._resolved = 0
        """Tasks that were when it was looked last whether nothing is under way."""

    def _is_connected(self, route: bytes) -> bool:
        """ZeroMQ tells by refusing to send; peers pass over an echo of what they have not sent."""
        return self.router.send(route, encode(effects.HeartbeatEcho(route, 0), self.identity))

    def guard(self, gate: Gate) -> None:
        """Peers have keys: those of this gate."""
        self._gate = gate
        self._intake.name_of_key = gate.name

    def wait(self) -> Optional[List[bytes]]:
        """The next message, waited for; None when it took too long or the daemon stops.

        Raises:
            StopWaiting: a signal has come meanwhile.
        """
        self.is_waiting = True
        try:
            if self.is_stopping:
                return None
            if self._publisher.is_in_haste:
                return self.router.wait_briefly(int(PAUSE_SECONDS * 1000))
            return self.router.wait()
        finally:
            self.is_waiting = False

    def step(self, first: Optional[List[bytes]] = None) -> bool:
        """One turn of the loop, without waiting, beginning with a message that was received already, if any.

        Returns:
            Whether anything was received or sent.
        """
        self._turn_began = self._clock()
        self._intake.is_closed = self.is_stopping
        received = self._intake.receive(first, self._turn_began)
        if self._intake.is_only_ignored:
            time.sleep(IGNORED_PAUSE_SECONDS)
        now = self._clock()
        self.core.tick(now)
        collected = self.core.collect()
        self._intake.send(collected)
        self._intake.give_up_stuck(now)
        if self.core.is_shut_down and not self.is_stopping:
            _log.info("a client has asked that everything ends")
            self.is_stopping = True
        for is_warning, text in self.core.notices.take():
            _log.log(logging.WARNING if is_warning else logging.INFO, logs.on_one_line(text))
        if now >= self._next_listen:
            self._next_listen = now + LISTEN_AGAIN_SECONDS
            self._intake.listen_again(now)
            self._intake.tell_refusals(now)
        if now >= self._publisher.next:
            self._publisher.turn(now)
        if now >= self._next_look_around:
            self._next_look_around = now + LOOK_AROUND_SECONDS
            self._tell_status()
            self._count_refused(now)
            self._tidy()
            self._look_for_parent()
        if now >= self._next_beat:
            self._next_beat = now + self._manager.beat_seconds
            self._manager.beat()
        if self.is_hung_up:
            self.is_hung_up = False
            self._hang_up(now)
        if not received and not collected:
            return False
        self.status.loop.note(self._clock() - self._turn_began)
        return True

    def _hang_up(self, now: float) -> None:
        _log.info("SIGHUP: the log files are opened again")  # by this line
        if self._gate is not None and self._gate.read_again(lambda users: self.core.cut_off(users, now)):
            self.monitor.bind_again()
        self._changes.tell()

    def seconds_to_wait(self) -> float:
        """How long the loop may sleep when nothing is received."""
        looks = min(self._next_listen, self._publisher.next, self._next_look_around, self._next_beat)
        return max(0.0, min(self.core.next_deadline, looks) - self._clock())

    def say_goodbye(self) -> None:
        self._intake.send(self.core.farewell("the scheduler stops"))

    def _tell_status(self) -> None:
        tables, counts = self.core.tables, self.core.counts
        self._manager.status(
            f"{len(tables.workers)} workers on {len(tables.agents)} hosts, {len(tables.clients)} clients; "
            f"{counts.waiting:,} tasks wait, {counts.dispatched:,} are with workers, {counts.resolved:,} are done"
        )

    def _count_refused(self, now: float) -> None:
        self.traffic.dropped["connections"] = self._connections.cut
        if now >= self._next_connections_line:
            for line in self._connections.take_news():
                self._next_connections_line = now + CONNECTIONS_LOG_SECONDS
                _log.warning("%s", logs.on_one_line(line))
        if self._gate is not None:
            self.traffic.dropped["unauthorized"] = self._doorkeeper.refused + self.router.refused
            self._gate.tell_refused(self._doorkeeper, self.router, now)

    def _tidy(self) -> None:
        counts = self.core.counts
        is_idle = not counts.waiting and not counts.dispatched and counts.resolved == self._resolved
        self._resolved = counts.resolved
        self._tidying.look(is_idle)

    def _look_for_parent(self) -> None:
        if self._parent_process and os.getppid() != self._parent_process and not self.is_stopping:
            _log.info("the parent process %d is gone", self._parent_process)
            self.is_stopping = True


def run(config: Config, changes: Changes) -> int:
    """The scheduler's life, from binding to the last goodbye. Returns the exit status."""
    gate = None
    try:
        gate = Gate(config.keys) if config.keys else None
    except KeyFileError as error:
        return fail(str(error))
    warning = ""
    if gate is None:  # one that lists nobody is false
        complaint = refusal(config.address, config.monitor_address)
        if complaint and not config.insecure:
            return fail(complaint)
        warning = insecure_warning(config.address, config.monitor_address)
    context = Context(config.io_threads, _connection_limits(config), gate)
    try:
        router = context.bind_router(config.address, config.message_size_limit)
    except BindError as error:
        context.close()
        return fail(str(error), UNAVAILABLE)
    try:
        address = config.monitor_address or _default_monitor_address(router.address)
        monitor = context.bind_monitor(address)
    except (BindError, ValueError) as error:
        router.close()
        context.close()
        return fail(str(error), UNAVAILABLE if isinstance(error, BindError) else WRONG)
    manager = ServiceManager(take_variables(os.environ))
    daemon = Daemon(config, changes, router, monitor, context.doorkeeper, manager, time.monotonic)
    if gate is not None:
        daemon.guard(gate)
    if warning:
        _log.warning(warning)
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


def _connection_limits(config: Config) -> ConnectionLimits:
    lease = max(config.client_timeout_seconds, config.worker_timeout_seconds)
    return ConnectionLimits(
        limit_by_files(config.connection_limit, allow_many_files()),
        config.address_connection_limit,
        config.connection_rate_limit,
        SILENT_LEASES * lease,
    )


def _default_monitor_address(bound: Address) -> Address:
    return default_monitor_address(bound, os.environ.get("RUNTIME_DIRECTORY", ""))


def _log_start(config: Config, daemon: Daemon) -> None:
    _log.info("scaler_scheduler %s on %s, process %d", __version__, interpreter(), os.getpid())
    address = daemon.router.address
    _log.info("address %s, event loop %s, %d I/O thread(s)", address, config.event_loop, config.io_threads)
    _log.info("monitor address %s", daemon.monitor.address)
    if daemon._gate is not None:
        _log.info("keys of %s: %d may connect", config.keys, len(daemon._gate))
        daemon._gate.warn_of_nobody()


def _run_until_signal(config: Config, daemon: Daemon, manager: ServiceManager) -> None:
    """Run the loop; SIGTERM and SIGINT end it after the step that it is in."""
    wake_receiver, wake_sender = os.pipe()
    os.set_blocking(wake_sender, False)
    os.set_blocking(wake_receiver, False)

    def stop(number: int, _frame: object) -> None:
        is_first, daemon.is_stopping = not daemon.is_stopping, True
        _log.info("%s received", signal.Signals(number).name)
        if is_first and daemon.is_waiting:
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
    except StopWaiting:
        pass  # here, and not where it waits: it may come just before that begins or when it is over
    finally:
        signal.set_wakeup_fd(-1)
        os.close(wake_receiver)
        os.close(wake_sender)
