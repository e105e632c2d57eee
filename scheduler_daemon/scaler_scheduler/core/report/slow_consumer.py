"""Clients that were sent a window of results and do not say that they take them: their tasks wait, so they are told.

A client that was written without `received` would else wait for ever, and nothing would say why.
"""

from typing import Dict, Tuple

from scaler_scheduler.core import effects
from scaler_scheduler.core.dispatch.outbox import Outbox
from scaler_scheduler.core.state.operator_log import Notices
from scaler_scheduler.core.state.records import STALLED, Client
from scaler_scheduler.core.state.tables import Tables

UNRECEIVED_SECONDS = 10.0
"""How long a client says nothing of its results until it is told: one that is slow to read says it now and then."""

_TOLD = float("inf")


class Unreceived:
    def __init__(self, tables: Tables, outbox: Outbox, notices: Notices) -> None:
        self._tables = tables
        self._outbox = outbox
        self._notices = notices
        self._since: Dict[int, Tuple[int, float]] = {}
        """By client: how much it has taken, and since when no more."""

    def look(self, now: float) -> None:
        """Tell clients that wait so, once until they go on."""
        known, self._since = self._since, {}
        for client in self._tables.clients:
            if not client.pauses & STALLED or not client.waiting:
                continue
            received, since = known.get(client.incarnation, (client.received, now))
            if received != client.received and since != _TOLD:
                since = now
            if now - since >= UNRECEIVED_SECONDS:
                self._tell(client)
                since = _TOLD
            self._since[client.incarnation] = client.received, since

    def _tell(self, client: Client) -> None:
        text = (
            f"client {client.name} has said `received` of {client.received} of the {client.sent} bytes of results that "
            f"it was sent: its {client.waiting} waiting task(s) are given out when it has taken more"
        )
        self._notices.warning(text)
        self._outbox.add(effects.Notice(client.route, text))
