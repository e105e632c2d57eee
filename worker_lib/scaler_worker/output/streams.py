"""`sys.stdout` and `sys.stderr` of a worker: text that a task writes there becomes lines of the worker's log.

Only output through Python's streams is captured. C code and subprocesses write to the descriptors, which remain the
cluster's own output. Reason: a pipe in their place would need a thread of this process that reads it. C code that
prints while it holds the GIL would then wait for ever.
"""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterable
from typing import Any

from scaler_client.protocol.messages import STANDARD_ERROR, STANDARD_OUTPUT
from scaler_worker.output.log import OutputLog
from scaler_worker.output.task_output import TaskOutput


class Capture:
    """Replaces the two standard streams, and restores them."""

    def __init__(self, output: TaskOutput, log: OutputLog) -> None:
        self._before = sys.stdout, sys.stderr
        self._streams = (
            TaskStream(output, log, STANDARD_OUTPUT, sys.stdout),
            TaskStream(output, log, STANDARD_ERROR, sys.stderr),
        )

    def begin(self) -> None:
        sys.stdout, sys.stderr = self._streams

    def end(self) -> None:
        """Restore the streams. Code that still has a captured stream writes to the process' own streams from now on."""
        for stream in self._streams:
            stream.is_over = True
        stdout, stderr = self._streams
        if sys.stdout is stdout:
            sys.stdout = self._before[0]
        if sys.stderr is stderr:
            sys.stderr = self._before[1]


class TaskStream(io.TextIOBase):
    """Takes the place of a standard stream. `raw` is the stream that it replaces; None: there was none."""

    def __init__(self, output: TaskOutput, log: OutputLog, number: int, raw: Any) -> None:
        self._output = output
        self._log = log
        self._number = number
        self._raw = raw
        self.buffer = _Bytes(self)
        self.is_over = False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "backslashreplace"

    @property
    def name(self) -> str:
        return "<stderr>" if self._number else "<stdout>"

    @property
    def mode(self) -> str:
        return "w"

    @property
    def line_buffering(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self.is_over or self._log.is_writing_here():
            if self._raw is not None:
                self._raw.write(text)
        elif text:
            self._output.write(self._number, text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:  # type: ignore[override]
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Does nothing: a complete line is passed on when it is written, and an incomplete line waits for its end."""
        if self.is_over and self._raw is not None:
            self._raw.flush()

    def fileno(self) -> int:
        """The descriptor of the process. A subprocess that writes there writes to the cluster's own output."""
        if self._raw is None:
            raise io.UnsupportedOperation("fileno")
        descriptor: int = self._raw.fileno()
        return descriptor

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def reconfigure(self, **_: Any) -> None:
        """Does nothing: no setting can be changed."""

    def close(self) -> None:
        """Does nothing: all tasks share the stream."""


class _Bytes(io.RawIOBase):
    """The `buffer` of a TaskStream."""

    def __init__(self, stream: TaskStream) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def raw(self) -> _Bytes:
        return self

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._stream.write(self._decoder.decode(bytes(view)))
        return view.nbytes

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Does nothing: all tasks share the stream."""
