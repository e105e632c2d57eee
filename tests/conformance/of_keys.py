"""Who may connect to a scheduler under test that has keys, and as what."""

from __future__ import annotations

from dataclasses import replace

import zmq
from tests.conformance.findings import Findings, must
from tests.conformance.keys import CUT, FAILURES, NOT_LET_IN, OTHER_MECHANISM, SUCCEEDED, events_of, next_event
from tests.conformance.peer import Peer
from zmq.utils import z85

from scaler_client.commands.key_files import CLIENT, MONITOR, WORKER, PeerKeys, read_peer_keys
from scaler_client.net.curve import apply_keys

HANDSHAKE_SECONDS = 10.0
SILENCE_SECONDS = 1.0


def check_keys(address: str, folder: str, findings: Findings) -> None:
    """Find out, with the folder's keys of all roles.

    Raises:
        KeyFileError: some are not there.
    """
    client, worker, monitor = (read_peer_keys(folder, role) for role in (CLIENT, WORKER, MONITOR))
    _check_handshakes(address, client, monitor, findings)
    _check_roles(address, client, worker, findings)
    with (
        findings.check("Security", "who names its own routing id gets no answer"),
        Peer(address, "client", client, routing_id=b"chosen") as peer,
    ):
        peer.hello()
        peer.say("heartbeat", sequence=1)
        must(not peer.listen(SILENCE_SECONDS), "it gets one")


def _check_handshakes(address: str, client: PeerKeys, monitor: PeerKeys, findings: Findings) -> None:
    public, secret = (z85.decode(key) for key in zmq.curve_keypair())
    other, _ = (z85.decode(key) for key in zmq.curve_keypair())
    for what, keys, wanted in (
        ("a key of its list is let in", client, SUCCEEDED),
        ("an unknown key hears 400", replace(client, public=public, secret=secret), NOT_LET_IN),
        ("a monitor's key likewise", monitor, NOT_LET_IN),
        ("who means another server is cut off", replace(client, server=other), CUT),
        ("who has no keys is cut off", None, CUT | OTHER_MECHANISM),
    ):
        with findings.check("Security", what):
            event, value = _handshake(address, keys)
            must(event & wanted, f"the handshake ends with event {event}, value {value}")
            must(event != NOT_LET_IN or value == 400, f"its status is {value}")


def _handshake(address: str, keys: PeerKeys | None) -> tuple[int, int]:
    """How the first handshake ends: event and value; zeros where it does not."""
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
        ("worker", client, "a client's key is no worker's"),
        ("agent", client, "a client's key is no agent's"),
        ("client", worker, "a worker's key is no client's"),
    ):
        with findings.check("Security", what), Peer(address, role, keys) as peer:
            peer.hello()
            must(peer.expect("refused").fields["reason"] == "notAuthorized", "it is refused for another reason")
    with Peer(address, "worker", worker, kinds=["named raw nothing"]) as able:
        able.join()
        with findings.check("Security", "a worker's key is that of its tasks' client"):
            with Peer(address, "client", worker, worker=able.incarnation) as nested:
                nested.join()
        with findings.check("Security", "a client's key is not that of a worker's tasks"):
            with Peer(address, "client", client, worker=able.incarnation) as nested:
                nested.hello()
                must(nested.expect("refused").fields["reason"] == "notAuthorized", "it is refused for another reason")
        with findings.check("Security", "an incarnation is its first key's, while it is known"):
            with (
                Peer(address, "client", worker, worker=able.incarnation) as first,
                Peer(address, "client", client) as second,
            ):
                first.join()
                second.hello(incarnation=first.incarnation)
                second.expect("refused")
                first.say("heartbeat", sequence=1)
                first.expect("heartbeatEcho")
