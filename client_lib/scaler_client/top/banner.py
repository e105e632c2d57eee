"""The message about the scheduler in the first line: waiting, down, back or another version."""

from __future__ import annotations

from ..monitor.reader import MonitorReader, Presence
from .number_format import clock

BACK_SECONDS = 10.0
"""How long the message "back" is shown."""


def seconds_text(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else clock(seconds)


class Banner:
    """Makes the message. It follows a reader, so that it can report a scheduler that is back."""

    def __init__(self) -> None:
        self._previous = Presence.UNKNOWN
        self._gone_since = 0.0
        self._schedulers = 0
        self._back_at = float("-inf")
        self._back_text = ""

    def update(self, reader: MonitorReader) -> None:
        """Update from the reader. Must be called each time the reader has new data."""
        if reader.presence is Presence.UP and self._previous is Presence.DOWN:
            self._back_at = reader.since
            is_new = reader.schedulers != self._schedulers
            gone = seconds_text(reader.since - self._gone_since)
            self._back_text = f"scheduler back after {gone}{', restarted' if is_new else ''}"
        if reader.presence is Presence.DOWN:
            self._gone_since = reader.since
        self._previous = reader.presence
        self._schedulers = reader.schedulers

    def text(self, reader: MonitorReader, now: float, problem: str) -> tuple[str, str]:
        """The style and the message; an empty message if all is well."""
        if reader.presence is Presence.INCOMPATIBLE:
            return "bad", reader.problem
        if reader.presence is Presence.UNKNOWN:
            waiting = f"waiting for a scheduler since {seconds_text(now - reader.since)}"
            return "bad", f"{waiting}: {problem}" if problem else waiting
        if reader.presence is Presence.DOWN:
            return "bad", f"no scheduler for {seconds_text(now - reader.since)}"
        if now - self._back_at < BACK_SECONDS:
            return "good", self._back_text
        return "", ""
