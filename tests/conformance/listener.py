"""The socket of the scripted scheduler: a ROUTER that peers connect to. One of them is under test."""

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
"""How long the last message, for example a `refused`, may take to be sent."""


class Gone(Exception):
    """The conversation cannot begin or continue."""


class Listener:
    """Talks to peers. It answers heartbeats and host agents itself; a conversation does the rest.

    Args:
        address: the address to bind.
        findings: takes the findings about single messages.
        keys: a folder with the server's keys; empty: no keys.
    """

    def __init__(self, address: str, findings: Findings, keys: str = "") -> None:
        self._findings = findings
        self._context = zmq.Context()
        self._guard = Guard(self._context, keys) if keys else None
        self.has_keys = bool(keys)
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
        """The route of the peer under test."""
        self._agents: dict[bytes, Received] = {}
        """The hellos of host agents, by route."""
        self._from_agents: list[tuple[bytes, Received]] = []
        self._unread: list[Received] = []
        self.beats: list[float] = []
        """The times of that peer's heartbeats."""
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
        for _ in range(500):  # ZeroMQ closes the previous socket with this address in another thread
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
        """Cut all connections. Peers reconnect."""
        self._socket.close(linger=0)
        self._wanted = self.address
        self._socket = self._bound()
        self._agents.clear()
        self._from_agents.clear()
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
        """Return the oldest unread message of this kind for which `where` is true.

        Args:
            seconds: how long to wait; None: WAIT_SECONDS.

        Raises:
            WrongError: none comes in time.
            OverError: a peer connects with a wrong key.
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
                raise WrongError(f"no such {kind} within {seconds:g} s; it sent {there}")
            self._read_for(min(0.05, deadline - time.monotonic()))

    def take(self, *kinds: str) -> list[Received]:
        """Return all unread messages of these kinds."""
        taken = [each for each in self._unread if each.kind in kinds]
        self._unread = [each for each in self._unread if each.kind not in kinds]
        return taken

    def listen(self, seconds: float) -> None:
        """Read messages for this long."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._read_for(left)

    # ----------------------------------------------------------------------------------------------------------- agents

    def agent(self, incarnation: int) -> Received | None:
        """Return the hello of a connected host agent."""
        found = (hello for hello in self._agents.values() if hello.fields["incarnation"] == incarnation)
        return next(found, None)

    def say_to_agent(self, incarnation: int, kind: str, /, *frames: bytes, **fields: Any) -> None:
        for route, hello in self._agents.items():
            if hello.fields["incarnation"] == incarnation:
                self._socket.send_multipart([route, message_of(kind, **fields), *frames])

    def expect_of_agent(self, kind: str, where: Callable[[Received], bool], seconds: float | None = None) -> Received:
        """Return the oldest unread message of this kind of a host agent for which `where` is true.

        Raises:
            WrongError: none comes in time.
        """
        seconds = WAIT_SECONDS if seconds is None else seconds
        deadline = time.monotonic() + seconds
        while True:
            for position, (_, received) in enumerate(self._from_agents):
                if received.kind == kind and where(received):
                    return self._from_agents.pop(position)[1]
            if time.monotonic() >= deadline:
                there = ", ".join(each.kind for _, each in self._from_agents[-8:]) or "nothing"
                raise WrongError(f"no such {kind} of the agent within {seconds:g} s; it sent {there}")
            self._read_for(min(0.05, deadline - time.monotonic()))

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
                    "a handshake failed: the peer seems to have keys (CURVE), and this run has none. "
                    "Give the run KEYS=DIR, or start the peer without keys; still waiting"
                )
            return
        why = self._guard.objection(failed)
        if why:
            with self._findings.check("Security", "the keys are right"):
                raise WrongError(why)
            raise OverError

    def _check_connection(self, route: bytes, user: str, hello: Received) -> None:
        with self._findings.check("Transport", "ZeroMQ chooses the routing id"):
            check_route(route)
        if self._guard is not None:
            has_its_role = False
            with self._findings.check("Security", "the key has the role of the hello"):
                self._guard.check_role(user, hello.fields["role"], hello.fields["worker"])
                has_its_role = True
            if not has_its_role:
                fields = {"protocolVersion": SCHEMA.protocolVersion, "version": "conformance"}
                refused = message_of("refused", reason="notAuthorized", text="the key has another role", **fields)
                self._socket.send_multipart([route, refused])
                raise OverError

    def _take(self, route: bytes, received: Received) -> None:
        if received.kind == "hello" and received.fields["role"] == "agent":
            self._agents[route] = received
            self._socket.send_multipart([route, message_of("welcome", **self._welcome())])
        elif route in self._agents:
            self._echo(route, received)
            if received.kind != "heartbeat":
                self._from_agents.append((route, received))
        elif received.kind == "hello":
            self.route = route
            self._unread.append(received)
        elif not self.route or route != self.route:
            # A connection without a hello, of an agent or of the peer, after `rebind`.
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
    """Check the field `scheduler` of a hello that follows a welcome."""
    with findings.check("Join", "`scheduler` in the hello names the last scheduler that accepted it"):
        must(hello.fields["scheduler"] == welcomed_as, f"scheduler is {hello.fields['scheduler']}, not {welcomed_as}")


def check_hello(hello: Received, role: str) -> None:
    """Check what holds for every hello."""
    fields = hello.fields
    must(fields["protocolVersion"] == SCHEMA.protocolVersion, f"protocolVersion is {fields['protocolVersion']}")
    must(fields["role"] == role, f"role is {fields['role']}")
    must(1 <= fields["incarnation"] < 1 << 63, f"incarnation is {fields['incarnation']}")
    names = [each["name"] for each in fields["capabilities"]]
    must(len(names) <= 64 and len(set(names)) == len(names), f"capabilities are {names}")
    must(
        all(each["amount"] >= 1 and each["name"] for each in fields["capabilities"]),
        "a capability lacks name or amount",
    )
    must(len(fields["kinds"]) <= 1024, f"{len(fields['kinds'])} kinds")
    must(all(len(kind) <= 256 for kind in fields["kinds"]), "a kind of more than 256 characters")
