"""Messages in and out: the pump receives them in limited portions, decodes them for the core, and sends its effects.

Peers that send malformed or useless messages, or do not read, must cost little.
"""

from __future__ import annotations

import logging
from typing import Callable

from ..commands import logs
from ..core import effects, events
from ..core.scheduler import Scheduler
from ..net.router import Router
from ..publish.snapshots import Traffic
from ..wire.decode import decode
from ..wire.encode import Identity, encode
from ..wire.errors import WireError
from .rejection_log import RejectionLog
from .throttle import BYTES_PER_MICROSECOND, MALFORMED_MICROSECONDS, UNKNOWN_PEER_MICROSECONDS, Throttle

DRAIN_MESSAGES = 256
"""The most messages of one step. With more, the first message would wait longer for its answer."""

DRAIN_BYTES = 16 << 20
"""The most bytes of one step, for the same reason."""

DRAIN_SECONDS = 0.005
"""The longest time that one step receives. Workers can then begin with the first messages, for example the first rows
of a large graph."""

BLOCKED_MESSAGES = 16
"""A step ends after this many messages of blocked connections."""

BAD_PEER_LOG_SECONDS = 1.0
"""The least time between two log lines of one kind about bad peers, so that a flood does not fill the log."""

MALFORMED_ANSWERS = 10_000
"""The most answers to malformed messages in BAD_PEER_LOG_SECONDS, so that a sender that never reads does not fill the
memory."""

_log = logging.getLogger(__name__)


class MessagePump:
    """Moves messages between the router and the core.

    Args:
        router: the socket of all peers.
        core: handles the events, and makes the effects.
        traffic: counts the messages.
        identity: the scheduler's data in its messages.
        throttle: blocks wasteful connections.
        clock: returns the time in seconds of the monotonic clock.
    """

    def __init__(
        self,
        router: Router,
        core: Scheduler,
        traffic: Traffic,
        *,
        identity: Identity,
        throttle: Throttle,
        clock: Callable[[], float],
    ) -> None:
        self.is_closed = False
        """Whether the pump receives no more messages, because the scheduler stops."""
        self.is_only_blocked = False
        """Whether the last step received only messages of blocked connections."""
        self.key_name: Callable[[str], str] | None = None
        """Returns the name of a user's key; None: peers have no keys."""
        self._router = router
        self._core = core
        self._traffic = traffic
        self._identity = identity
        self._throttle = throttle
        self._clock = clock
        self._next_malformed_line = self._next_blocked_line = clock()
        self._malformed_unlogged = 0
        self._malformed_answers = 0
        self._rejections = RejectionLog()

    # ---------------------------------------------------------------------------------------------------------- receive

    def receive(self, frames: list[bytes] | None, now: float) -> int:
        """Receive and handle the waiting messages, up to a limit.

        Args:
            frames: a message that was received already; None: there is none.
            now: the time in seconds of the monotonic clock.

        Returns:
            The number of messages.
        """
        size = blocked_count = received = 0
        blocked = self._throttle.blocked
        while received < DRAIN_MESSAGES and blocked_count < BLOCKED_MESSAGES:
            if frames is None:
                # Not while it stops: the signal may have interrupted a receive after the first frames of a message.
                frames = None if self.is_closed or size >= DRAIN_BYTES else self._router.receive()
            if frames is None:
                break
            received += 1
            route = frames.pop(0)
            if route in blocked:
                blocked_count += 1
            else:
                self._handle(route, frames, now)
            for frame in frames:
                size += len(frame)
            frames = None
            if self._clock() - now > DRAIN_SECONDS:
                break
        self._traffic.dropped["ignored"] += blocked_count
        self.is_only_blocked = received == blocked_count > 0
        return received

    def _handle(self, route: bytes, frames: list[bytes], now: float) -> None:
        """Decode a message and give its event to the core. Charge its sender for waste."""
        try:
            event = decode(route, frames)
        except WireError as error:
            self._drop_malformed(route, frames, error, now)
            return
        self._traffic.received[event.kind] += 1
        if route in self._throttle.awaiting_hello:
            if event.kind not in (events.HELLO, events.GOODBYE):
                self._charge(route, UNKNOWN_PEER_MICROSECONDS, now)
                self.send([effects.HelloWanted(route)])
                return
            self._throttle.awaiting_hello.discard(route)
        is_known = False
        if isinstance(event, events.Hello):
            event.user = self._router.user(route)
            is_known = self._is_known(event)
        counts = self._core.counts
        wasted_us = counts.wasted_us
        self._core.handle(event, now)
        rejection = self._core.last_rejection
        if rejection is not None:
            self._core.last_rejection = None
            self._log_rejection(event, rejection, now)
        elif isinstance(event, events.Hello):
            self._log_hello(event, is_known)
        if counts.wasted_us != wasted_us:
            self._charge(route, counts.wasted_us - wasted_us, now)

    def _drop_malformed(self, route: bytes, frames: list[bytes], error: WireError, now: float) -> None:
        """Count a malformed message, log it at a limited rate, and answer its sender with an error."""
        size = sum(map(len, frames))
        self._charge(route, MALFORMED_MICROSECONDS + size / BYTES_PER_MICROSECOND, now)
        self._traffic.dropped["malformed"] += 1
        self._malformed_unlogged += 1
        if now >= self._next_malformed_line:
            self._next_malformed_line = now + BAD_PEER_LOG_SECONDS
            count = self._malformed_unlogged
            reason = logs.on_one_line(str(error))
            _log.warning("dropped %d malformed message(s), the last of %d bytes: %s", count, size, reason)
            self._malformed_unlogged = 0
            self._malformed_answers = MALFORMED_ANSWERS
        if self._malformed_answers:
            self._malformed_answers -= 1
            self.send([effects.Error(route, str(error))])

    def _is_known(self, hello: events.Hello) -> bool:
        """Whether a hello repeats an earlier one. An agent repeats its hello until the welcome arrives."""
        tables = self._core.tables
        peer = tables.clients.by_route.get(hello.route) or tables.agents.by_route.get(hello.route)
        return peer is not None and peer.incarnation == hello.incarnation

    def _log_hello(self, hello: events.Hello, is_known: bool) -> None:
        level = logging.DEBUG if is_known or hello.role == events.WORKER else logging.INFO
        if _log.isEnabledFor(level):
            _log.log(
                level, logs.on_one_line(f"{_peer_text(hello)} says hello: {hello.language}, {self._origin(hello)}")
            )

    def _log_rejection(self, event: events.Event, rejection: Exception, now: float) -> None:
        if isinstance(event, events.Hello):
            peer = f"{_peer_text(event)} ({self._origin(event)})"
        else:
            peer = f"a message of {self._core.peer_name(event.route)}"
        self._rejections.note((event.kind, type(rejection)), peer, str(rejection), now)

    def _origin(self, hello: events.Hello) -> str:
        text = f"process {hello.pid} on {hello.host}"
        if self.key_name is not None:
            text += f", by the key of {self.key_name(hello.user)}"
        return text

    # ------------------------------------------------------------------------------------------------------------- send

    def send(self, collected: list[effects.Effect]) -> None:
        """Encode and send effects. Report to the core which effects could not be sent."""
        sent = self._traffic.sent
        for effect in collected:
            if self._router.send(effect.route, encode(effect, self._identity)):
                sent[effect.kind] += 1
            else:
                # The peer reconnects with a new route and a hello, or its lease ends.
                self._traffic.dropped["unreachable"] += 1
                self._core.undelivered(effect)

    def drop_stuck_peers(self, now: float) -> None:
        """Remove the peers that do not read and have a full queue, as if they had said goodbye."""
        for route in self._router.pop_stuck():
            if self._core.has_peer(route):
                peer = logs.on_one_line(self._core.peer_name(route))
                _log.warning("%s does not read its messages and is removed", peer)
                self._core.handle(events.Goodbye(route, ""), now)
            self._throttle.block(route, now)

    # -------------------------------------------------------------------------------------------------------- bad peers

    def log_rejections(self, now: float) -> None:
        """Log the rejections whose line was delayed."""
        self._rejections.log_due(now)

    def release_blocked(self, now: float) -> None:
        """Release connections whose block is over. They must say hello, as after a lost connection."""
        throttle, core = self._throttle, self._core
        for route in throttle.release(now):
            if core.has_peer(route):
                throttle.awaiting_hello.add(route)
            self.send([effects.HelloWanted(route)])
        throttle.prune(now, core.has_peer)

    def _charge(self, route: bytes, microseconds: float, now: float) -> None:
        if self._throttle.charge(route, microseconds, now) and now >= self._next_blocked_line:
            self._next_blocked_line = now + BAD_PEER_LOG_SECONDS
            peer = logs.on_one_line(self._core.peer_name(route))
            _log.warning("%s wastes the scheduler's time: its messages are dropped for a second", peer)


def _peer_text(hello: events.Hello) -> str:
    """The role and name of a peer, as its hello states them."""
    role = events.ROLE_NAMES[hello.role] if 0 <= hello.role < len(events.ROLE_NAMES) else "peer"
    return " ".join(filter(None, (role, hello.name)))
