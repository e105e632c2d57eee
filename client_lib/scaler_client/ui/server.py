"""The process: the monitor's socket and the web server on one event loop, until a signal ends it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time

from aiohttp import web

from .. import __version__
from ..monitor_socket import TICK_SECONDS, MonitorAccessError, MonitorSocket
from ..options import fail
from ..published import HISTORY_TOPIC, SNAPSHOT_TOPIC
from .access import Access, is_loopback, made_token
from .config import PROGRAM, Config
from .live import Limits, Live
from .web import Web

_log = logging.getLogger(__name__)

TOPICS = (SNAPSHOT_TOPIC, HISTORY_TOPIC)


def run(config: Config) -> int:
    """Serve until a signal; the process' exit status."""
    try:
        with MonitorSocket(config.monitor_address, TOPICS) as monitor:
            return asyncio.run(_Server(config, monitor).serve())
    except MonitorAccessError as error:
        return fail(PROGRAM, str(error))


class _Server:
    def __init__(self, config: Config, monitor: MonitorSocket) -> None:
        self._config = config
        self._monitor = monitor
        limits = Limits(config.window_tasks, config.window_seconds)
        offset = time.time() - time.monotonic()
        self._live = Live(monitor.reader, __version__, str(monitor.address), limits, offset)
        self._token = config.token or ("" if is_loopback(config.host) else made_token())
        self._web = Web(self._live, Access(self._token, f"scaler_ui_{config.port}"))

    async def serve(self) -> int:
        config, loop = self._config, asyncio.get_running_loop()
        runner = web.AppRunner(self._web.application(), access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, config.host, config.port).start()
        except OSError as error:
            await runner.cleanup()
            return fail(PROGRAM, f"cannot listen on {config.host} port {config.port}: {os.strerror(error.errno or 0)}")
        ended = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ended.set)
        loop.add_reader(self._monitor.fileno(), self._read)
        print(self._address(runner), flush=True)
        try:
            while not ended.is_set():
                self._read()
                try:
                    await asyncio.wait_for(ended.wait(), TICK_SECONDS)
                except asyncio.TimeoutError:
                    continue
        finally:
            loop.remove_reader(self._monitor.fileno())
            await runner.cleanup()
        return 0

    def _address(self, runner: web.AppRunner) -> str:
        """What to open: with the token, if nobody knows it yet."""
        host, port = runner.addresses[0][:2]
        query = f"?token={self._token}" if self._token != self._config.token else ""
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/{query}"

    def _read(self) -> None:
        if self._monitor.read():
            self._live.look()
            self._web.tell()
