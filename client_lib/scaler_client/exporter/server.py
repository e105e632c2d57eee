"""The process: one thread follows the scheduler, and prometheus_client's server answers scrapes in other threads."""

from __future__ import annotations

import json
import logging
import os
import select
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import Metric
from prometheus_client.exposition import ThreadingWSGIServer, make_wsgi_app
from prometheus_client.registry import Collector

from ..commands.addresses import bind_error_text
from ..commands.exit_signal import exit_signal
from ..commands.options import EXIT_UNAVAILABLE, fail
from ..commands.systemd_notify import SystemdNotifier, pop_variables
from ..monitor.metrics import SchedulerCollector
from ..monitor.reader import MonitorReader, Presence
from ..monitor.socket import TICK_SECONDS, MonitorAccessError, MonitorSocket
from .config import PROGRAM, Config

REQUEST_SECONDS = 10
"""The longest wait for a request after a connection is made."""

_log = logging.getLogger(__name__)

StartResponse = Callable[[str, list[tuple[str, str]]], Any]
Environ = dict[str, Any]


def run(config: Config) -> int:
    """Serve until a signal ends the process. Returns the exit status."""
    notifier = SystemdNotifier(pop_variables(os.environ))
    with exit_signal() as exit_requested:
        try:
            with MonitorSocket(config.monitor_address, keys=config.keys) as monitor:
                return _Exporter(config, monitor, notifier, exit_requested).serve()
        except MonitorAccessError as error:
            return fail(PROGRAM, str(error))
        finally:
            notifier.close()


class _Exporter:
    def __init__(
        self, config: Config, monitor: MonitorSocket, notifier: SystemdNotifier, exit_requested: threading.Event
    ) -> None:
        self._config = config
        self._monitor = monitor
        self._notifier = notifier
        self._exit_requested = exit_requested
        self._reader_lock = threading.Lock()
        """The lock that a thread holds while it feeds the reader or reads from it."""

    def serve(self) -> int:
        config, application = self._config, Application(self._monitor.reader, self._reader_lock)
        try:
            server = make_server(config.host, config.port, application, _server_class(config.host), _RequestHandler)
        except OSError as error:
            reason = error.strerror if isinstance(error, socket.gaierror) else bind_error_text(error.errno or 0)
            return fail(PROGRAM, f"cannot listen on {config.host}, port {config.port}: {reason}", EXIT_UNAVAILABLE)
        thread = threading.Thread(target=server.serve_forever, name="scrapes", daemon=True)
        thread.start()
        host = f"[{config.host}]" if ":" in config.host else config.host
        _log.info(f"http://{host}:{server.server_port}/metrics, of the scheduler at {self._monitor.address}")
        self._notifier.ready()
        try:
            self._follow_scheduler()
        finally:
            self._notifier.stopping()
            server.shutdown()
            server.server_close()
        return 0

    def _follow_scheduler(self) -> None:
        reader, presence, reported_problem = self._monitor.reader, Presence.UNKNOWN, ""
        seconds = min(TICK_SECONDS, self._notifier.watchdog_seconds or TICK_SECONDS)
        while not self._exit_requested.is_set():
            with self._reader_lock:
                self._monitor.read()
            if reader.presence is not presence:
                presence = reader.presence
                _log.log(*_presence_message(reader))
            problem = "" if presence is Presence.UP else self._monitor.connection_problem()
            if problem != reported_problem:
                reported_problem = problem
                if problem:
                    _log.warning(problem)
            self._notifier.watchdog()
            self._notifier.status(f"the scheduler at {self._monitor.address} is {presence.value}")
            select.select([self._monitor.fileno()], [], [], seconds)


def _presence_message(reader: MonitorReader) -> tuple[int, str]:
    if reader.presence is Presence.UP and reader.view is not None:
        return logging.INFO, f"the scheduler is there, version {reader.view.snapshot.version}"
    return logging.WARNING, reader.problem or "the scheduler is down: no message from it for some seconds"


class Application:
    """The WSGI application with /metrics and /health.

    Args:
        lock: held while the reader is read. The thread that feeds the reader holds it too.
    """

    def __init__(self, reader: MonitorReader, lock: threading.Lock) -> None:
        self._reader = reader
        self._lock = lock
        self._metrics = make_wsgi_app(_LockedCollector(SchedulerCollector(reader), lock))

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            answer: Iterable[bytes] = self._metrics(environ, start_response)
            return answer
        if environ.get("REQUEST_METHOD") != "GET":
            return _respond(start_response, "405 Method Not Allowed", "only GET is supported\n")
        if path == "/health":
            return self._health(start_response)
        return _respond(start_response, "404 Not Found", "there are only /metrics and /health\n")

    def _health(self, start_response: StartResponse) -> Iterable[bytes]:
        with self._lock:
            presence = self._reader.presence
        is_there = presence is Presence.UP
        payload = {"status": "ok" if is_there else "unavailable", "scheduler": presence.name.lower().replace("_", " ")}
        status = "200 OK" if is_there else "503 Service Unavailable"
        return _respond(start_response, status, json.dumps(payload) + "\n", "application/json")


def _respond(start_response: StartResponse, status: str, text: str, kind: str = "text/plain") -> Iterable[bytes]:
    start_response(status, [("Content-Type", f"{kind}; charset=utf-8"), ("Cache-Control", "no-store")])
    return [text.encode()]


class _LockedCollector(Collector):
    """A collector that yields all metrics of one snapshot, under the lock."""

    def __init__(self, collector: SchedulerCollector, lock: threading.Lock) -> None:
        self._collector = collector
        self._lock = lock

    def collect(self) -> list[Metric]:
        with self._lock:
            return list(self._collector.collect())


class _RequestHandler(WSGIRequestHandler):
    timeout = REQUEST_SECONDS

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests."""

    def address_string(self) -> str:
        """The client's address, without a lookup of its name."""
        return str(self.client_address[0])


def _server_class(host: str) -> type[ThreadingWSGIServer]:
    class Server(ThreadingWSGIServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        def server_bind(self) -> None:
            # The base class of HTTPServer would ask a name server for the host's name, which may take long.
            socket.socket.setsockopt(self.socket, socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.bind(self.server_address)
            self.server_address = self.socket.getsockname()
            self.server_name, self.server_port = host, self.server_address[1]
            self.setup_environ()

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Log an error of a request. A client that has disconnected is no error."""
            error = sys.exc_info()[1]
            if not isinstance(error, OSError):
                _log.warning(f"a request from {client_address[0]} failed: {error!r}")

    return Server
