"""The newest tracebacks of failed attempts, as their workers sent them, up to a limit in bytes."""

from collections import OrderedDict

from scaler_scheduler.core.lines import TRACEBACK_BYTES, printable_text

KEPT_BYTES = 4 << 20
"""The limit for all tracebacks. The history has 100,000 rows: a traceback for each would take a hundred times this."""

ENTRY_BYTES = 200
"""The size of an entry without its text."""

TaskAttempt = tuple[int, int, int]
"""Client, id, attempt."""


class Tracebacks:
    """Tracebacks by client, id and attempt.

    Args:
        kept_bytes: the limit for all; the oldest tracebacks are dropped first.
    """

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self.bytes = 0
        self._kept_bytes = kept_bytes
        self._texts: OrderedDict[TaskAttempt, bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, client: int, task_id: int, attempt: int, text: bytes) -> None:
        """Keep the traceback of an attempt."""
        text = text[-TRACEBACK_BYTES:]
        before = self._texts.pop((client, task_id, attempt), None)
        if before is not None:
            self.bytes -= len(before) + ENTRY_BYTES
        self._texts[client, task_id, attempt] = text
        self.bytes += len(text) + ENTRY_BYTES
        while self.bytes > self._kept_bytes:
            _, oldest = self._texts.popitem(last=False)
            self.bytes -= len(oldest) + ENTRY_BYTES

    def find(self, client: int, task_id: int, attempt: int) -> str:
        """Return the traceback of an attempt as printable lines. Empty if there is none."""
        text = self._texts.get((client, task_id, attempt))
        return "" if text is None else printable_text(text)
