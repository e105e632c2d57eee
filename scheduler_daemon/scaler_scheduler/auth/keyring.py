"""Who may connect to the scheduler: the folder of keys, as it was read last, and what is said of who may not."""

from __future__ import annotations

import logging
import os
from typing import Callable, Dict, FrozenSet, Set

from ..commands import logs
from ..commands.key_files import MONITOR, SERVER, KeyFileError, read_pair
from ..net.zap import MONITOR_DOMAIN, Doorkeeper
from . import authorized_keys
from .authorized_keys import Entry

REFUSALS_LOG_SECONDS = 10.0
"""At most one line about connections that were refused in this time."""

_log = logging.getLogger(__name__)


class Gate:
    """What ZeroMQ asks, in a thread of its own: what it reads is replaced whole, never changed.

    Raises:
        KeyFileError: the folder has not what a scheduler needs; the text says what.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        _public, self.secret = read_pair(directory, SERVER)
        self._entries = authorized_keys.read(directory)
        self.allowed = _users(self._entries)
        self._told = 0
        self._next_line = 0.0

    def __len__(self) -> int:
        """How many keys may connect."""
        return len(self._entries)

    def warn_of_nobody(self) -> None:
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

    def read_again(self, cut_off: Callable[[Set[str]], int]) -> bool:
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
        peers = cut_off({entry.user for entry in gone}) if gone else 0
        _log.info("keys read again: %d may connect, %d connection(s) cut off", len(self), peers)
        self.warn_of_nobody()
        return any(entry.role == MONITOR for entry in gone)

    def tell_refused(self, refused: int, doorkeeper: Doorkeeper, now: float) -> None:
        """Log, now and then, that somebody was turned away; `refused` is how many so far."""
        if refused == self._told or now < self._next_line:
            return
        text = logs.on_one_line(doorkeeper.last) or "its key was revoked, or it has named its connection itself"
        _log.warning("%d time(s) somebody was turned away; the last: %s", refused - self._told, text)
        self._told = refused
        self._next_line = now + REFUSALS_LOG_SECONDS


def _users(entries: Dict[str, Entry]) -> FrozenSet[bytes]:
    return frozenset(entry.user.encode() for entry in entries.values())
