"""Handlers of a command's log that count the lines that cannot be written, for example because the disk is full.

The standard library prints a traceback to standard error for every such line. These handlers print one line a minute.
When the log can be written again, the first line in it says how many lines were lost.

scaler_client has a link to this file.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import time
from typing import Any, Callable

REPORT_SECONDS = 60.0

LINE_FORMAT = "[%(levelname)s]%(asctime)s: %(message)s"
TIME_FORMAT = "%Y-%m-%d %H:%M:%S%z"


class LostLines:
    """Counts the lines that one log has lost. Reports them on standard error, at most once a minute."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`name` is the name of the log in the report."""
        self.lines = 0
        self._name = name
        self._clock = clock
        self._reason = ""
        self._next_report: float | None = None

    def add(self, error: Exception) -> None:
        """Count one more line that is lost because of this error."""
        self.lines += 1
        self._reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        now = self._clock()
        if self._next_report is None or now >= self._next_report:
            self._next_report = now + REPORT_SECONDS
            lost = f"{_lines(self.lines, 'is', 'are')} lost so far, logging continues when the log can be written again"
            _to_standard_error(f"cannot write to the log {self._name}: {self._reason}; {lost}")

    def report(self) -> logging.LogRecord:
        """The line about lost lines for the log itself."""
        text = f"{_lines(self.lines, 'was', 'were')} not written to this log: {self._reason}"
        return logging.LogRecord(__name__, logging.WARNING, "", 0, text, (), None)

    def reset(self) -> None:
        """Reset the count, after the log itself has the line about lost lines."""
        self.lines = 0


class LineHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes each line with one system call to the descriptor of its stream.

    The buffer of a stream keeps data that could not be written, and writes it later: torn lines, and lines that were
    counted as lost. If a stream has no descriptor, the handler writes to the stream itself.
    """

    def __init__(self, stream: Any, name: str) -> None:
        super().__init__(stream)
        self._lost = LostLines(name)
        self._is_torn = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record) + "\n"
        except Exception:  # the arguments do not fit the message
            self.handleError(record)
            return
        try:
            self._prepare()
            if self._lost.lines:
                text = f"{self.format(self._lost.report())}\n{text}"
            self._write(text)
        except (OSError, ValueError) as error:  # ValueError: the stream is closed
            self._lost.add(error)
        else:
            self._lost.reset()

    def _prepare(self) -> None:
        """Called before each line. Raises OSError."""

    def _write(self, text: str) -> None:
        """Write the whole text. Raises OSError or ValueError."""
        try:
            descriptor = self.stream.fileno()
        except (AttributeError, io.UnsupportedOperation):
            self.stream.write(text)
            self.stream.flush()
            return
        self.stream.flush()  # so that earlier prints come before the line
        data = text.encode("utf-8", "backslashreplace")
        if self._is_torn:
            data = b"\n" + data
        while data:
            written = os.write(descriptor, data)
            data = data[written:]
            self._is_torn = bool(data)


class WatchedFileHandler(LineHandler):
    """Appends to a file. If the file is moved away, it goes on in a new file of the same name.

    A line costs 2 us. WatchedFileHandler of the standard library imports pickle and sockets.
    """

    def __init__(self, path: str) -> None:
        """Raises OSError if the file cannot be opened."""
        self._path = os.path.abspath(path)
        super().__init__(_appending(self._path), self._path)

    def close(self) -> None:
        self.acquire()
        try:
            self.stream.close()
        finally:
            self.release()
        super().close()

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def _prepare(self) -> None:
        if self.stream.closed or not self._is_in_place():
            self.stream.close()
            self.stream = _appending(self._path)
            self._is_torn = False

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self.stream.fileno()))
        except OSError:
            return False


def limit_error_reports(handler: logging.Handler) -> None:
    """Make a handler of the standard library report lost lines like the handlers of this module."""
    lost = LostLines(str(getattr(handler, "baseFilename", None) or handler))
    otherwise = handler.handleError

    def handle_error(record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        if isinstance(error, OSError):
            lost.add(error)
        else:
            otherwise(record)

    handler.handleError = handle_error  # type: ignore[method-assign]


def _appending(path: str) -> io.FileIO:
    return io.FileIO(path, "a")


def _lines(count: int, one: str, many: str) -> str:
    return f"1 line {one}" if count == 1 else f"{count} lines {many}"


def _to_standard_error(text: str) -> None:
    """Write one line to standard error without a buffer. A buffer would keep a line that cannot be written."""
    record = logging.LogRecord(__name__, logging.WARNING, "", 0, text, (), None)
    line = logging.Formatter(LINE_FORMAT, TIME_FORMAT).format(record) + "\n"
    try:
        # Not sys.stderr: in a worker it is the output of the running task.
        os.write(sys.__stderr__.fileno(), line.encode("utf-8", "backslashreplace"))  # type: ignore[union-attr]
    except (AttributeError, OSError, ValueError):
        pass
