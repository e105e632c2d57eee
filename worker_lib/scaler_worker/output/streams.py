"""`sys.stdout` and `sys.stderr` of a worker: whatever a task writes there becomes lines of the worker's log.

Only what goes through Python's streams does. The descriptors stay as they are, so that C code and subprocesses write
where the cluster's own output goes: a pipe in their place would have to be read by a thread of this process, which C
code that prints while it holds the interpreter's lock would wait for forever.
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
    """Puts the two streams in their place, and takes them away."""

    def __init__(self, output: TaskOutput, log: OutputLog) -> None:
        self._before = sys.stdout, sys.stderr
        self._streams = (
            TaskStream(output, log, STANDARD_OUTPUT, sys.stdout),
            TaskStream(output, log, STANDARD_ERROR, sys.stderr),
        )

    def begin(self) -> None:
        sys.stdout, sys.stderr = self._streams

    def end(self) -> None:
        """From now on what is written goes to the process' own streams, also by those that have kept these."""
        for stream in self._streams:
            stream.is_over = True
        stdout, stderr = self._streams
        if sys.stdout is stdout:
            sys.stdout = self._before[0]
        if sys.stderr is stderr:
            sys.stderr = self._before[1]


class TaskStream(io.TextIOBase):
    """In the place of a standard stream; `raw` is what was there."""

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
        """Lines are on their way as soon as they are written; the begin of one waits for its rest."""
        if self.is_over and self._raw is not None:
            self._raw.flush()

    def fileno(self) -> int:
        """The process' own: what is written there, by a subprocess for one, goes to the cluster's output as it is."""
        if self._raw is None:
            raise io.UnsupportedOperation("fileno")
        descriptor: int = self._raw.fileno()
        return descriptor

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def reconfigure(self, **_: Any) -> None:
        """There is nothing to set."""

    def close(self) -> None:
        """It stays open: it is every task's."""


class _Bytes(io.RawIOBase):
    """The stream's `buffer`."""

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
        """As the stream's."""
