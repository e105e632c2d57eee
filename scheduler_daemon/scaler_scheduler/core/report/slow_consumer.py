"""Clients that were sent a window of results and do not say that they take them: their tasks wait, so they are told.

A client that was written without `received` would else wait for ever, and nothing would say why.
"""

from typing import Dict, Tuple

from scaler_scheduler.core import effects
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.state.records import PAUSE_SLOW_CONSUMER, Client

SLOW_SECONDS = 10.0
"""How long a client says nothing of its results until it is told: one that is slow to read says it now and then."""

_REPORTED = float("inf")


class SlowConsumer:
    def __init__(self, core: CoreState) -> None:
        self._tables = core.tables
        self._outbox = core.outbox
        self._operator_log = core.operator_log
        self._since: Dict[int, Tuple[int, float]] = {}
        """By client: how much it has taken, and since when no more."""

    def check(self, now: float) -> None:
        """Tell clients that wait so, once until they go on."""
        known, self._since = self._since, {}
        for client in self._tables.clients:
            if not client.pause_reasons & PAUSE_SLOW_CONSUMER or not client.waiting:
                continue
            received, since = known.get(client.incarnation, (client.received_bytes, now))
            if received != client.received_bytes and since != _REPORTED:
                since = now
            if now - since >= SLOW_SECONDS:
                self._report(client)
                since = _REPORTED
            self._since[client.incarnation] = client.received_bytes, since

    def _report(self, client: Client) -> None:
        text = (
            f"client {client.name} has said `received` of {client.received_bytes} of the {client.sent_bytes} bytes of "
            f"results that it was sent: its {client.waiting} waiting task(s) are given out when it has taken more"
        )
        self._operator_log.warning(text)
        self._outbox.add(effects.Notice(client.route, text))
