"""The daemon: receive, decode, handle, encode, send. `Daemon.step` does it all.

Data flows in one direction. A step receives messages up to a limit, decodes each to an event, and gives the events to
the core. Then it sends the core's effects, one batch for each peer. No batch waits for more effects: under load, one
step has many effects for a peer.
"""

from __future__ import annotations

import logging
import math
import os
import secrets
import signal
import sys
import time
import traceback
from dataclasses import dataclass

from .. import __version__
from ..auth.bind_policy import insecure_bind_error, insecure_warning, local_users_text
from ..auth.keyring import Keyring
from ..commands import logs
from ..commands.addresses import Address, default_monitor_address, make_socket_directory
from ..commands.key_files import KeyFileError, key_error_text
from ..commands.machine import raise_file_limit
from ..commands.options import EXIT_UNAVAILABLE, EXIT_WRONG_OPTIONS, interpreter
from ..commands.systemd_notify import SystemdNotifier, pop_variables
from ..config.config import Config, fail
from ..config.pending_config import PendingConfig
from ..core import effects
from ..core.errors import InvariantError
from ..core.limits import Limits
from ..core.scheduler import Scheduler
from ..net.bound_socket import BindError
from ..net.connections import ConnectionLimits, connections_within_files
from ..net.monitor_socket import MonitorSocket
from ..net.router import WAIT_MILLISECONDS, Router, ZmqContext
from ..net.zap import ZapHandler
from ..publish.publisher import PAUSE_SECONDS, Publisher
from ..publish.snapshots import SnapshotWriter
from ..wire.encode import PROTOCOL_VERSION, Identity, encode
from . import event_loops
from .housekeeping import Housekeeping
from .message_pump import DRAIN_SECONDS, MessagePump
from .throttle import Throttle

BLOCKED_PAUSE_SECONDS = 0.0005
"""The pause of the loop after a step that received only messages of blocked connections. In a flood, the flooder's own
buffers then fill up, and the loop does not occupy a processor."""

RELEASE_SECONDS = 0.25
"""How often blocked connections are checked for their release."""

HOUSEKEEPING_SECONDS = 1.0
"""The time between two runs of `Housekeeping`."""

IDLE_TIMEOUT_LEASES = 2
"""A connection is cut after this many leases (of the longer kind) of silence. Its peer is lost after one."""

LINGER_MILLISECONDS = 500
EXIT_SOFTWARE = 70

_log = logging.getLogger(__name__)


class StopWaiting(BaseException):
    """Raised by a signal handler to end the wait for a message."""


@dataclass(frozen=True)
class Network:
    """The bound sockets of a scheduler, and the thread that decides which peers may connect."""

    router: Router
    monitor: MonitorSocket
    zap: ZapHandler


class Daemon:
    """The scheduler's process without its event loop.

    Args:
        config: the options.
        network: the sockets, bound already.
        keyring: the authorized keys; None: peers have no keys.
        systemd: the service manager.
        pending: logs the options that have changed since the start.
    """

    def __init__(
        self,
        config: Config,
        network: Network,
        keyring: Keyring | None,
        systemd: SystemdNotifier,
        pending: PendingConfig,
    ) -> None:
        self.network = network
        self.router = network.router
        self.keyring = keyring
        self.is_stopping = False
        self.is_reload_requested = False
        """Whether SIGHUP was received: keys are read and log files opened again at the next step."""
        self.is_waiting = False
        self._clock = time.monotonic
        self._turn_began = now = self._clock()
        incarnation = int.from_bytes(os.urandom(8), "little") >> 1 | 1
        self.identity = Identity(incarnation, __version__, lambda: int(1000 * time.time()))
        self.core = Scheduler(
            _core_limits(config), PROTOCOL_VERSION, now, self._is_connected, self.identity.incarnation
        )
        self.snapshot_writer = SnapshotWriter(self.core, self.identity, str(self.router.address), now)
        self._publisher = Publisher(network.monitor, self.snapshot_writer, now)
        self._pump = MessagePump(
            self.router,
            self.core,
            self.snapshot_writer.traffic,
            identity=self.identity,
            throttle=Throttle(config.waste_limit),
            clock=self._clock,
        )
        self.core.task_limits.define(config.limits)
        self.core.operator_log.are_clients_operators = bool(config.parent_process)
        if keyring is not None:
            self._pump.key_name = keyring.name
            self.core.set_share_limits(keyring.share_limits())
        self._pending = pending
        self.systemd = systemd
        self._housekeeping = Housekeeping(
            core=self.core,
            router=self.router,
            zap=network.zap,
            snapshot_writer=self.snapshot_writer,
            systemd=systemd,
            keyring=keyring,
            parent_process=config.parent_process,
        )
        self._next_housekeeping = self._next_release = now
        self._next_watchdog = now if systemd.watchdog_seconds else float("inf")

    def _is_connected(self, route: bytes) -> bool:
        """Whether a connection exists: ZeroMQ refuses to send on a connection that has ended. Peers ignore this
        heartbeat echo."""
        return self.router.send(route, encode(effects.HeartbeatEcho(route, 0), self.identity))

    def wait(self) -> list[bytes] | None:
        """Wait for the next message. Returns None at the core's next timer, after a time limit, or if the daemon
        stops.

        Raises:
            StopWaiting: a signal has come.
        """
        self.is_waiting = True
        try:
            if self.is_stopping:
                return None
            if self._publisher.has_urgent_work:
                return self.router.wait_up_to(int(PAUSE_SECONDS * 1000))
            # A rate of 20/s starts a task each 50 ms, also if no message comes.
            milliseconds = 1000 * (self.core.next_timer - self._clock())
            if milliseconds < WAIT_MILLISECONDS:
                return self.router.wait_up_to(max(1, math.ceil(milliseconds)))
            return self.router.wait()
        finally:
            self.is_waiting = False

    def step(self, first: list[bytes] | None = None) -> bool:
        """Run one turn of the loop, without waiting.

        Args:
            first: a message that was received already.

        Returns:
            Whether anything was received or sent.
        """
        self._turn_began = self._clock()
        self._pump.is_closed = self.is_stopping
        received = self._pump.receive(first, self._turn_began)
        if self._pump.is_only_blocked:
            time.sleep(BLOCKED_PAUSE_SECONDS)
        now = self._clock()
        if now - self._turn_began > DRAIN_SECONDS:
            self.core.restart_hold.extend(now)
        self.core.tick(now)
        collected = self.core.collect()
        self._pump.send(collected)
        self._pump.drop_stuck_peers(now)
        if self.core.is_shut_down and not self.is_stopping:
            _log.info("a client has asked to end the scheduler and its clusters")
            self.is_stopping = True
        for is_warning, text in self.core.operator_log.drain():
            _log.log(logging.WARNING if is_warning else logging.INFO, logs.on_one_line(text))
        if now >= self._next_release:
            self._next_release = now + RELEASE_SECONDS
            self._pump.release_blocked(now)
            self._pump.log_rejections(now)
        if now >= self._publisher.next:
            self._publisher.run_due(now)
        if now >= self._next_housekeeping:
            self._next_housekeeping = now + HOUSEKEEPING_SECONDS
            self._housekeeping.run(now)
            self.is_stopping = self.is_stopping or self._housekeeping.is_parent_gone
        if now >= self._next_watchdog:
            self._next_watchdog = now + self.systemd.watchdog_seconds
            self.systemd.watchdog()
        if self.is_reload_requested:
            self.is_reload_requested = False
            self._reload(now)
        if not received and not collected:
            return False
        self.snapshot_writer.loop.add(self._clock() - self._turn_began)
        return True

    def _reload(self, now: float) -> None:
        _log.info("SIGHUP: the log files are opened again")  # this line opens them
        if self.keyring is not None and self.keyring.reload(
            lambda users: self.core.revoke(users, now, secrets.token_hex)
        ):
            self.network.monitor.rebind()
        if self.keyring is not None:
            self.core.set_share_limits(self.keyring.share_limits())
        options = self._pending.log_changes()
        if options is not None:
            self.core.task_limits.define(options["limits"])

    def seconds_to_wait(self) -> float:
        """The longest time that the loop may wait for a message."""
        looks = min(self._next_release, self._publisher.next, self._next_housekeeping, self._next_watchdog)
        return max(0.0, min(self.core.next_deadline, looks) - self._clock())

    def send_goodbyes(self) -> None:
        """Tell all peers that the scheduler stops."""
        self._pump.send(self.core.goodbyes("the scheduler stops"))


def run(config: Config, pending: PendingConfig) -> int:
    """Run the scheduler from binding to the last goodbye. Returns the exit status."""
    keyring = None
    try:
        keyring = Keyring(config.keys) if config.keys else None
    except KeyFileError as error:
        return fail(key_error_text(config.keys, error))
    warning = ""
    if keyring is None:  # an empty keyring is false
        complaint = insecure_bind_error(config.address, config.monitor_address)
        if complaint and not config.insecure:
            return fail(complaint)
        warning = insecure_warning(config.address, config.monitor_address)
    context = ZmqContext(config.io_threads, _connection_limits(config), keyring)
    try:
        router = context.bind_router(config.address, config.message_size_limit)
    except BindError as error:
        context.close()
        return fail(str(error), EXIT_UNAVAILABLE)
    try:
        address = config.monitor_address or _default_monitor_address(router.address)
        monitor = context.bind_monitor(address)
    except (BindError, ValueError) as error:
        router.close()
        context.close()
        return fail(str(error), EXIT_UNAVAILABLE if isinstance(error, BindError) else EXIT_WRONG_OPTIONS)
    systemd = SystemdNotifier(pop_variables(os.environ))
    daemon = Daemon(config, Network(router, monitor, context.zap), keyring, systemd, pending)
    if warning:
        _log.warning(warning)
    status = 0
    try:
        _run_until_signal(config, daemon)
        systemd.stopping()
        daemon.send_goodbyes()
    except InvariantError:
        _log.critical("broken invariant, the scheduler ends: %s", traceback.format_exc())
        status = EXIT_SOFTWARE
    monitor.close()
    router.close(LINGER_MILLISECONDS)
    context.close()
    _log.info("stopped")
    systemd.close()
    return status


def _core_limits(config: Config) -> Limits:
    return Limits(
        client_timeout_seconds=config.client_timeout_seconds,
        worker_timeout_seconds=config.worker_timeout_seconds,
        queue_size=config.per_worker_queue_size,
        task_retries=config.task_retries,
        memory_limit_bytes=config.memory_limit_bytes,
        is_protected=config.protected,
        has_common_ranks=config.priority_across,
        batch_rows=config.batch_limit,
        client_tasks=config.client_task_limit,
        client_objects=config.client_object_limit,
        client_object_bytes=config.client_object_size_limit,
        client_functions=config.client_function_limit,
        environment_bytes=config.environment_limit,
        peers=config.peer_limit,
        hellos_a_second=config.hello_rate_limit,
        message_size=config.message_size_limit,
    )


def _connection_limits(config: Config) -> ConnectionLimits:
    lease = max(config.client_timeout_seconds, config.worker_timeout_seconds)
    return ConnectionLimits(
        total=connections_within_files(config.connection_limit, raise_file_limit()),
        per_address=config.address_connection_limit,
        per_second=config.connection_rate_limit,
        idle_timeout_seconds=IDLE_TIMEOUT_LEASES * lease,
    )


def _default_monitor_address(bound: Address) -> Address:
    """Raises BindError if the folder of the socket cannot be made."""
    runtime_directories = os.environ.get("RUNTIME_DIRECTORY", "")
    if bound.transport == "ipc" or runtime_directories.startswith("/"):
        return default_monitor_address(bound, runtime_directories)
    try:
        return default_monitor_address(bound, socket_directory=make_socket_directory())
    except OSError as error:
        raise BindError(f"can't make a folder for the monitor's socket (give --monitor-address): {error}") from None


def _log_start(config: Config, daemon: Daemon) -> None:
    _log.info("scaler_scheduler %s on %s, process %d", __version__, interpreter(), os.getpid())
    address = daemon.router.address
    _log.info("address %s, event loop %s, %d I/O thread(s)", address, config.event_loop, config.io_threads)
    _log.info("monitor address %s", daemon.network.monitor.address)
    if daemon.keyring is not None:
        _log.info("keys of %s: %d may connect", config.keys, len(daemon.keyring))
        daemon.keyring.warn_if_empty()
    elif not config.insecure and local_users_text(address):
        _log.info(local_users_text(address))


def _run_until_signal(config: Config, daemon: Daemon) -> None:
    """Run the loop until SIGTERM or SIGINT, which end it after the current step."""
    wake_receiver, wake_sender = os.pipe()
    os.set_blocking(wake_sender, False)
    os.set_blocking(wake_receiver, False)

    def stop(number: int, _frame: object) -> None:
        is_first, daemon.is_stopping = not daemon.is_stopping, True
        _log.info("%s received", signal.Signals(number).name)
        if is_first and daemon.is_waiting:
            raise StopWaiting

    def request_reload(_number: int, _frame: object) -> None:
        daemon.is_reload_requested = True

    # Event loops that poll wait for this pipe.
    signal.set_wakeup_fd(wake_sender, warn_on_full_buffer=False)
    # The handlers stay until the process ends, because a second signal must not interrupt the goodbyes.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    if not sys.stdin or not sys.stdin.isatty():  # a scheduler in a terminal ends with the terminal
        signal.signal(signal.SIGHUP, request_reload)
    try:
        # After the handlers: a program that reads one of these messages may send a signal at once.
        _log_start(config, daemon)
        daemon.systemd.ready()
        event_loops.LOOPS[config.event_loop](daemon, wake_receiver)
    except StopWaiting:
        pass  # not in `wait`: the signal may come just before or after the wait
    finally:
        signal.set_wakeup_fd(-1)
        os.close(wake_receiver)
        os.close(wake_sender)
