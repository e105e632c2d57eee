"""Checks how a scheduler under test handles large objects that are files of their client."""

from __future__ import annotations

from typing import Any

from tests.conformance.exchange import INPUT_LOST, Exchange
from tests.conformance.findings import must
from tests.conformance.peer import Peer

SECTION = "Files of clients"
LARGE = 1 << 20
FRAMES = [b"a" * (LARGE - 1), b"b"]
DATA = {"address": "tcp://127.0.0.1:3", "key": "", "ticket": "ticket of the client"}
WORKER_FILE = 2
"""A value of `inputSources`."""
HOST = "the host of the client"


class ClientFileChecks:
    """A client that has files, an agent on another host, and its worker."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._check = exchange.findings.check

    def run(self) -> None:
        exchange = self._exchange
        data = {"address": "tcp://127.0.0.1:4", "key": "", "ticket": "ticket of the agent"}
        with exchange.peer("client", host=HOST) as client, exchange.peer("agent", data=data) as agent:
            welcome = client.join()
            client.say("function", b"", number=7, name="f", kind=exchange.kind)
            agent.join()
            if not welcome.fields["takesFiles"]:
                return  # clients send the bytes
            with exchange.peer("worker", agent=agent.incarnation, kinds=[exchange.kind]) as worker:
                worker.join()
                self._goes_to_a_host(client, agent, worker)
                self._goes_through_the_scheduler(client, agent, worker)
                self._is_lost(client, agent)
            with exchange.peer("agent", host=HOST) as near:
                near.join()
                with exchange.peer("worker", agent=near.incarnation, kinds=[exchange.kind]) as worker:
                    worker.join()
                    self._is_linked(client, near, worker)

    def _announce(self, client: Peer, object_id: int, **fields: Any) -> None:
        client.say("object", id=object_id, fileBytes=LARGE, **fields)

    def _read(self, client: Peer, task_id: int, object_id: int) -> None:
        self._exchange.submit(client, [task_id], inputs=[object_id], inputCounts=[1])

    def _transfer(self, client: Peer, agent: Peer, object_id: int, data: dict[str, str], **answer: Any) -> None:
        """Take the order to get the file from the client, and answer it."""
        order = agent.expect("transferObjects").fields
        wanted = {"clients": [client.incarnation], "ids": [object_id], "source": client.incarnation}
        must(order == {**wanted, "bytes": [LARGE], "data": data}, f"the order is {order}")
        agent.say("transferred", **wanted, **answer)

    def _run_reader(self, client: Peer, worker: Peer, task_id: int) -> list[int]:
        """Have the worker run the task; return where its inputs are."""
        dispatch = worker.expect("dispatch")
        must(dispatch.fields["ids"] == [task_id], f"tasks {dispatch.fields['ids']} are dispatched, not {task_id}")
        self._exchange.finish(worker, *dispatch.names())
        self._exchange.resolved(client, task_id)
        sources: list[int] = dispatch.fields["inputSources"]
        return sources

    def _forget(self, client: Peer, object_id: int) -> None:
        client.say("forgetObjects", ids=[object_id])
        client.expect("forgetObjects", where=lambda forgotten: object_id in forgotten.fields["ids"])

    def _goes_to_a_host(self, client: Peer, agent: Peer, worker: Peer) -> None:
        with self._check(SECTION, "a reader: transferObjects with the data address of the client"):
            self._announce(client, 160, data=DATA)
            self._read(client, 161, 160)
            must(not [each for each in worker.listen(0.3) if each.kind == "dispatch"], "it is dispatched before")
            self._transfer(client, agent, 160, DATA)
            must(self._run_reader(client, worker, 161) == [WORKER_FILE], "inputSources are wrong")
        with self._check(SECTION, "forgetObjects to the client and to the agent when nobody needs the object"):
            self._forget(client, 160)
            agent.expect("forgetObjects", where=lambda forgotten: 160 in forgotten.fields["ids"])

    def _goes_through_the_scheduler(self, client: Peer, agent: Peer, worker: Peer) -> None:
        with self._check(SECTION, "if the transfer fails: fetchObjects to the client, and the bytes as of any object"):
            self._announce(client, 170, data=DATA)
            self._read(client, 171, 170)
            self._transfer(client, agent, 170, DATA, error="a test")
            must(client.expect("fetchObjects").fields["ids"] == [170], "it asks for another object")
            client.say("object", *FRAMES, id=170)
            must(agent.expect("object").frames == FRAMES, "the bytes are wrong")
            self._run_reader(client, worker, 171)
            self._forget(client, 170)

    def _is_lost(self, client: Peer, agent: Peer) -> None:
        with self._check(SECTION, "bytes of another size: the object is lost, and its reader gets inputLost"):
            self._announce(client, 180, data=DATA)
            self._read(client, 181, 180)
            self._transfer(client, agent, 180, DATA, error="a test")
            client.expect("fetchObjects")
            client.say("object", b"", id=180)
            must(self._exchange.resolved(client, 181)[181][0] == INPUT_LOST, "the outcome is wrong")

    def _is_linked(self, client: Peer, near: Peer, worker: Peer) -> None:
        with self._check(SECTION, "an agent with the host of the client gets transferObjects without data addresses"):
            self._announce(client, 190)
            self._read(client, 191, 190)
            self._transfer(client, near, 190, {"address": "", "key": "", "ticket": ""})
            must(self._run_reader(client, worker, 191) == [WORKER_FILE], "inputSources are wrong")
            self._forget(client, 190)
