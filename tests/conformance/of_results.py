"""Checks how a scheduler under test handles results and objects that tasks read, and files that stay on their hosts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.conformance.exchange import EXCEPTION, INPUT_LOST, KEPT, STORED, VALUE, Exchange
from tests.conformance.findings import must
from tests.conformance.messages import Name, Received
from tests.conformance.peer import Peer

KEEP_NO, KEEP_YES, KEEP_BOTH = 0, 1, 2
FROM_SCHEDULER, AGENT_FILE, WORKER_FILE = 0, 1, 2
"""Values of `inputSources`."""
MAY_STORE = 8
STORE_SMALL = 128
LARGE = 1 << 20


@dataclass
class _Host:
    """An agent with a data address, and one worker. Only this worker has the host's capability."""

    agent: Peer
    worker: Peer
    data: dict[str, str]


class ResultChecks:
    """The conversations about results."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._check = exchange.findings.check
        self._files: dict[int, int] = {}
        """The ids of the files of results that stay."""
        self._sent: dict[int, bytes] = {}
        """The objects that the worker of this conversation got."""

    def run(self) -> None:
        for talk in (self._objects, self._graph, self._earlier_open, self._earlier_ended, self._kept):
            with self._exchange.pair() as (client, worker):
                self._sent.clear()
                talk(client, worker)
        self._sent.clear()
        with self._exchange.pair() as (client, worker), self._host("one") as one, self._host("two") as two:
            self._transfers(client, worker, one, two)

    # ----------------------------------------------------------------------------------------------------------- steps

    def _submit_reader(self, client: Peer, task_id: int, *inputs: int, **fields: Any) -> None:
        self._exchange.submit(client, [task_id], inputs=list(inputs), inputCounts=[len(inputs)], **fields)

    def _inputs(self, worker: Peer, dispatch: Received) -> list[bytes]:
        """Return the bytes of the inputs of a dispatch with one row whose own payload is empty."""
        fields = dispatch.fields
        sources = fields["inputSources"] or [FROM_SCHEDULER]
        must(not any(sources), f"inputSources are {sources}, to a worker without an agent")
        inline_sizes = fields["inlineSizes"] or [0]
        inline_sizes = inline_sizes * len(fields["inputs"]) if len(inline_sizes) == 1 else inline_sizes
        (payload,), found = dispatch.payloads(), []
        for each, size in zip(fields["inputs"], inline_sizes):
            if size:
                found.append(payload[: size - 1])
                payload = payload[size - 1 :]
                continue
            if each not in self._sent:
                self._sent.update((sent.fields["id"], b"".join(sent.frames)) for sent in worker.take("object"))
            must(each in self._sent, f"object {each} did not come before the dispatch")
            found.append(self._sent[each])
        must(not payload, f"{len(payload)} bytes of the payload belong to no input")
        return found

    def _dispatch(self, worker: Peer, task_id: int, *wanted: bytes) -> Name:
        """Return the name of the task, which must be dispatched alone and with these inputs."""
        dispatch = worker.expect("dispatch")
        must(dispatch.fields["ids"] == [task_id], f"tasks {dispatch.fields['ids']} are dispatched, not {task_id}")
        found = self._inputs(worker, dispatch)
        must(found == list(wanted), f"the inputs of {task_id} are {[each[:40] for each in found]}")
        return dispatch.names()[0]

    def _run(
        self, client: Peer, worker: Peer, task_id: int, payload: bytes, answer: tuple[int, bytes] | None = None
    ) -> None:
        """Have a worker run the task without inputs that comes next, and the client get the answer."""
        exchange = self._exchange
        exchange.finish(worker, exchange.dispatched(worker, task_id)[task_id], payload=payload)
        answer = (VALUE, payload) if answer is None else answer
        must(exchange.resolved(client, task_id) == {task_id: answer}, f"the answer of {task_id} is wrong")

    def _no_dispatch(self, worker: Peer, what: str) -> None:
        must(not [each for each in worker.listen(0.3) if each.kind == "dispatch"], what)

    # ---------------------------------------------------------------------------------------------- objects and graphs

    def _objects(self, client: Peer, worker: Peer) -> None:
        exchange = self._exchange
        with self._check(
            "Objects", "objects are sent before the task that reads them, or with it, in the order of inputs"
        ):
            client.say("object", b"first", id=70)
            client.say("object", b"x" * 100_000, id=71)
            self._submit_reader(client, 72, 71, 70, 71)
            self._submit_reader(client, 73, 71)
            name = self._dispatch(worker, 72, b"x" * 100_000, b"first", b"x" * 100_000)
            exchange.finish(worker, name, payload=b"read")
            must(exchange.resolved(client, 72) == {72: (VALUE, b"read")}, "the outcome or payload is wrong")
            exchange.finish(worker, *exchange.dispatched(worker, 73).values())
            exchange.resolved(client, 73)
        with self._check("Objects", "forgetObjects frees the object at the workers that have it"):
            client.say("forgetObjects", ids=[70, 71])
            forgotten = worker.expect("forgetObjects").fields
            must(71 in forgotten["ids"] and set(forgotten["clients"]) == {client.incarnation}, f"it says {forgotten}")
        with self._check("Objects", "a row with a missing input: inputLost"):
            self._submit_reader(client, 74, 71)
            must(exchange.resolved(client, 74)[74][0] == INPUT_LOST, "the outcome is wrong")
        with self._check("What a worker does with inputs", "the outcome inputLost of a worker reaches the client"):
            client.say("object", b"first", id=75)
            self._submit_reader(client, 76, 75)
            exchange.finish(worker, *exchange.dispatched(worker, 76).values(), outcome=INPUT_LOST, payload=b"a test")
            must(exchange.resolved(client, 76) == {76: (INPUT_LOST, b"a test")}, "the outcome or payload is wrong")

    def _graph(self, client: Peer, worker: Peer) -> None:
        exchange = self._exchange
        with self._check("Graphs", "a kept result becomes an object that its readers wait for"):
            client.say("submit", ids=[80, 81], functions=[7], sizes=[0], inputs=[80], inputCounts=[0, 1], keep=[1, 0])
            (name,) = exchange.dispatched(worker, 80).values()
            self._no_dispatch(worker, "a task is dispatched before its input is there")
            exchange.finish(worker, name, payload=b"kept")
            must(exchange.resolved(client, 80) == {80: (VALUE, b"kept")}, "the client must get a small value too")
            name = self._dispatch(worker, 81, b"kept")
        with self._check("Graphs", "the result of a row without keep is no object; a failure is that of its client"):
            self._submit_reader(client, 82, 81)
            must(exchange.resolved(client, 82)[82][0] == INPUT_LOST, "it must be inputLost, as 81 was not kept")
            exchange.finish(worker, name, outcome=EXCEPTION, payload=b"error")
            must(exchange.resolved(client, 81) == {81: (EXCEPTION, b"error")}, "the outcome or payload is wrong")
        with self._check("Graphs", "a failure fails the rows that wait for it, and those that wait for them"):
            columns = {"inputs": [83, 84], "inputCounts": [0, 1, 1], "keep": [1, 1, 0]}
            client.say("submit", ids=[83, 84, 85], functions=[7], sizes=[0], **columns)
            exchange.finish(worker, *exchange.dispatched(worker, 83).values(), outcome=EXCEPTION, payload=b"error")
            answers = exchange.resolved(client, 83, 84, 85)
            must(set(answers.values()) == {(EXCEPTION, b"error")}, f"the answers are {answers}")

    # ----------------------------------------------------------------------------------------- results of earlier tasks

    def _earlier_open(self, client: Peer, worker: Peer) -> None:
        section = "Results of tasks that were submitted without `keep`"
        exchange = self._exchange
        for began in (False, True):
            with self._check(section, f"keepEarlier of an open task{' that has begun' if began else ''}"):
                first, reader = (92, 93) if began else (90, 91)
                exchange.submit(client, [first])
                (name,) = exchange.dispatched(worker, first).values()
                if began:
                    exchange.start(worker, name)
                    client.expect("started")
                self._submit_reader(client, reader, first, keepEarlier=[first])
                self._no_dispatch(worker, "a task is dispatched before its input is there")
                exchange.finish(worker, name, payload=b"value")
                must(
                    exchange.resolved(client, first) == {first: (VALUE, b"value")}, "the client must get the value too"
                )
                exchange.finish(worker, self._dispatch(worker, reader, b"value"))
                exchange.resolved(client, reader)

    def _earlier_ended(self, client: Peer, worker: Peer) -> None:
        section = "Results of tasks that were submitted without `keep`"
        exchange = self._exchange
        exchange.submit(client, [100, 101, 102, 103])
        ended = 0
        while ended < 4:  # how many come together is the scheduler's choice
            names = worker.expect("dispatch").names()
            exchange.finish(worker, *names, payload=b"value")
            ended += len(names)
        exchange.resolved(client, 100, 101, 102, 103)
        with self._check(section, "an ended task: fetchObjects to its client, and the row waits for the `object`"):
            self._submit_reader(client, 104, 100, keepEarlier=[100])
            self._fetched(client, 100)
            self._no_dispatch(worker, "a task is dispatched before its input is there")
            client.say("object", b"val", b"ue", id=100)
            exchange.finish(worker, self._dispatch(worker, 104, b"value"))
            exchange.resolved(client, 104)
        with self._check(section, "an answer by `objects`, with a payload in a frame of its own"):
            self._submit_reader(client, 105, 102, 101, keepEarlier=[101, 102])
            self._fetched(client, 101, 102)
            client.say("objects", b"y" * 70_000, ids=[101, 102], sizes=[5, 0], payload=b"value", large=[1])
            exchange.finish(worker, self._dispatch(worker, 105, b"y" * 70_000, b"value"))
            exchange.resolved(client, 105)
        with self._check(section, "an answer by forgetObjects: inputLost"):
            self._submit_reader(client, 106, 103, keepEarlier=[103])
            self._fetched(client, 103)
            client.say("forgetObjects", ids=[103])
            must(exchange.resolved(client, 106)[106][0] == INPUT_LOST, "the outcome is wrong")
        with self._check(section, "in place of an answer the row again"):
            self._submit_reader(client, 107, 103, keepEarlier=[103])
            self._fetched(client, 103)
            exchange.submit(client, [103], keep=[KEEP_YES])
            self._run(client, worker, 103, b"again")
            exchange.finish(worker, self._dispatch(worker, 107, b"again"))
            exchange.resolved(client, 107)

    def _fetched(self, client: Peer, *ids: int) -> None:
        """Take requests for these results, in any number of messages."""
        wanted: set[int] = set()
        while wanted < set(ids):
            asked = client.expect("fetchObjects").fields["ids"]
            must(set(asked) <= set(ids) - wanted, f"it asks for {asked}")
            wanted.update(asked)

    def _kept(self, client: Peer, worker: Peer) -> None:
        section, exchange = "Results that stay", self._exchange
        with self._check(section, "fetchObjects brings the value of a kept result, as often as it is asked for"):
            exchange.submit(client, [110], keep=[KEEP_YES])
            self._run(client, worker, 110, b"kept")
            exchange.submit(client, [109], keep=[KEEP_YES])
            large = b"kept" * 20_000
            self._run(client, worker, 109, large, (KEPT, len(large).to_bytes(8, "little")))
            client.say("fetchObjects", ids=[109])
            must(client.expect("object").frames == [large], "it sends something else")
            client.say("forgetObjects", ids=[109])
            for _ in range(2):
                client.say("fetchObjects", ids=[110])
                sent = client.expect("object")
                must((sent.fields["id"], sent.frames) == (110, [b"kept"]), f"it sends {sent}")
        with self._check(section, "of an open task, of another client's and of one that never was: forgetObjects"):
            exchange.submit(client, [111], keep=[KEEP_YES])
            client.say("fetchObjects", ids=[111, 999])
            forgotten = client.expect("forgetObjects").fields["ids"]
            must(sorted(forgotten) == [111, 999], f"it names {forgotten}")
            with exchange.peer("client") as other:
                other.join()
                other.say("fetchObjects", ids=[110])
                must(other.expect("forgetObjects").fields["ids"] == [110], "another client gets the value")
        with self._check("Graphs", "keep `both`: the client gets the value, and readers too"):
            exchange.finish(worker, *exchange.dispatched(worker, 111).values())
            exchange.resolved(client, 111)
            exchange.submit(client, [112], keep=[KEEP_BOTH])
            self._run(client, worker, 112, b"both")
            self._submit_reader(client, 113, 112, 110)
            exchange.finish(worker, self._dispatch(worker, 113, b"both", b"kept"))
            exchange.resolved(client, 113)
        with self._check(section, "after forgetObjects the scheduler does not have it, and open readers still read it"):
            self._submit_reader(client, 114, 110)
            client.say("forgetObjects", ids=[110, 111, 112])
            exchange.finish(worker, self._dispatch(worker, 114, b"kept"))
            exchange.resolved(client, 114)
            client.say("fetchObjects", ids=[110])
            must(client.expect("forgetObjects").fields["ids"] == [110], "it still has the result")

    # ------------------------------------------------------------------------------------------------- files on hosts

    @contextmanager
    def _host(self, name: str) -> Iterator[_Host]:
        exchange = self._exchange
        data = {"address": f"tcp://127.0.0.1:{1 + len(name)}", "key": "", "ticket": f"ticket of {name}"}
        with exchange.peer("agent", data=data, host=name) as agent:
            agent.join()
            offered = {"kinds": [exchange.kind], "capabilities": [{"name": name, "amount": 1}]}
            with exchange.peer("worker", agent=agent.incarnation, host=name, **offered) as worker:
                worker.join()
                yield _Host(agent, worker, data)

    def _store(self, client: Peer, host: _Host, task_id: int, capability: str) -> None:
        """Have a result stay on a host."""
        exchange = self._exchange
        options = {"capabilities": [{"name": capability, "amount": 1}]}
        exchange.submit(client, [task_id], keep=[KEEP_YES], options=options)
        dispatch = host.worker.expect("dispatch")
        must(dispatch.column("flags") == [MAY_STORE | STORE_SMALL], f"flags are {dispatch.column('flags')}")
        size = LARGE.to_bytes(8, "little")
        (name,) = dispatch.names()
        self._files[task_id] = task_id + (name[2] << 48)
        exchange.finish(host.worker, name, outcome=STORED, payload=size)
        answer = exchange.resolved(client, task_id)
        must(answer == {task_id: (KEPT, size + capability.encode())}, f"the answer is {answer}")

    def _read_on(self, client: Peer, task_id: int, stored: int, capability: str) -> None:
        options = {"capabilities": [{"name": capability, "amount": 1}]} if capability else {}
        self._submit_reader(client, task_id, stored, options=options)

    def _read_file(self, client: Peer, host: _Host, task_id: int, source: int) -> None:
        """Have the host's worker run the task, which reads a file of its host."""
        dispatch = host.worker.expect("dispatch")
        must(dispatch.fields["ids"] == [task_id], f"tasks {dispatch.fields['ids']} are dispatched, not {task_id}")
        must(dispatch.fields["inputSources"] == [source], f"inputSources are {dispatch.fields['inputSources']}")
        self._exchange.finish(host.worker, *dispatch.names())
        self._exchange.resolved(client, task_id)

    def _transfer(
        self, target: _Host, source: _Host, client: Peer, stored: int, error: str = "", **fields: Any
    ) -> None:
        """Take an order to get a file from the other host, and answer it."""
        order = target.agent.expect("transferObjects").fields
        file = self._files[stored]
        wanted = {"clients": [client.incarnation], "ids": [file], "source": source.agent.incarnation}
        told = {**wanted, "bytes": [LARGE], "data": source.data}
        must(order == told, f"the order is {order}")
        target.agent.say("transferred", error=error, **wanted, **fields)

    def _transfers(self, client: Peer, worker: Peer, one: _Host, two: _Host) -> None:
        section, exchange = "Results that stay on their host", self._exchange
        frames = [b"a" * (LARGE - 1), b"b"]
        with self._check(section, "a row with keep `yes` may be stored; a reader on its host gets inputSources 2"):
            self._store(client, one, 120, "one")
            self._read_on(client, 121, 120, "one")
            self._read_file(client, one, 121, WORKER_FILE)
        with self._check(
            "Data addresses", "a reader on another host: transferObjects with the address of the first one"
        ):
            self._read_on(client, 122, 120, "two")
            self._no_dispatch(two.worker, "it is dispatched before its input is there")
            self._transfer(two, one, client, 120)
            self._read_file(client, two, 122, WORKER_FILE)
        with self._check("Data addresses", "`transferred` that no order waits for is ignored"):
            told = {"clients": [client.incarnation], "ids": [999], "source": one.agent.incarnation, "error": "a test"}
            two.agent.say("transferred", **told)
            two.agent.say("transferred", **{**told, "ids": [120, 120], "source": 1})
            two.agent.say("heartbeat", sequence=1)
            two.agent.expect("heartbeatEcho")
            self._read_on(client, 123, 120, "two")
            self._read_file(client, two, 123, WORKER_FILE)
        with self._check(section, "forgetObjects of the client removes the files of both hosts"):
            client.say("forgetObjects", ids=[120])
            for host in (one, two):
                host.agent.expect("forgetObjects", where=lambda forgotten: self._files[120] in forgotten.fields["ids"])
        with self._check(section, "if a transfer fails: fetchObjects, and the bytes as of any object"):
            self._store(client, one, 130, "one")
            self._read_on(client, 131, 130, "two")
            self._transfer(two, one, client, 130, "a test", isUnreachable=True)
            self._send_file(client, one, 130, frames)
            must(two.agent.expect("object").frames == frames, "the bytes are wrong")
            self._read_file(client, two, 131, AGENT_FILE)
        with self._check(section, "a worker without an agent gets the bytes of a file in `object`"):
            self._store(client, one, 140, "one")
            exchange.submit(client, [141], inputs=[140], inputCounts=[1], options={"capabilities": []})
            # All three workers can run it, and the host of the file is preferred: its worker does not get it.
            one.worker.say("goodbye", reason="a test")
            two.worker.say("goodbye", reason="a test")
            for host in (one, two):
                for dispatch in (each for each in host.worker.listen(0.3) if each.kind == "dispatch"):
                    must(dispatch.fields["ids"] == [141], "another task is dispatched")
            self._send_file(client, one, 140, frames)
            exchange.finish(worker, self._dispatch(worker, 141, b"".join(frames)))
            exchange.resolved(client, 141)
        for host in (one, two):
            host.worker.join()
        with self._check(section, "the client gets the value of a file, with its frames"):
            self._store(client, one, 150, "one")
            client.say("fetchObjects", ids=[150])
            self._send_file(client, one, 150, frames)
            must(client.expect("object").frames == frames, "the bytes are wrong")
        with self._check("A lost result", "the client hears it, and readers get inputLost; the row may come again"):
            self._read_on(client, 151, 150, "two")
            # Not again by a transfer: these two hosts can't connect.
            asked = one.agent.expect("fetchObjects").fields
            must(asked["ids"] == [self._files[150]], f"it asks for {asked}")
            one.agent.say("forgetObjects", clients=[client.incarnation], ids=asked["ids"])
            must(client.expect("forgetObjects").fields["ids"] == [150], "another result is lost")
            must(exchange.resolved(client, 151)[151][0] == INPUT_LOST, "the outcome is wrong")
            self._store(client, two, 150, "two")
            self._read_on(client, 152, 150, "two")
            self._read_file(client, two, 152, WORKER_FILE)

    def _send_file(self, client: Peer, host: _Host, stored: int, frames: list[bytes]) -> None:
        """Take a request for the bytes of a file, and answer it."""
        asked = host.agent.expect("fetchObjects").fields
        file = self._files[stored]
        must((asked["ids"], set(asked["clients"])) == ([file], {client.incarnation}), f"it asks for {asked}")
        host.agent.say("object", *frames, client=client.incarnation, id=file)
