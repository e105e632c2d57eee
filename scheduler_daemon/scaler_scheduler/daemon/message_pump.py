"""What comes in: drained in bounded portions, decoded and given to the core; what bad peers send costs little.

And what goes out, as who is sent something and does not read is a bad peer, too.
"""

from __future__ import annotations

import logging
from typing import Callable, List, Optional

from ..commands import logs
from ..core import effects, events
from ..core.scheduler import Scheduler
from ..net.router import Router
from ..publish.snapshots import Traffic
from ..wire.decode import decode
from ..wire.encode import Identity, encode
from ..wire.errors import WireError
from .rejection_log import RefusalLog
from .throttle import BYTES_A_MICROSECOND, MALFORMED_MICROSECONDS, STRANGER_MICROSECONDS, Muting

DRAIN_MESSAGES = 256
"""Messages taken in one step: more would let the first of them wait for its answer."""

DRAIN_BYTES = 16 << 20
"""Bytes taken in one step, for the same reason."""

DRAIN_SECONDS = 0.005
"""Time spent on them: workers could begin with what has come first, such as the first rows of a large graph."""

IGNORED_MESSAGES = 16
"""A step ends with so many messages of muted connections."""

BAD_PEER_LOG_SECONDS = 1.0
"""At most one line of a kind in this time: whoever floods the port does not flood the log."""

MALFORMED_ANSWERS = 10_000
"""Most answers to malformed messages in that time: whoever sends them and never reads does not fill the memory."""

_log = logging.getLogger(__name__)


class Intake:
    def __init__(
        self,
        router: Router,
        core: Scheduler,
        traffic: Traffic,
        identity: Identity,
        muting: Muting,
        clock: Callable[[], float],
    ) -> None:
        self.is_closed = False
        """Whether nothing more is received: the scheduler stops."""
        self.is_only_ignored = False
        """Whether the last step has found nothing but messages of muted connections."""
        self.name_of_key: Optional[Callable[[str], str]] = None
        """What the key of a user is called, where peers have keys."""
        self._router = router
        self._core = core
        self._traffic = traffic
        self._identity = identity
        self._muting = muting
        self._clock = clock
        self._next_malformed_line = self._next_muted_line = clock()
        self._malformed_unsaid = 0
        self._malformed_answers = 0
        self._refusals = RefusalLog()

    # --------------------------------------------------------------------------------------------------------------- in

    def receive(self, frames: Optional[List[bytes]], now: float) -> int:
        """Take what has arrived, up to a bound, beginning with a message that was received already, if any.

        Returns:
            The number of messages.
        """
        size = ignored = received = 0
        muted = self._muting.muted
        while received < DRAIN_MESSAGES and ignored < IGNORED_MESSAGES:
            if frames is None:
                # Not once it stops: the signal may have cut a message in two, and what is left of it is none.
                frames = None if self.is_closed or size >= DRAIN_BYTES else self._router.receive()
            if frames is None:
                break
            received += 1
            route = frames.pop(0)
            if route in muted:
                ignored += 1
            else:
                self._take(route, frames, now)
            for frame in frames:
                size += len(frame)
            frames = None
            if self._clock() - now > DRAIN_SECONDS:
                break
        self._traffic.dropped["ignored"] += ignored
        self.is_only_ignored = received == ignored > 0
        return received

    def _take(self, route: bytes, frames: List[bytes], now: float) -> None:
        try:
            event = decode(route, frames)
        except WireError as error:
            self._drop(route, frames, error, now)
            return
        self._traffic.received[event.kind] += 1
        if route in self._muting.awaited:
            if event.kind not in (events.HELLO, events.GOODBYE):
                self._waste(route, STRANGER_MICROSECONDS, now)
                self.send([effects.HelloWanted(route)])
                return
            self._muting.awaited.discard(route)
        is_known = False
        if isinstance(event, events.Hello):
            event.user = self._router.user(route)
            is_known = self._is_known(event)
        counts = self._core.counts
        vain = counts.vain_microseconds
        self._core.handle(event, now)
        refusal = self._core.refusal
        if refusal is not None:
            self._core.refusal = None
            self._tell_refusal(event, refusal, now)
        elif isinstance(event, events.Hello):
            self._tell_hello(event, is_known)
        if counts.vain_microseconds != vain:
            self._waste(route, counts.vain_microseconds - vain, now)

    def _drop(self, route: bytes, frames: List[bytes], error: WireError, now: float) -> None:
        """A malformed message is counted, logged at a limited rate and dropped, and its sender is told."""
        size = sum(map(len, frames))
        self._waste(route, MALFORMED_MICROSECONDS + size / BYTES_A_MICROSECOND, now)
        self._traffic.dropped["malformed"] += 1
        self._malformed_unsaid += 1
        if now >= self._next_malformed_line:
            self._next_malformed_line = now + BAD_PEER_LOG_SECONDS
            count = self._malformed_unsaid
            reason = logs.on_one_line(str(error))
            _log.warning("dropped %d malformed message(s), the last of %d bytes: %s", count, size, reason)
            self._malformed_unsaid = 0
            self._malformed_answers = MALFORMED_ANSWERS
        if self._malformed_answers:
            self._malformed_answers -= 1
            self.send([effects.Error(route, str(error))])

    def _is_known(self, hello: events.Hello) -> bool:
        """Until it is welcomed an agent repeats its hello, and all of them arrive together."""
        tables = self._core.tables
        peer = tables.clients.by_route.get(hello.route) or tables.agents.by_route.get(hello.route)
        return peer is not None and peer.incarnation == hello.incarnation

    def _tell_hello(self, hello: events.Hello, is_known: bool) -> None:
        level = logging.DEBUG if is_known or hello.role == events.WORKER else logging.INFO
        if _log.isEnabledFor(level):
            _log.log(level, logs.on_one_line(f"{_caller(hello)} says hello: {hello.language}, {self._origin(hello)}"))

    def _tell_refusal(self, event: events.Event, refusal: Exception, now: float) -> None:
        if isinstance(event, events.Hello):
            who = f"{_caller(event)} ({self._origin(event)})"
        else:
            who = f"a message of {self._core.name_of(event.route)}"
        self._refusals.note((event.kind, type(refusal)), who, str(refusal), now)

    def _origin(self, hello: events.Hello) -> str:
        text = f"process {hello.pid} on {hello.host}"
        if self.name_of_key is not None:
            text += f", by the key of {self.name_of_key(hello.user)}"
        return text

    # -------------------------------------------------------------------------------------------------------------- out

    def send(self, collected: List[effects.Effect]) -> None:
        sent = self._traffic.sent
        for effect in collected:
            if self._router.send(effect.route, encode(effect, self._identity)):
                sent[effect.kind] += 1
            else:
                # It reconnects with a new route and a hello; or its lease runs out.
                self._traffic.dropped["unreachable"] += 1
                self._core.undelivered(effect)

    def give_up_stuck(self, now: float) -> None:
        """Of those who do not read, and for whom so much waits that there is no room: as if they had left."""
        for route in self._router.take_stuck():
            if self._core.knows(route):
                who = logs.on_one_line(self._core.name_of(route))
                _log.warning("%s does not read what it is sent, and is given up", who)
                self._core.handle(events.Goodbye(route, ""), now)
            self._muting.mute(route, now)

    # -------------------------------------------------------------------------------------------------------- bad peers

    def tell_refusals(self, now: float) -> None:
        """Log those for which it was too early."""
        self._refusals.tell(now)

    def listen_again(self, now: float) -> None:
        """Connections whose second is over are to say hello, as after a lost connection."""
        muting, core = self._muting, self._core
        for route in muting.release(now):
            if core.knows(route):
                muting.awaited.add(route)
            self.send([effects.HelloWanted(route)])
        muting.forget_old(now, core.knows)

    def _waste(self, route: bytes, microseconds: float, now: float) -> None:
        if self._muting.spend(route, microseconds, now) and now >= self._next_muted_line:
            self._next_muted_line = now + BAD_PEER_LOG_SECONDS
            who = logs.on_one_line(self._core.name_of(route))
            _log.warning("%s wastes the scheduler's time: its messages are dropped for a second", who)


def _caller(hello: events.Hello) -> str:
    """Who it says that it is."""
    role = events.ROLE_NAMES[hello.role] if 0 <= hello.role < len(events.ROLE_NAMES) else "peer"
    return " ".join(filter(None, (role, hello.name)))
