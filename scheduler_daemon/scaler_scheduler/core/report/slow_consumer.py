"""Slow consumers: clients that got a window of results and do not acknowledge them. Their tasks wait, so the client and
the operator get a message with the reason. Otherwise a client program that never sends `received` would wait for ever
without an explanation.
"""

from scaler_scheduler.core import effects
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.state.records import PAUSE_SLOW_CONSUMER, Client

SLOW_SECONDS = 10.0
"""A client that acknowledges nothing for this long gets a notice. A slow reader still acknowledges from time to
time."""

_REPORTED = float("inf")


class SlowConsumer:
    """Reports clients that do not acknowledge their results."""

    def __init__(self, core: CoreState) -> None:
        self._tables = core.tables
        self._outbox = core.outbox
        self._operator_log = core.operator_log
        self._since: dict[int, tuple[int, float]] = {}
        """By client: the acknowledged bytes, and the time of their last change."""

    def check(self, now: float) -> None:
        """Send a notice to paused clients that acknowledge nothing, once until they acknowledge again."""
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
            f"of results: its {client.waiting_calls} waiting task(s) are dispatched when it acknowledges more"
        )
        self._operator_log.client_warning(text)
        self._outbox.add(effects.Notice(client.route, text))
