"""Checks which keys a scheduler under test accepts, and for which roles."""

from __future__ import annotations

import secrets
from dataclasses import replace

import zmq
from tests.conformance.findings import Findings, must
from tests.conformance.keys import CUT, FAILURES, OTHER_MECHANISM, REJECTED, SUCCEEDED, events_of, next_event
from tests.conformance.peer import Peer
from zmq.utils import z85

from scaler_client.commands.key_files import CLIENT, MONITOR, WORKER, PeerKeys, read_peer_keys
from scaler_client.net.curve import apply_keys

HANDSHAKE_SECONDS = 10.0
SILENCE_SECONDS = 1.0


def check_keys(address: str, folder: str, findings: Findings) -> None:
    """Check handshakes and roles with the keys of a folder.

    Raises:
        KeyFileError: the folder lacks the keys of a role.
    """
    client, worker, monitor = (read_peer_keys(folder, role) for role in (CLIENT, WORKER, MONITOR))
    _check_handshakes(address, client, monitor, findings)
    _check_roles(address, client, worker, findings)
    with (
        findings.check("Security", "a peer that sets its own routing id gets no answer"),
        Peer(address, "client", client, routing_id=b"chosen") as peer,
    ):
        peer.hello()
        peer.say("heartbeat", sequence=1)
        must(not peer.listen(SILENCE_SECONDS), "it gets an answer")


def _check_handshakes(address: str, client: PeerKeys, monitor: PeerKeys, findings: Findings) -> None:
    public, secret = (z85.decode(key) for key in zmq.curve_keypair())
    other, _ = (z85.decode(key) for key in zmq.curve_keypair())
    for what, keys, wanted in (
        ("an authorized key is accepted", client, SUCCEEDED),
        ("an unknown key gets status 400", replace(client, public=public, secret=secret), REJECTED),
        ("a monitor's key gets status 400", monitor, REJECTED),
        ("a peer with another server's key is cut", replace(client, server=other), CUT),
        ("a peer without keys is cut", None, CUT | OTHER_MECHANISM),
    ):
        with findings.check("Security", what):
            event, value = _handshake(address, keys)
            must(event & wanted, f"the handshake ends with event {event}, value {value}")
            must(event != REJECTED or value == 400, f"the status is {value}")


def _handshake(address: str, keys: PeerKeys | None) -> tuple[int, int]:
    """Return event and value of the end of the first handshake; zeros if it does not end."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        apply_keys(socket, keys)
        events = events_of(socket, SUCCEEDED | FAILURES)
        socket.connect(address)
        try:
            return next_event(events, HANDSHAKE_SECONDS)
        finally:
            socket.disable_monitor()


def _check_roles(address: str, client: PeerKeys, worker: PeerKeys, findings: Findings) -> None:
    for role, keys, what in (
        ("worker", client, "a worker with a client's key is refused"),
        ("agent", client, "an agent with a client's key is refused"),
        ("client", worker, "a client with a worker's key is refused"),
    ):
        with findings.check("Security", what), Peer(address, role, keys) as peer:
            peer.hello()
            must(peer.expect("refused").fields["reason"] == "notAuthorized", "the reason is wrong")
    kind = f"named raw conformance {secrets.randbits(60):x}"
    with Peer(address, "client", client) as parent, Peer(address, "worker", worker, kinds=[kind]) as able:
        parent.join()
        able.join()
        with findings.check("Security", "a nested client of a worker without tasks waits"):
            with Peer(address, "client", worker, worker=able.incarnation) as nested:
                nested.hello()
                must(not nested.listen(SILENCE_SECONDS), "it gets an answer")
        with findings.check("Security", "a nested client of no worker gets an error"):
            with Peer(address, "client", worker, worker=able.incarnation + 1) as nested:
                nested.hello()
                nested.expect("error")
        parent.say("function", b"", number=7, name="f", kind=kind)
        parent.say("submit", ids=[1], functions=[7], sizes=[0])
        able.expect("dispatch")
        with findings.check("Security", "the nested client of a worker uses the worker's key"):
            with Peer(address, "client", worker, worker=able.incarnation) as nested:
                nested.join()
        with findings.check("Security", "a nested client with a client's key is refused"):
            with Peer(address, "client", client, worker=able.incarnation) as nested:
                nested.hello()
                must(nested.expect("refused").fields["reason"] == "notAuthorized", "the reason is wrong")
        with findings.check("Security", "a known incarnation belongs to its first key"):
            with (
                Peer(address, "client", worker, worker=able.incarnation) as first,
                Peer(address, "client", client) as second,
            ):
                first.join()
                second.hello(incarnation=first.incarnation)
                second.expect("refused")
                first.say("heartbeat", sequence=1)
                first.expect("heartbeatEcho")
