"""A TCP proxy between the scheduler and all peers, which can be cut: it stands for the network."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

CHUNK_BYTES = 1 << 18


class Network:
    """Forwards TCP connections to a port of this host, until it is cut.

    While it is cut, nothing arrives and no connection breaks, as with a cable that is pulled. Then either everything
    continues, because TCP sends lost data again, or all connections turn out to be broken.

    Args:
        port: the scheduler's.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._own_port = 0
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.StreamWriter] = set()
        self._is_open = asyncio.Event()
        started: Future[int] = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        self.address = f"tcp://127.0.0.1:{started.result()}"
        """The address by which all peers connect to the scheduler."""

    def cut(self) -> None:
        self._call(self._is_open.clear)

    def mend(self, breaks_connections: bool) -> None:
        if breaks_connections:
            self._call(self._break)
        self._call(self._is_open.set)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Refuse new connections, as a host without a scheduler does."""
        self._call(self._stop_listening)
        try:
            yield
        finally:
            asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()

    def close(self) -> None:
        self._call(self._loop.stop)
        self._thread.join()

    def _call(self, function: Any) -> None:
        self._loop.call_soon_threadsafe(function)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._own_port)
        self._own_port = self._server.sockets[0].getsockname()[1]

    def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()

    def _run(self, started: Future[int]) -> None:
        asyncio.set_event_loop(self._loop)
        self._is_open.set()
        self._loop.run_until_complete(self._listen())
        started.set_result(self._own_port)
        self._loop.run_forever()
        self._stop_listening()
        self._break()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    def _break(self) -> None:
        for writer in self._connections:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            await self._is_open.wait()
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            there_writer = None  # the scheduler has just ended
        if there_writer is not None:
            self._connections.add(there_writer)
            pumps = [self._pump(reader, there_writer), self._pump(there_reader, writer)]
            await asyncio.gather(*pumps, return_exceptions=True)
            self._connections.discard(there_writer)
        self._connections.discard(writer)
        writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward until one side closes, and then close the other."""
        try:
            while data := await reader.read(CHUNK_BYTES):
                await self._is_open.wait()
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()
