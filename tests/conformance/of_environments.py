"""Checks how a scheduler under test handles environments: modules of a client that workers import."""

from __future__ import annotations

import json
from hashlib import sha256

from tests.conformance.exchange import Exchange
from tests.conformance.findings import must
from tests.conformance.peer import Peer

SECTION = "Environments"
MODULES_ALONE = 1
"""A `level`."""
ENVIRONMENT_FAILED = 11
"""An outcome."""
CHANGE_SECONDS = 5.0
"""An environment without a worker gets one within this time."""


class ClientEnvironment:
    """An environment with one module of this content."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.digest = sha256(content).hexdigest()
        modules = [["helpers.py", self.digest, False]]
        manifest = {"format": 1, "modules": modules, "packages": None}
        self.manifest = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
        self.name = sha256(self.manifest).hexdigest()

    def announce(self, peer: Peer, **changed: str) -> None:
        """Name it to a scheduler."""
        fields = {"name": self.name, "contents": [self.digest], "bytes": len(self.content), "level": MODULES_ALONE}
        peer.say("environment", self.manifest, **{**fields, **changed})


class EnvironmentChecks:
    """A client with an environment, an agent that prepares environments, and its workers."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._check = exchange.findings.check
        self._modules = ClientEnvironment(f"SECRET = '{exchange.kind}'".encode())

    def run(self) -> None:
        exchange = self._exchange
        with exchange.peer("agent", environments=MODULES_ALONE) as agent:
            agent.join()
            with exchange.peer("worker", agent=agent.incarnation, kinds=[exchange.kind]) as plain:
                plain.join()
                with exchange.peer("client") as client:
                    client.join()
                    self._is_prepared(client, agent)
                    self._changes_a_worker(client, agent, plain)
            with exchange.peer("worker", agent=agent.incarnation, kinds=[exchange.kind]) as plain:
                plain.join()
                with exchange.peer("client") as client:
                    client.join()
                    self._fails(client, agent)
        self._bad_names()

    def _submit(self, client: Peer, environment: ClientEnvironment, *ids: int) -> None:
        fields = {"number": 7, "name": "f", "kind": self._exchange.kind, "environment": environment.name}
        client.say("function", b"", **fields)
        self._exchange.submit(client, list(ids))

    def _is_prepared(self, client: Peer, agent: Peer) -> None:
        modules = self._modules
        with self._check(SECTION, "the scheduler asks the client for the contents that it lacks"):
            modules.announce(client)
            self._submit(client, modules, 170)
            wanted = client.expect("contentsWanted").fields["names"]
            must(wanted == [modules.digest], f"it wants {wanted}")
            client.say("contents", b"other bytes", modules.content, count=2)
        with self._check(SECTION, "an agent gets the environment with its manifest"):
            told = agent.expect("environment", CHANGE_SECONDS)
            must(told.fields["name"] == modules.name, f"it names {told.fields['name']}")
            must([bytes(frame) for frame in told.frames] == [modules.manifest], "the manifest is another one")
        with self._check(SECTION, "an agent gets the contents that it asks for"):
            agent.say("contentsWanted", names=[modules.digest])
            contents = agent.expect("contents")
            must([bytes(frame) for frame in contents.frames] == [modules.content], f"it sends {contents.frames}")
        with self._check(SECTION, "the same environment again: no contents are wanted"):
            modules.announce(client)
            client.say("heartbeat", sequence=5)
            client.expect("heartbeatEcho")
            must(not client.take("contentsWanted"), "it wants contents again")

    def _changes_a_worker(self, client: Peer, agent: Peer, plain: Peer) -> None:
        exchange, modules = self._exchange, self._modules
        with self._check(SECTION, "a prepared environment gets a worker: changeWorker names an idle one"):
            agent.say("environmentReady", name=modules.name)
            change = agent.expect("changeWorker", CHANGE_SECONDS).fields
            expected = {"worker": plain.incarnation, "environment": modules.name, "mode": 0}
            must(change == expected, f"it says {change}")
        with self._check(SECTION, "a worker without the environment does not get its tasks"):
            must(not [each for each in plain.listen(0.2) if each.kind == "dispatch"], "the task is dispatched to it")
            plain.say("goodbye", reason="a test")
        with exchange.peer(
            "worker", agent=agent.incarnation, kinds=[exchange.kind], environment=modules.name
        ) as worker:
            worker.join()
            with self._check(SECTION, "the worker of the environment gets its tasks, and no others"):
                client.say("function", b"", number=8, name="g", kind=exchange.kind)
                client.say("submit", ids=[171, 172], functions=[8, 7], sizes=[0])
                for task in (170, 172):
                    exchange.finish(worker, exchange.dispatched(worker, task)[task])
                    exchange.resolved(client, task)
                must(not [each for each in worker.listen(0.2) if each.kind == "dispatch"], "another task is dispatched")

    def _fails(self, client: Peer, agent: Peer) -> None:
        broken = ClientEnvironment(b"broken")
        with self._check(SECTION, "no agent can prepare it: its tasks are resolved with environmentFailed"):
            broken.announce(client)
            self._submit(client, broken, 180)
            client.expect("contentsWanted")
            client.say("contents", broken.content, count=1)
            agent.expect("environment", CHANGE_SECONDS, lambda told: told.fields["name"] == broken.name)
            agent.say("environmentReady", name=broken.name, error="the disk is full")
            outcome, text = self._exchange.resolved(client, 180)[180]
            must(outcome == ENVIRONMENT_FAILED, f"the outcome is {outcome}")
            must(b"the disk is full" in text, f"the text is {text!r}")

    def _bad_names(self) -> None:
        with (
            self._check(SECTION, "a name that is not the SHA-256 of the manifest: an error"),
            self._exchange.peer("client") as client,
        ):
            client.join()
            self._modules.announce(client, name="0" * 64)
            must(client.expect("error").fields["text"], "its text is empty")
