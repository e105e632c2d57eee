"""The authorized keys as of the last reload, and log lines about rejected connections and messages."""

from __future__ import annotations

import logging
import os
from typing import Callable

from ..commands import logs
from ..commands.key_files import CLIENT, MONITOR, SERVER, KeyFileError, read_pair
from ..core.state.shares import NO_LIMIT, ShareLimits
from ..net.router import Router
from ..net.zap import MONITOR_DOMAIN, ZapHandler
from . import authorized_keys
from .authorized_keys import AuthorizedKey

REJECTIONS_LOG_SECONDS = 10.0
"""The log gets at most one line about rejected connections, and one about rejected messages, in this time."""

_log = logging.getLogger(__name__)


class Keyring:
    """The server's key pair and the authorized keys of a folder.

    The ZAP thread reads its attributes. They are replaced as a whole and never changed.

    Raises:
        KeyFileError: a file of the folder is missing or wrong. The text names it.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        _public, self.secret = read_pair(directory, SERVER)
        self._entries = authorized_keys.read(directory)
        self.allowed = _users(self._entries)
        self._revoked: dict[str, AuthorizedKey] = {}
        """By user."""
        self._connections, self._messages = _RejectionCount(), _RejectionCount()

    def __len__(self) -> int:
        """The number of authorized keys."""
        return len(self._entries)

    def warn_if_empty(self) -> None:
        """Log what to do if no key is authorized."""
        if not self._entries:
            path = os.path.join(self._directory, authorized_keys.FILE_NAME)
            command = f"scaler_scheduler authorize {self._directory} PUBLICKEY --as ROLE --name NAME"
            _log.warning("%s lists no key, so no peer can connect: %s, then SIGHUP", path, command)

    def user(self, domain: bytes, key: bytes) -> bytes:
        """The user of a public key; empty if the key is not authorized in this ZAP domain."""
        entry = self._entries.get(key.hex())
        if entry is None or (entry.role == MONITOR) != (domain == MONITOR_DOMAIN):
            return b""
        return entry.user.encode()

    def name(self, user: str) -> str:
        """The name of a user's key in the list; empty if it is not listed."""
        entry = self._entries.get(user.rpartition(":")[2])
        return "" if entry is None else entry.name

    def share_limits(self) -> dict[str, ShareLimits]:
        """What each client's key gets of the workers, by user."""
        return {
            entry.user: ShareLimits(
                name=entry.name,
                weight=entry.share,
                max_running=entry.max_running or NO_LIMIT,
                max_waiting=entry.max_waiting or NO_LIMIT,
            )
            for entry in self._entries.values()
            if entry.role == CLIENT
        }

    def reload(self, cut_off: Callable[[set[str]], int]) -> bool:
        """Read the list again, and cut off the users of revoked keys.

        Args:
            cut_off: ends the peers of these users, and returns their number.

        Returns:
            Whether a key with the role monitor was revoked.
        """
        before = self._entries
        try:
            self._entries = authorized_keys.read(self._directory)
        except KeyFileError as error:
            _log.error("all keys stay as they were: %s", error)
            return False
        self.allowed = _users(self._entries)
        now = {entry.user for entry in self._entries.values()}
        gone = [entry for entry in before.values() if entry.user not in now]
        for entry in gone:
            _log.warning("the key of %s %s was revoked (%s)", entry.role, entry.name, entry.key)
            self._revoked[entry.user] = entry
        for entry in self._entries.values():
            former = before.get(entry.key)
            if former is None or former.user != entry.user:
                _log.info("the key of %s %s may connect from now on (%s)", entry.role, entry.name, entry.key)
            elif former != entry:
                options = entry.options or "no options"
                _log.info("the key of %s %s has changed: %s (%s)", entry.role, entry.name, options, entry.key)
        peers = cut_off({entry.user for entry in gone}) if gone else 0
        _log.info("keys read again: %d may connect, %d connection(s) cut off", len(self), peers)
        self.warn_if_empty()
        return any(entry.role == MONITOR for entry in gone)

    def log_rejections(self, zap: ZapHandler, router: Router, now: float) -> None:
        """Log how many connections and messages were rejected, if the previous lines are old enough.

        Connections and messages are counted separately, so that each line names its own last key.
        """
        connections = self._connections.due(zap.rejected, now)
        if connections:
            text = logs.on_one_line(zap.last_rejection)
            _log.warning("%d connection(s) rejected; the last: %s", connections, text)
        messages = self._messages.due(router.rejected, now)
        if messages:
            _log.warning("%d message(s) dropped; the last: %s", messages, self._why_dropped(router.last_rejected_user))

    def _why_dropped(self, user: str) -> str:
        key = user.rpartition(":")[2]
        revoked = self._revoked.get(user)
        if user.encode() in self.allowed or not user:
            return f"from the key {key or 'that is not known'}, on a connection that has chosen its own name"
        if revoked is not None:
            return f"from the key of {revoked.role} {logs.on_one_line(revoked.name)}, which was revoked ({key})"
        return f"from the key {key}, which is not authorized"


class _RejectionCount:
    """Decides when a count of rejections is logged."""

    def __init__(self) -> None:
        self._logged = 0
        self._next_line = 0.0

    def due(self, count: int, now: float) -> int:
        """The rejections that are to be logged now; 0 while the previous line is too recent.

        Args:
            count: all rejections since the start.
            now: the time in seconds of the monotonic clock.
        """
        if count == self._logged or now < self._next_line:
            return 0
        new, self._logged = count - self._logged, count
        self._next_line = now + REJECTIONS_LOG_SECONDS
        return new


def _users(entries: dict[str, AuthorizedKey]) -> frozenset[bytes]:
    return frozenset(entry.user.encode() for entry in entries.values())
