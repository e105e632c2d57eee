"""Slow consumers: clients that were sent a window of results and do not acknowledge them.

Their tasks wait, so the client and the operator are told why. A client program that never sends `received` would
otherwise wait for ever without a reason.
"""

from typing import Dict, Tuple

from scaler_scheduler.core import effects
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.state.records import PAUSE_SLOW_CONSUMER, Client

SLOW_SECONDS = 10.0
"""A client that acknowledges nothing for this long is told. A slow reader acknowledges now and then."""

_REPORTED = float("inf")


class SlowConsumer:
    """Reports clients that do not acknowledge their results."""

    def __init__(self, core: CoreState) -> None:
        self._tables = core.tables
        self._outbox = core.outbox
        self._operator_log = core.operator_log
        self._since: Dict[int, Tuple[int, float]] = {}
        """By client: the acknowledged bytes, and since when they have not changed."""

    def check(self, now: float) -> None:
        """Tell paused clients that acknowledge nothing, once until they go on."""
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
            f"client {client.name} has acknowledged (`received`) {client.received_bytes} of {client.sent_bytes} bytes "
            f"of results: its {client.waiting} waiting task(s) are dispatched when it acknowledges more"
        )
        self._operator_log.warning(text)
        self._outbox.add(effects.Notice(client.route, text))
