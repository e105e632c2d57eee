"""Log lines about rejected requests: the first of a kind at once, then at most one each REJECTIONS_LOG_SECONDS."""

from __future__ import annotations

import logging
from collections.abc import Hashable

from ..commands import logs

REJECTIONS_LOG_SECONDS = 10.0
"""The least time between two lines of one kind, so that repeated requests do not fill the log."""

_log = logging.getLogger(__name__)


class _Kind:
    __slots__ = ("next_line", "peer", "reason", "unlogged")

    def __init__(self) -> None:
        self.unlogged = 0
        """Rejections since the last line."""
        self.peer = self.reason = ""
        """The peer and the reason of the last rejection."""
        self.next_line = 0.0


class RejectionLog:
    """Writes the log lines about rejected requests."""

    def __init__(self) -> None:
        self._kinds: dict[Hashable, _Kind] = {}

    def note(self, key: Hashable, peer: str, reason: str, now: float) -> None:
        """Note a rejection, and log it unless the last line of its kind is too recent.

        Args:
            key: the kind. There must be few different ones.
            peer: the name of the peer.
            reason: the reason.
            now: the time in seconds of the monotonic clock.
        """
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _Kind()
            kind.next_line = now
        kind.unlogged += 1
        kind.peer, kind.reason = peer, reason
        self._log(kind, now)

    def log_due(self, now: float) -> None:
        """Log the delayed rejections whose time has come."""
        for kind in self._kinds.values():
            self._log(kind, now)

    def _log(self, kind: _Kind, now: float) -> None:
        if not kind.unlogged or now < kind.next_line:
            return
        others = f" (and {kind.unlogged - 1} more since the last such line)" if kind.unlogged > 1 else ""
        _log.warning("%s is refused%s: %s", logs.on_one_line(kind.peer), others, logs.on_one_line(kind.reason))
        kind.unlogged = 0
        kind.next_line = now + REJECTIONS_LOG_SECONDS
