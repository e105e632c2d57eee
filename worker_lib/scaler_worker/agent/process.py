"""The host agent's process: one poll loop over the scheduler's socket, the fork server and the signals.

session.py makes the decisions, and this module carries them out.
"""

from __future__ import annotations

import logging
import math
import os
import platform
import secrets
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import zmq

from scaler_client.commands.addresses import DATA_ADDRESS_VARIABLE, Address
from scaler_client.commands.key_files import WORKER, KeyFileError, PeerKeys, absolute, key_error_text, read_peer_keys
from scaler_client.commands.machine import raise_file_limit
from scaler_client.commands.object_directory import STALE_SECONDS, remove_stale
from scaler_client.commands.options import EXIT_UNAVAILABLE
from scaler_client.commands.systemd_notify import SystemdNotifier, pop_variables
from scaler_client.environments.manifest import this_platform
from scaler_client.net.bounded_listener import is_file_shortage
from scaler_client.net.curve import SERVING_CUT_SECONDS, apply_keys, warn_about_secrets
from scaler_client.net.data_server import DataAddressError
from scaler_client.net.host_lookup import warn_if_unresolved
from scaler_client.net.sockets import ReconnectWatcher, receive
from scaler_client.pickling.package_versions import installed_packages
from scaler_client.protocol.messages import (
    NOT_AUTHORIZED,
    Heartbeat,
    Hello,
    Message,
    Refused,
    Role,
    Transferred,
    WorkerHeartbeat,
)
from scaler_client.protocol.wire import WireError, decode
from scaler_client.session.frame_limit import encode_or_log

from .. import __version__
from ..config import Config, fail, workers_in_words
from ..fork_server.client import ForkServer, ForkServerLost, SubprocessStarter, WorkerStarter
from ..fork_server.process import WorkerMain, set_process_name
from ..fork_server.process_events import ProcessStarted
from ..fork_server.process_usage import process_usage, resident_bytes
from ..fork_server.starter_group import StarterGroup
from ..fork_server.state_page import StatePage
from ..fork_server.task_processes import end_processes
from ..fork_server.worker_settings import WorkerSettings
from ..objects.host_storage import HostStorage
from ..objects.spiller import SpillerThread
from .data_server import DataServer
from .data_sources import DataSources
from .disk_thread import DiskThread
from .downloads import TransferAnswers
from .effects import (
    AskSource,
    CloseSource,
    DropPart,
    Effect,
    Exit,
    FinishFile,
    LinkFile,
    Log,
    MarkObjectLost,
    MeasureMemory,
    PrepareEnvironment,
    RemoveEnvironment,
    RemoveObjects,
    Send,
    SendHeartbeat,
    SendObjects,
    SignalWorker,
    StartWorker,
    StoreContents,
    TakeTicket,
    WriteObject,
    WritePart,
)
from .environment_host import EnvironmentHost, EnvironmentSettings
from .environments import LEVELS
from .host_resources import found_gpus, host_resources, warnings
from .object_sender import ObjectSender
from .service_report import ServiceReport
from .session import AgentSession, AgentSettings, HostAccess
from .signal_socket import SignalSocket
from .value_directories import make_value_directories
from .value_files import ValueFiles
from .worker_table import beside_slots

PARENT_SECONDS = 1.0
"""With `--parent-process`: the time between two checks that the parent process lives."""

LINGER_MILLISECONDS = 500
"""How long the last messages (the goodbye) may take when the agent ends."""

CONNECT_TIMEOUT_MILLISECONDS = 5000
"""The longest attempt to connect. With a host that drops packets, TCP would try for minutes."""

SENDING_SECONDS = 0.01
"""While objects are being sent to the scheduler: the time between two checks for room to send more."""

SHORTAGE_SECONDS = 5.0
SHORTAGE_PAUSE_SECONDS = 0.05
"""What can't be done because this process has too many open files is tried again for so long, after such pauses."""

MESSAGES_PER_ROUND = 100
ROUND_SECONDS = 0.1
"""The agent reads at most so many messages, for at most so long, before it serves its other sources."""

_log = logging.getLogger(__name__)


def run(config: Config, worker_main: WorkerMain | None = None) -> int:
    """Run workers until a signal, a lost scheduler or a refusal ends the agent.

    Args:
        worker_main: runs a worker process; None: the worker of this library.

    Returns:
        The exit status of the process.
    """
    set_process_name("scaler_cluster")
    try:
        keys = read_peer_keys(config.keys, WORKER) if config.keys else None
    except KeyFileError as error:
        return fail(key_error_text(config.keys, error))
    warn_about_secrets(keys, config.address)
    variables = pop_variables(os.environ)  # before the fork: workers must not report to systemd
    incarnation = _draw_incarnation()
    page = StatePage(config.num_of_workers + beside_slots(config.num_of_workers))
    signals = SignalSocket()
    if worker_main is None and hasattr(os, "fork"):
        from ..worker.process import run_worker  # before the fork: all workers share its memory

        worker_main = run_worker
    try:
        # Just before the fork server, which removes it in any case.
        objects = make_value_directories(config, incarnation)
    except OSError as error:
        return fail(f"cannot make a directory for objects: {error}", EXIT_UNAVAILABLE)
    os.environ[DATA_ADDRESS_VARIABLE] = _data_address_of_clients(config.data_address)
    starter: WorkerStarter = SubprocessStarter() if worker_main is None else ForkServer(worker_main, page, objects)
    raise_file_limit()  # after the fork server was made: workers keep the limit of this process
    data: DataServer | None = None
    try:
        try:
            data = DataServer(config.data_address, config.address, keys, objects.path)
        except DataAddressError as error:
            return fail(str(error))
        try:
            scheduler = SchedulerSocket(config, keys)
        except zmq.ZMQError as error:
            return fail(f"cannot connect to {config.address}: {error}", EXIT_UNAVAILABLE)
        warn_if_unresolved(config.address, _log)
        notifier = SystemdNotifier(variables)
        workers = WorkerProcesses(starter, page, objects.path)
        agent = _Agent(config, incarnation, scheduler, workers, data, signals, notifier)
        spiller = SpillerThread(HostStorage(objects.path)) if objects.on_disk is not None else None
        try:
            return agent.serve()
        finally:
            agent.close()
            if spiller is not None:
                spiller.close()
            notifier.close()
            scheduler.close()
    finally:
        if data is not None:
            data.close()
        starter.close()
        objects.remove()


def _data_address_of_clients(own: Address | str) -> str:
    """The data address of clients in tasks: that of the agent, with any free port."""
    return str(replace(own, port=0)) if isinstance(own, Address) else own


def _draw_incarnation() -> int:
    return secrets.randbelow((1 << 63) - 1) + 1


class SchedulerSocket:
    """The agent's socket to the scheduler, and the events of its connection."""

    def __init__(self, config: Config, keys: PeerKeys | None) -> None:
        """Connect.

        Raises:
            zmq.ZMQError: the address is not one to connect to.
        """
        self._keys = keys
        self._context = zmq.Context()
        self.socket = self._context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, LINGER_MILLISECONDS)
        self.socket.setsockopt(zmq.IPV6, int(config.address.is_ipv6))
        self.socket.setsockopt(zmq.CONNECT_TIMEOUT, CONNECT_TIMEOUT_MILLISECONDS)
        # The most messages that wait without a scheduler. Enough for the deaths of all workers at once. ZeroMQ counts
        # messages for a while after it has sent them.
        self.socket.setsockopt(zmq.SNDHWM, 64 + config.num_of_workers)
        # If the scheduler's host vanishes silently, ZeroMQ drops the dead connection and makes a new one.
        interval = max(1000, round(config.heartbeat_interval_seconds * 1000))
        self.socket.setsockopt(zmq.HEARTBEAT_IVL, interval)
        self.socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 5 * interval)
        apply_keys(self.socket, keys)
        self.reconnects = ReconnectWatcher(self.socket, SERVING_CUT_SECONDS, str(config.address))
        try:
            self.socket.connect(str(config.address))
        except zmq.ZMQError:
            self.reconnects.close()
            self._context.destroy(linger=0)
            raise

    def failure(self) -> str:
        """Why the scheduler does not let this agent connect; empty if no reason is known."""
        return "" if self.reconnects.failure is None else self.reconnects.failure.text(self._keys)

    def close(self) -> None:
        self.reconnects.close()
        self._context.destroy(linger=LINGER_MILLISECONDS)


@dataclass(frozen=True)
class WorkerProcesses:
    """The worker processes of this host, and the memory that they share with their agent."""

    starter: WorkerStarter
    page: StatePage
    directory: str
    """Of the object files."""


class _Agent:
    """The poll loop of the agent, which carries out the effects of its session."""

    def __init__(
        self,
        config: Config,
        incarnation: int,
        scheduler: SchedulerSocket,
        workers: WorkerProcesses,
        data: DataServer,
        signals: SignalSocket,
        notifier: SystemdNotifier,
    ) -> None:
        self._config = config
        self._scheduler = scheduler
        self._connection = scheduler.socket
        self._reconnects = scheduler.reconnects
        self._starters = StarterGroup(workers.starter)
        self._signals = signals
        self._page = workers.page
        self._directory = directory = workers.directory
        self._disk = DiskThread("disk")
        self._answers = TransferAnswers()
        self._values = ValueFiles(directory, self._disk, self._answers)
        self._sender = ObjectSender(self._connection, self._values.storage, self._disk)
        self._poller = zmq.Poller()
        self._data = data
        self._sources = DataSources(data.keys, self._poller)
        data.disk = self._disk
        data.read_part = self._values.parts.read
        self._report = ServiceReport(notifier, time.monotonic())
        self._exit_status: int | None = None
        self._is_orphan = False
        self._is_short_of_files = False
        """Whether it has logged that no further file can be opened."""
        self._remove_stale_at = time.monotonic() + STALE_SECONDS
        host, pid = socket.gethostname(), os.getpid()
        gpus = found_gpus(os.environ)
        name = config.agent_name or f"{host}-{pid}"
        self._hello = Hello(
            Role.AGENT,
            incarnation,
            platform.python_version(),
            __version__,
            host,
            pid,
            name,
            data=data.address,
            packages=installed_packages(),
            resources=host_resources(config.resources, gpus),
            slots=config.num_of_workers,
            environments=LEVELS[config.environments],
            platform=this_platform(),
        )
        for text in warnings(config.resources, gpus):
            _log.warning(text)
        settings = AgentSettings(
            str(config.address),
            config.worker_names or [f"{name}-{number}" for number in range(config.num_of_workers)],
            config.heartbeat_interval_seconds,
            config.death_timeout_seconds,
            config.worker_memory_limit_bytes,
            config.retire_seconds,
            config.environments,
        )
        access = HostAccess(
            _draw_incarnation,
            self._page.read,
            is_sending=lambda: self._sender.is_busy,
            list_files=self._values.names,
            has_file=self._values.has,
            has_room=self._values.storage.has_room,
            can_link=self._values.can_link,
        )
        limits = config.environment_cache_limit_bytes, config.environment_build_seconds
        self._environments = EnvironmentHost(
            EnvironmentSettings(config.environments, config.environment_cache, *limits), incarnation, self._page
        )
        access = replace(access, missing_contents=self._environments.missing_contents)
        self._session = AgentSession(self._hello, settings, access, time.monotonic())
        self._values.connect(self._session, self._do)

    def serve(self) -> int:
        """Run the poll loop. Returns the exit status."""
        _log.info(
            "scaler_cluster %s: %s for the scheduler at %s, %s %s, process %d",
            __version__,
            workers_in_words(self._config.num_of_workers),
            self._config.address,
            platform.python_implementation(),
            platform.python_version(),
            os.getpid(),
        )
        if self._data.socket is not None:
            _log.info("other agents get object files at %s", self._data.address.address)
            self._poller.register(self._data.socket, zmq.POLLIN)
        if self._data.listener is not None:
            self._poller.register(self._data.listener.fileno(), zmq.POLLIN)
        poller = self._poller
        poller.register(self._connection, zmq.POLLIN)
        poller.register(self._signals.fileno(), zmq.POLLIN)
        poller.register(self._reconnects.fileno(), zmq.POLLIN)
        poller.register(self._disk.fileno(), zmq.POLLIN)
        poller.register(self._values.thread.fileno(), zmq.POLLIN)
        poller.register(self._environments.thread.fileno(), zmq.POLLIN)
        self._do(self._session.start(time.monotonic()))
        while self._exit_status is None:
            try:
                self._serve_once()
            except OSError as error:
                if not is_file_shortage(error):
                    raise
                self._free_files(error)
        self._sources.close()
        return self._exit_status

    def _serve_once(self) -> None:
        """Wait for something to do, and do it."""
        poller = self._poller
        polled = self._starters.filenos() + self._environments.builds.filenos()
        for descriptor, wants_write in polled:
            poller.register(descriptor, zmq.POLLIN | (zmq.POLLOUT if wants_write else 0))
        has_events = self._starters.has_events or self._environments.builds.has_results
        poller.poll(0 if has_events else self._milliseconds_to_wait())
        for descriptor, _ in polled:
            poller.unregister(descriptor)  # it may be closed
        self._disk.finish()
        self._values.thread.finish()
        self._environments.thread.finish()
        self._environments.finish_builds()
        self._sender.send()
        # Signals first: if the same signal has also ended a worker (a whole control group got it), the worker has
        # not died.
        for number in self._signals.receive():
            end = self._session.retire if number == signal.SIGTERM else self._session.stop
            self._do(end(number.name, time.monotonic()))
        if self._signals.take_hangup():
            _log.info("SIGHUP: the log files are opened again")  # each process opens them at its next line
        self._look_for_parent()
        self._reconnects.retry()
        if self._reconnects.has_reconnected():
            self._do(self._session.connected(time.monotonic()))
        elif failure := self._scheduler.failure():
            self._do(self._session.received(Refused(NOT_AUTHORIZED, failure, 0, ""), time.monotonic()))
        self._read_scheduler()
        self._read_worker_events()
        for source, message in self._sources.receive():
            self._do(self._session.data_received(source, message, time.monotonic()))
        self._remove_stale_directories()
        self._data.serve()  # afterwards: other hosts may wait for what has just come
        self._do(self._session.tick(time.monotonic()))
        for answer in self._answers.take():
            self._send(answer)
        self._report.update(self._session, time.monotonic())
        self._starters.close_unused(time.monotonic())

    def close(self) -> None:
        """End the fork servers of environments, and remove the folders of environments."""
        self._starters.close()
        self._environments.close()

    def _milliseconds_to_wait(self) -> int:
        seconds = min(self._session.deadline(), self._report.next_beat, self._data.deadline()) - time.monotonic()
        if self._config.parent_process:
            seconds = min(seconds, PARENT_SECONDS)
        if self._sender.is_busy:
            seconds = min(seconds, SENDING_SECONDS)
        return max(0, math.ceil(seconds * 1000))

    def _remove_stale_directories(self) -> None:
        """Remove the files of clients on this host that were killed."""
        if time.monotonic() >= self._remove_stale_at:
            self._remove_stale_at = time.monotonic() + STALE_SECONDS
            remove_stale()

    def _look_for_parent(self) -> None:
        parent = self._config.parent_process
        if parent and not self._is_orphan and os.getppid() != parent:
            self._is_orphan = True
            self._do(self._session.stop(f"the parent process {parent} has ended", time.monotonic()))

    def _read_scheduler(self) -> None:
        until = time.monotonic() + ROUND_SECONDS
        for _ in range(MESSAGES_PER_ROUND):
            if time.monotonic() > until:
                return
            try:
                frames = receive(self._connection, zmq.NOBLOCK)
            except zmq.Again:
                return
            try:
                message = decode(frames)
            except WireError as error:
                _log.warning("dropped a message that can't be decoded: %s", error)
                continue
            self._do(self._session.received(message, time.monotonic()))

    def _read_worker_events(self) -> None:
        if self._exit_status is not None:
            return
        self._starters.flush()
        try:
            events = self._starters.receive()
        except ForkServerLost:
            end_processes(self._session.workers, os.getpid())
            self._do(self._session.fork_server_lost())
            return
        for event in events:
            now = time.monotonic()
            if isinstance(event, ProcessStarted):
                self._do(self._session.worker_started(event.incarnation, event.pid, now))
                continue
            effects = self._session.worker_ended(event, now)
            if event.pid:
                self._values.process_ended(event.pid)
                self._remove_stale_at = 0.0  # its tasks may have had a client
            self._page.clear(event.slot)  # before the next worker of this slot starts
            self._do(effects)

    # --------------------------------------------------------------------------------------------------------- effects

    def _do(self, effects: list[Effect]) -> None:
        for effect in effects:
            action = self._actions[type(effect)]
            until = time.monotonic() + SHORTAGE_SECONDS
            while True:
                try:
                    action(self, effect)
                    break
                except OSError as error:
                    if not is_file_shortage(error) or time.monotonic() > until:
                        raise
                    self._free_files(error)

    def _free_files(self, error: OSError) -> None:
        """End the connections of the data address, which take files, and wait a moment."""
        if not self._is_short_of_files:
            self._is_short_of_files = True
            _log.error("no further file can be opened, trying again: %s", error)
        self._data.end_connections("this process has too many open files")
        time.sleep(SHORTAGE_PAUSE_SECONDS)

    def _send_message(self, effect: Send) -> None:
        if isinstance(effect.message, Transferred):
            self._answers.add(effect.message)
        else:
            self._send(effect.message)

    def _send(self, message: Message) -> None:
        for frames in encode_or_log(message):
            try:
                self._connection.send_multipart(frames, zmq.NOBLOCK)
            except zmq.Again:
                # There was no scheduler for long. The session repeats the important messages when there is one.
                _log.debug("not sent, the queue is full: %s", type(message).__name__)

    def _send_heartbeat(self, beat: SendHeartbeat) -> None:
        own = process_usage(os.getpid())
        workers = []
        for incarnation, pid in beat.workers:
            usage = process_usage(pid)
            workers.append(WorkerHeartbeat(incarnation, usage.resident_bytes, usage.cpu_milliseconds))
        figures = own.resident_bytes, own.cpu_milliseconds, workers, beat.lag_microseconds
        used = self._values.usage_to_tell()
        values = used.memory_bytes, used.disk_bytes, used.written_bytes + used.read_bytes
        now_ms = time.time_ns() // 1_000_000
        message = Heartbeat(beat.sequence, *figures, beat.is_retiring, *values, now_ms)
        message.memory_limit_bytes, message.disk_limit_bytes = used.memory_limit, used.disk_limit
        self._send(message)

    def _measure(self, effect: MeasureMemory) -> None:
        shared = self._values.storage.bytes_in_use()
        sizes = {incarnation: resident_bytes(pid, shared) for incarnation, pid in effect.workers}
        self._do(self._session.measured(sizes))

    def _start_worker(self, start: StartWorker) -> None:
        config = self._config
        environment = self._environments.find(start.environment)
        settings = WorkerSettings(
            address=str(config.address),
            name=start.name,
            incarnation=start.incarnation,
            agent=self._hello.incarnation,
            heartbeat_interval_seconds=config.heartbeat_interval_seconds,
            garbage_collect_interval_seconds=config.garbage_collect_interval_seconds,
            trim_memory_threshold_bytes=config.trim_memory_threshold_bytes,
            preload=config.preload,
            offers=config.offer,
            logging_level=config.logging_level,
            logging_paths=config.logging_paths,
            capabilities=config.capabilities,
            keys=absolute(config.keys),
            objects=self._directory,
            environment=start.environment,
            module_folder="" if environment is None else environment.folder,
        )
        if environment is not None and environment.packages is not None:
            # The operator's functions are in the packages of this host, which these workers do not have.
            settings = replace(settings, preload="", offers={})
        self._starters.start(start.slot, settings, self._environments.launcher(environment))

    def _store_contents(self, effect: StoreContents) -> None:
        self._environments.store(
            effect, lambda stored: self._do(self._session.contents_stored(*stored, time.monotonic()))
        )

    def _prepare_environment(self, effect: PrepareEnvironment) -> None:
        self._environments.prepare(
            effect,
            lambda outcome: self._do(self._session.environment_prepared(effect.name, *outcome, time.monotonic())),
        )

    def _exit(self, effect: Exit) -> None:
        self._exit_status = effect.status

    _actions: dict[type, Callable[[_Agent, Any], None]] = {
        Send: _send_message,
        SendHeartbeat: _send_heartbeat,
        MeasureMemory: _measure,
        StartWorker: _start_worker,
        StoreContents: _store_contents,
        PrepareEnvironment: _prepare_environment,
        RemoveEnvironment: lambda self, effect: self._environments.remove(effect.name),
        WriteObject: lambda self, effect: self._values.write(effect),
        MarkObjectLost: lambda self, effect: self._values.mark_lost(effect),
        RemoveObjects: lambda self, effect: self._values.remove(effect),
        LinkFile: lambda self, effect: self._values.link(effect),
        SendObjects: lambda self, effect: self._sender.add(effect.names, effect.frame_limit),
        AskSource: lambda self, effect: self._sources.ask(effect.source, effect.message),
        CloseSource: lambda self, effect: self._sources.close_source(effect.source),
        WritePart: lambda self, effect: self._values.write_part(effect),
        FinishFile: lambda self, effect: self._values.finish(effect),
        DropPart: lambda self, effect: self._values.drop_part(effect),
        SignalWorker: lambda self, effect: self._starters.end(effect.incarnation, effect.kill),
        TakeTicket: lambda self, effect: self._data.take_ticket(effect.ticket),
        Log: lambda self, effect: _log.log(effect.level, effect.text),
        Exit: _exit,
    }
