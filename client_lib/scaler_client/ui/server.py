"""The process: the monitor socket and the web server on one event loop, until a signal ends it."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import signal
import socket
import time

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from .. import __version__
from ..commands.addresses import bind_error_text
from ..commands.options import EXIT_UNAVAILABLE, fail, interpreter
from ..commands.systemd_notify import SystemdNotifier, pop_variables
from ..monitor.reader import Presence
from ..monitor.socket import TICK_SECONDS, MonitorAccessError, MonitorSocket
from ..protocol.snapshot_decoder import GRAPHS_TOPIC, HISTORY_TOPIC, SNAPSHOT_TOPIC
from .access import Access, generate_token, is_loopback
from .config import PROGRAM, Config
from .live_state import Limits, LiveState
from .web_application import WebApplication

TOPICS = (SNAPSHOT_TOPIC, HISTORY_TOPIC)
CLOSING_SECONDS = 1.0
"""How long open requests may continue at the end."""

_log = logging.getLogger(__name__)


def run(config: Config) -> int:
    """Serve until a signal ends the process. Returns the exit status."""
    notifier = SystemdNotifier(pop_variables(os.environ))
    try:
        with MonitorSocket(config.monitor_address, TOPICS, keys=config.keys) as monitor:
            return asyncio.run(_Server(config, monitor, notifier).serve())
    except MonitorAccessError as error:
        return fail(PROGRAM, str(error))
    finally:
        notifier.close()


class _Server:
    def __init__(self, config: Config, monitor: MonitorSocket, notifier: SystemdNotifier) -> None:
        self._config = config
        self._monitor = monitor
        self._notifier = notifier
        limits = Limits(config.window_tasks, config.window_seconds)
        offset = time.time() - time.monotonic()
        self._live = LiveState(monitor.reader, __version__, str(monitor.address), limits, offset)
        self._token = config.token or ("" if is_loopback(config.host) else generate_token())
        self._application = WebApplication(self._live, Access(self._token), self._subscribe)
        self._subscribed: set[bytes] = set()
        self._presence = Presence.UNKNOWN

    async def serve(self) -> int:
        config, loop = self._config, asyncio.get_running_loop()
        ended = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ended.set)
        http_log = logging.getLogger("aiohttp.server")
        http_log.addFilter(_is_own_error)
        application = self._application.application()
        runner = web.AppRunner(application, access_log=None, logger=http_log, shutdown_timeout=CLOSING_SECONDS)
        await runner.setup()
        try:
            await web.TCPSite(runner, config.host, config.port).start()
        except OSError as error:
            await runner.cleanup()
            return fail(
                PROGRAM, f"cannot listen on {config.host}, port {config.port}: {_reason(error)}", EXIT_UNAVAILABLE
            )
        _log.info("%s %s on %s, process %d", PROGRAM, __version__, interpreter(), os.getpid())
        _log.info("shows the scheduler that publishes at %s", self._monitor.address)
        print(self._url(runner), flush=True)  # not logged: it may contain the token, and callers read it
        self._notifier.ready()
        loop.add_reader(self._monitor.fileno(), self._read)
        try:
            await self._run_until(ended)
        finally:
            self._notifier.stopping()
            loop.remove_reader(self._monitor.fileno())
            await runner.cleanup()
        return 0

    async def _run_until(self, ended: asyncio.Event) -> None:
        seconds = min(TICK_SECONDS, self._notifier.watchdog_seconds or TICK_SECONDS)
        parent = self._config.parent_process
        while not ended.is_set():
            if parent and os.getppid() != parent:
                _log.info("the parent process %d has ended", parent)
                return
            self._read()
            self._subscribe()
            self._notifier.watchdog()
            self._notifier.status(self._status())
            try:
                await asyncio.wait_for(ended.wait(), seconds)
            except asyncio.TimeoutError:
                continue

    def _read(self) -> None:
        is_new = self._monitor.read()
        reader = self._monitor.reader
        if reader.presence is Presence.UNKNOWN:
            problem = self._monitor.connection_problem()
            if self._live.set_connection_problem(problem):
                is_new = True
                if problem:
                    _log.warning("no message from the scheduler: %s", problem)
        if is_new:
            self._live.refresh(time.monotonic())
            self._application.notify_pages()
        if reader.presence is not self._presence:
            self._presence = reader.presence
            _log.info("the scheduler is %s%s", self._presence.value, f": {reader.problem}" if reader.problem else "")

    def _subscribe(self) -> None:
        """Subscribe to the topics that pages need now, and to no others."""
        needed = self._application.topics()
        for topic in needed - self._subscribed:
            self._monitor.subscribe(topic)
        for topic in self._subscribed - needed:
            self._monitor.unsubscribe(topic)
            if topic == GRAPHS_TOPIC:
                self._live.clear_graphs()
        self._subscribed = needed

    def _status(self) -> str:
        """The status line for `systemctl status`."""
        pages = f"{self._application.pages} page{'' if self._application.pages == 1 else 's'}"
        return f"{pages} open; the scheduler at {self._monitor.address} is {self._presence.value}"

    def _url(self, runner: web.AppRunner) -> str:
        """The address to open, with the token if it was made here."""
        address, port = runner.addresses[0][:2]
        host = socket.gethostname() if ipaddress.ip_address(address).is_unspecified else address
        query = f"?token={self._token}" if self._token != self._config.token else ""
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/{query}"


def _is_own_error(record: logging.LogRecord) -> bool:
    """Whether an error comes from this program. A request that is not HTTP is answered, and not logged."""
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)


def _reason(error: OSError) -> str:
    if error.errno is not None and error.errno > 0:
        return bind_error_text(error.errno)
    return error.strerror or str(error)
