"""What is refused, for the log: of each kind one line in some seconds, the first at once."""

from __future__ import annotations

import logging
from typing import Dict, Hashable

from ..commands import logs

REJECTIONS_LOG_SECONDS = 10.0
"""At most one line of a kind in this time: whoever asks again and again does not flood the log."""

_log = logging.getLogger(__name__)


class _Kind:
    __slots__ = ("next_line", "text", "unlogged", "who")

    def __init__(self) -> None:
        self.unlogged = 0
        """Since the last line."""
        self.who = self.text = ""
        """Of the last one."""
        self.next_line = 0.0


class RejectionLog:
    def __init__(self) -> None:
        self._kinds: Dict[Hashable, _Kind] = {}

    def note(self, key: Hashable, who: str, text: str, now: float) -> None:
        """Somebody was refused something; there are few keys."""
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _Kind()
            kind.next_line = now
        kind.unlogged += 1
        kind.who, kind.text = who, text
        self._log(kind, now)

    def log_due(self, now: float) -> None:
        """Log what had to wait, where its time has come."""
        for kind in self._kinds.values():
            self._log(kind, now)

    def _log(self, kind: _Kind, now: float) -> None:
        if not kind.unlogged or now < kind.next_line:
            return
        others = f" (and {kind.unlogged - 1} more since the last such line)" if kind.unlogged > 1 else ""
        _log.warning("%s is refused%s: %s", logs.on_one_line(kind.who), others, logs.on_one_line(kind.text))
        kind.unlogged = 0
        kind.next_line = now + REJECTIONS_LOG_SECONDS
