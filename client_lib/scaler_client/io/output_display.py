"""Shows the output of tasks in the client: each line has a label with host, process and task.

A separate thread writes the lines. If the stream takes them too slowly, further output is dropped and counted. So the
client's connection and tasks never wait for a terminal.
"""

from __future__ import annotations

import select
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from ..protocol.messages import STANDARD_ERROR, Output

MAX_WAITING_BYTES = 4 << 20
"""While more than this waits to be written, output is dropped."""

PIPE_BUF_BYTES = 4096
"""The bytes that a writable stream takes at once: a pipe has room for at least this many (PIPE_BUF)."""

RETRY_SECONDS = 0.02
"""The pause between two checks of a stream that is not writable."""

CLOSE_SECONDS = 1.0
"""How long the end of a client waits for unwritten output."""

_Part = tuple[int, str, int]
"""Stream, text, and the size that it counts."""


class OutputDisplay:
    """Writes output in a thread, which starts with the first output."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[_Part] = deque()
        self._waiting_bytes = 0
        self._dropped = 0
        """Dropped bytes that no line has reported yet."""
        self._changed = threading.Event()
        self._deadline: float | None = None
        """When the thread must end, by the monotonic clock; None: `end` was not called."""
        self._thread: threading.Thread | None = None

    def put(self, output: Output) -> None:
        """Queue output to be shown. Never blocks."""
        with self._lock:
            if self._deadline is not None:
                return
            self._dropped += output.dropped
            if self._waiting_bytes >= MAX_WAITING_BYTES:
                self._dropped += sum(map(len, output.texts))
                return
            self._note_dropped()
            for stream, label, text in zip(output.streams, output.labels, output.texts):
                self._add(stream, _labelled_lines(label, text))
            if self._thread is None:
                self._thread = threading.Thread(target=self._show, name="scaler-client-output", daemon=True)
                self._thread.start()
        self._changed.set()

    def end(self) -> None:
        """End the thread once the queued output is written, or after CLOSE_SECONDS."""
        with self._lock:
            self._deadline = time.monotonic() + CLOSE_SECONDS
            self._note_dropped()
        self._changed.set()

    def join(self) -> None:
        """Wait until all output is written, after `end`, for at most CLOSE_SECONDS."""
        thread = self._thread
        if thread is not None and threading.current_thread() is not thread:
            thread.join(CLOSE_SECONDS)

    def _add(self, stream: int, text: str) -> None:
        self._waiting.append((stream, text, len(text)))
        self._waiting_bytes += len(text)

    def _note_dropped(self) -> None:
        if self._dropped:
            text = f"[scaler] {self._dropped} bytes of task output were dropped\n"
            self._add(STANDARD_ERROR, text)
            self._dropped = 0

    def _show(self) -> None:
        while True:
            self._changed.wait()
            self._changed.clear()
            while self._waiting:
                stream, text, size = self._waiting.popleft()
                if not self._write(stream, text):
                    return
                with self._lock:
                    self._waiting_bytes -= size
                    if self._dropped and not self._waiting:
                        self._note_dropped()
            if self._deadline is not None and not self._waiting:
                return

    def _write(self, number: int, text: str) -> bool:
        """Write text; return False if the client ends and the stream takes too long."""
        for piece in _pieces(text):
            stream: Any = sys.stderr if number == STANDARD_ERROR else sys.stdout
            while not is_writable(stream):
                if self._deadline is not None and time.monotonic() > self._deadline:
                    return False
                time.sleep(RETRY_SECONDS)
            try:
                _write_whole(stream, piece)
            except Exception:  # a closed stream, or a failing stream of the user's program: no way to report it
                return True
        return True


def _labelled_lines(label: bytes, text: bytes) -> str:
    """Return the lines, each with the label in front."""
    before = f"[{label.decode('utf-8', 'replace')}] "
    return "".join(f"{before}{line}\n" for line in text.decode("utf-8", "replace").split("\n"))


def _pieces(text: str) -> Iterator[str]:
    """Split text into whole lines, as far as possible, of at most a quarter of PIPE_BUF_BYTES characters together.

    A character has up to four bytes in UTF-8.
    """
    most = PIPE_BUF_BYTES // 4
    begin = 0
    while begin < len(text):
        end = text.rfind("\n", begin, begin + most) + 1 or begin + most
        yield text[begin:end]
        begin = end


def _write_whole(stream: Any, text: str) -> None:
    if stream is None:  # a program without a console
        return
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def is_writable(stream: Any) -> bool:
    """Whether the stream takes PIPE_BUF_BYTES at once. A stream without a file descriptor counts as writable."""
    if not hasattr(select, "poll"):
        return True
    try:
        poll = select.poll()
        poll.register(stream.fileno(), select.POLLOUT)
        return bool(poll.poll(0))  # an error counts as writable: the write then raises
    except (AttributeError, OSError, TypeError, ValueError):
        return True
