"""The scripted scheduler's end: a ROUTER socket that peers connect to, one of which is looked at."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import zmq
from tests.conformance.findings import Findings, OverError, WrongError, must
from tests.conformance.keys import CUT, OTHER_MECHANISM, Guard, check_route, events_of, next_event, user_of
from tests.conformance.messages import Received, read
from tests.schema_messages import SCHEMA, message_of

WAIT_SECONDS = 15.0

LEAVE_MILLISECONDS = 1000
"""How long the last message, a `refused` say, may take to go out."""


class Gone(Exception):
    """Nothing came of what the conversation can't go on without."""


class Listener:
    """Answers heartbeats by itself, and host agents altogether; the rest is the conversation's.

    Args:
        address: to be bound.
        findings: what is wrong with each message by itself is noted there.
        keys: a folder of keys, of which the server's are its own; empty: it has none.
    """

    def __init__(self, address: str, findings: Findings, keys: str = "") -> None:
        self._findings = findings
        self._context = zmq.Context()
        self._guard = Guard(self._context, keys) if keys else None
        self._wanted = address
        self._events: zmq.Socket[bytes] | None = None
        self._has_told = False
        try:
            self._socket = self._bound()
        except BaseException:
            self.close()
            raise
        self.address = str(self._socket.getsockopt_string(zmq.LAST_ENDPOINT))
        self.route = b""
        """Of the peer that is looked at."""
        self._agents: dict[bytes, int] = {}
        self._unread: list[Received] = []
        self.beats: list[float] = []
        """When heartbeats of that peer came."""
        self.lease_milliseconds = 3000
        self.epoch = 1 << 50
        """This scheduler's incarnation."""
        self.welcomed_as = 0
        """The incarnation in the last welcome."""

    def _bound(self) -> Any:
        socket = self._context.socket(zmq.ROUTER)
        socket.setsockopt(zmq.LINGER, 0)
        if self._guard is not None:
            self._guard.apply_keys(socket)
        if self._events is not None:
            self._events.close()
        self._events = events_of(socket, CUT | OTHER_MECHANISM)
        for _ in range(500):  # the one before, of the same address, is closed by another thread
            try:
                socket.bind(self._wanted)
                return socket
            except zmq.ZMQError as error:
                if error.errno != zmq.EADDRINUSE or self._wanted.endswith("*"):
                    raise
                time.sleep(0.01)
        raise Gone(f"{self._wanted} is in use")

    def close(self) -> None:
        if self._guard is not None:
            self._guard.close()
        self._context.destroy(linger=LEAVE_MILLISECONDS)

    def rebind(self) -> None:
        """Lose every connection; peers come again."""
        self._socket.close(linger=0)
        self._wanted = self.address
        self._socket = self._bound()
        self._agents.clear()
        self._unread.clear()
        self.route = b""

    # ---------------------------------------------------------------------------------------------------------- talking

    def say(self, kind: str, /, *frames: bytes, **fields: Any) -> None:
        self.send([message_of(kind, **fields), *frames])

    def send(self, frames: list[bytes]) -> None:
        self._socket.send_multipart([self.route, *frames])

    def welcome(self, **fields: Any) -> None:
        self.say("welcome", **self._welcome(), **fields)
        self.welcomed_as = self.epoch

    def _welcome(self) -> dict[str, Any]:
        return {
            "protocolVersion": SCHEMA.protocolVersion,
            "version": "conformance",
            "incarnation": self.epoch,
            "leaseMilliseconds": self.lease_milliseconds,
        }

    def expect(
        self, kind: str, seconds: float | None = None, where: Callable[[Received], bool] = lambda received: True
    ) -> Received:
        """The oldest unread message of this kind that fits.

        Raises:
            WrongError: none comes in time, of WAIT_SECONDS where no time is given.
            OverError: whoever connects has a wrong key.
        """
        seconds = WAIT_SECONDS if seconds is None else seconds
        deadline = time.monotonic() + seconds
        looked = 0
        while True:
            for position in range(looked, len(self._unread)):
                if self._unread[position].kind == kind and where(self._unread[position]):
                    return self._unread.pop(position)
            looked = len(self._unread)
            if time.monotonic() >= deadline:
                there = ", ".join(each.kind for each in self._unread[-8:]) or "nothing"
                raise WrongError(f"no such {kind} within {seconds:g} s, but {there}")
            self._read_for(min(0.05, deadline - time.monotonic()))

    def take(self, kind: str) -> list[Received]:
        """What has come of this kind, unread."""
        taken = [each for each in self._unread if each.kind == kind]
        self._unread = [each for each in self._unread if each.kind != kind]
        return taken

    def listen(self, seconds: float) -> None:
        """Take what comes in this time."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._read_for(left)

    # ---------------------------------------------------------------------------------------------------------- reading

    def _read_for(self, seconds: float) -> None:
        if self._socket.poll(max(0, round(seconds * 1000))):
            route, *parts = self._socket.recv_multipart(copy=False)
            try:
                received = read([part.bytes for part in parts])
            except WrongError as error:
                with self._findings.check("Columns and payloads", "each message is well-formed"):
                    raise error
                return
            if received.kind == "hello":
                self._check_connection(route.bytes, user_of(parts[0]), received)
            self._take(route.bytes, received)
        self._check_handshakes()

    def _check_handshakes(self) -> None:
        failed = False
        while self._events is not None and next_event(self._events, 0)[0]:
            failed = True
        if self._guard is None:
            if failed and not self._has_told:
                self._has_told = True
                self._findings.tell(
                    "a handshake fails: whoever connects has keys (CURVE), it seems, and this run has none: "
                    "give it KEYS=DIR, or the peer none; waiting on"
                )
            return
        why = self._guard.objection(failed)
        if why:
            with self._findings.check("Security", "its keys are right"):
                raise WrongError(why)
            raise OverError

    def _check_connection(self, route: bytes, user: str, hello: Received) -> None:
        with self._findings.check("Transport", "its routing id is ZeroMQ's to choose"):
            check_route(route)
        if self._guard is not None:
            has_its_role = False
            with self._findings.check("Security", "its key is its role's"):
                self._guard.check_role(user, hello.fields["role"], hello.fields["worker"])
                has_its_role = True
            if not has_its_role:
                fields = {"protocolVersion": SCHEMA.protocolVersion, "version": "conformance"}
                refused = message_of("refused", reason="notAuthorized", text="its key is another role's", **fields)
                self._socket.send_multipart([route, refused])
                raise OverError

    def _take(self, route: bytes, received: Received) -> None:
        if received.kind == "hello" and received.fields["role"] == "agent":
            self._agents[route] = received.fields["incarnation"]
            self._socket.send_multipart([route, message_of("welcome", **self._welcome())])
        elif route in self._agents:
            self._echo(route, received)
        elif received.kind == "hello":
            self.route = route
            self._unread.append(received)
        elif not self.route or route != self.route:
            # A connection that has not said who it is: of an agent's or of the peer's, after `rebind`.
            self._socket.send_multipart([route, message_of("helloWanted")])
        else:
            if received.kind == "heartbeat":
                self.beats.append(time.monotonic())
            self._echo(route, received)
            if received.kind != "heartbeat":
                self._unread.append(received)

    def _echo(self, route: bytes, received: Received) -> None:
        if received.kind == "heartbeat":
            self._socket.send_multipart([route, message_of("heartbeatEcho", sequence=received.fields["sequence"])])


def check_scheduler(findings: Findings, hello: Received, welcomed_as: int) -> None:
    """Of a hello after a welcome."""
    with findings.check("Join", "its hello names by `scheduler` whoever welcomed it last"):
        must(hello.fields["scheduler"] == welcomed_as, f"scheduler is {hello.fields['scheduler']}, not {welcomed_as}")


def check_hello(hello: Received, role: str) -> None:
    """What every hello holds."""
    fields = hello.fields
    must(fields["protocolVersion"] == SCHEMA.protocolVersion, f"protocolVersion is {fields['protocolVersion']}")
    must(fields["role"] == role, f"role is {fields['role']}")
    must(1 <= fields["incarnation"] < 1 << 63, f"incarnation is {fields['incarnation']}")
    names = [each["name"] for each in fields["capabilities"]]
    must(len(names) <= 64 and len(set(names)) == len(names), f"capabilities are {names}")
    must(all(each["amount"] >= 1 and each["name"] for each in fields["capabilities"]), "a capability of no amount")
    must(len(fields["kinds"]) <= 1024, f"{len(fields['kinds'])} kinds")
    must(all(len(kind) <= 256 for kind in fields["kinds"]), "a kind of more than 256 characters")
