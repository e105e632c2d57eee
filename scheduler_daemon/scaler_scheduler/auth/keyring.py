"""Who may connect to the scheduler: the folder of keys, as it was read last, and what is said of who may not."""

from __future__ import annotations

import logging
import os
from typing import Callable, Dict, FrozenSet, Set

from ..commands import logs
from ..commands.key_files import MONITOR, SERVER, KeyFileError, read_pair
from ..net.router import Router
from ..net.zap import MONITOR_DOMAIN, ZapHandler
from . import authorized_keys
from .authorized_keys import AuthorizedKey

REJECTIONS_LOG_SECONDS = 10.0
"""At most one line about connections that were refused in this time, and one about messages."""

_log = logging.getLogger(__name__)


class Keyring:
    """What ZeroMQ asks, in a thread of its own: what it reads is replaced whole, never changed.

    Raises:
        KeyFileError: the folder has not what a scheduler needs; the text says what.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        _public, self.secret = read_pair(directory, SERVER)
        self._entries = authorized_keys.read(directory)
        self.allowed = _users(self._entries)
        self._revoked: Dict[str, AuthorizedKey] = {}
        """By user."""
        self._connections, self._messages = _RejectionCount(), _RejectionCount()

    def __len__(self) -> int:
        """How many keys may connect."""
        return len(self._entries)

    def warn_if_empty(self) -> None:
        """Log what to do where no key may connect."""
        if not self._entries:
            path = os.path.join(self._directory, authorized_keys.FILE_NAME)
            command = f"scaler_scheduler authorize {self._directory} PUBLICKEY --as ROLE --name NAME"
            _log.warning("%s lists nobody, so nobody can connect: %s, then SIGHUP", path, command)

    def user(self, domain: bytes, key: bytes) -> bytes:
        """Who has this public key; empty where it may not connect there."""
        entry = self._entries.get(key.hex())
        if entry is None or (entry.role == MONITOR) != (domain == MONITOR_DOMAIN):
            return b""
        return entry.user.encode()

    def name(self, user: str) -> str:
        """What its key is called in the list; empty where it is not there."""
        entry = self._entries.get(user.rpartition(":")[2])
        return "" if entry is None else entry.name

    def reload(self, cut_off: Callable[[Set[str]], int]) -> bool:
        """Take in what the folder says now, and have the users cut off who may be here no more.

        Returns:
            Whether there are some of the monitor's among them.
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
        peers = cut_off({entry.user for entry in gone}) if gone else 0
        _log.info("keys read again: %d may connect, %d connection(s) cut off", len(self), peers)
        self.warn_if_empty()
        return any(entry.role == MONITOR for entry in gone)

    def log_rejections(self, zap: ZapHandler, router: Router, now: float) -> None:
        """Log, now and then, how many connections were turned away, and how many messages of connections that are
        there were dropped. The two are counted apart, so that each line names its own last key."""
        connections = self._connections.pop(zap.rejected, now)
        if connections:
            text = logs.on_one_line(zap.last_rejection)
            _log.warning("%d connection(s) turned away; the last: %s", connections, text)
        messages = self._messages.pop(router.rejected, now)
        if messages:
            _log.warning("%d message(s) dropped; the last: %s", messages, self._why_dropped(router.last_rejected_user))

    def _why_dropped(self, user: str) -> str:
        key = user.rpartition(":")[2]
        revoked = self._revoked.get(user)
        if user.encode() in self.allowed or not user:
            return f"from the key {key or 'of nobody'}, on a connection that has chosen its own name"
        if revoked is not None:
            return f"from the key of {revoked.role} {logs.on_one_line(revoked.name)}, which was revoked ({key})"
        return f"from the key {key}, which is not authorized"


class _RejectionCount:
    """When a count of refusals is worth a line."""

    def __init__(self) -> None:
        self._logged = 0
        self._next_line = 0.0

    def pop(self, count: int, now: float) -> int:
        """How many are to be told now, of so many since the start; 0 while the last line is too young."""
        if count == self._logged or now < self._next_line:
            return 0
        new, self._logged = count - self._logged, count
        self._next_line = now + REJECTIONS_LOG_SECONDS
        return new


def _users(entries: Dict[str, AuthorizedKey]) -> FrozenSet[bytes]:
    return frozenset(entry.user.encode() for entry in entries.values())
