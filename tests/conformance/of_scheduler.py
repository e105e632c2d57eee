"""The conversations of scripted clients and workers with a scheduler under test.

The scheduler must have no other peers. The run uses its own kinds of functions, so that no task goes to other workers.
"""

from __future__ import annotations

from tests.conformance.exchange import CANCELLED, EXCEPTION, RETRYABLE, TIMED_OUT, VALUE, Exchange
from tests.conformance.findings import WrongError, must
from tests.conformance.messages import Name
from tests.conformance.of_client_files import ClientFileChecks
from tests.conformance.of_environments import EnvironmentChecks
from tests.conformance.of_keys import check_keys
from tests.conformance.of_results import ResultChecks
from tests.conformance.peer import Peer
from tests.schema_messages import SCHEMA, message_of
from tests.wire.vectors import ALL, is_for_scheduler

REPORT_START, CALLS = 2, 16


class SchedulerConversation(Exchange):
    """Checks a scheduler."""

    def run(self) -> None:
        if self.keys:
            check_keys(self.address, self.keys, self.findings)
        self._joining()
        self._bad_input()
        for talk in (
            self._tasks, self._kinds, self._cancels, self._time_limit, self._retries, self._lost_worker,
            self._rows_of_calls, self._again,
        ):  # fmt: skip
            with self.pair() as (client, worker):
                talk(client, worker)
        ResultChecks(self).run()
        ClientFileChecks(self).run()
        EnvironmentChecks(self).run()

    # ------------------------------------------------------------------------------------------------- who is accepted

    def _joining(self) -> None:
        check = self.findings.check
        with check("Join", "a peer without a hello gets helloWanted"), self.peer("client") as client:
            client.say("heartbeat", sequence=1)
            client.expect("helloWanted")
        with (
            check("Versioning", "another version is refused, both are named"),
            self.peer("client") as client,
        ):
            client.hello(protocolVersion=SCHEMA.protocolVersion + 1)
            refused = client.expect("refused").fields
            must(refused["reason"] == "protocolVersion", f"reason is {refused['reason']}")
            must(refused["protocolVersion"] == SCHEMA.protocolVersion and refused["text"], f"it says {refused}")
        for incarnation in (0, 1 << 63):
            with check("Messages", f"incarnation {incarnation} is refused"), self.peer("client") as client:
                client.hello(incarnation=incarnation)
                must(client.expect("refused").fields["reason"] == "malformedHello", "the reason is wrong")
        for role in ("client", "worker", "agent"):
            with check("Join", f"a {role} gets a welcome, and echoes of its heartbeats"), self.peer(role) as peer:
                welcome = peer.join().fields
                must(welcome["protocolVersion"] == SCHEMA.protocolVersion, f"version {welcome['protocolVersion']}")
                must(1 <= welcome["incarnation"] < 1 << 63, f"its incarnation is {welcome['incarnation']}")
                must(welcome["leaseMilliseconds"] > 0, "its lease is 0")
                must(role != "client" or welcome["credit"] > 0, "its credit is 0")
                peer.say("heartbeat", sequence=4711)
                must(peer.expect("heartbeatEcho").fields["sequence"] == 4711, "the sequence is wrong")

    def _bad_input(self) -> None:
        unknown = bytearray(message_of("helloWanted"))
        unknown[16:18] = (999).to_bytes(2, "little")  # the tag of the union
        bad = {
            "bytes that are no message": [b"garbage"],
            "no bytes": [b""],
            "an unknown member of the union": [bytes(unknown)],
            "a message that is not for a scheduler": [message_of("credit", bytes=1)],
            "a function without its frame": [message_of("function", number=9, name="f", kind="k")],
            "a submit without rows": [message_of("submit", ids=[], functions=[7], sizes=[0])],
            "ids that do not ascend": [message_of("submit", ids=[2, 1], functions=[7], sizes=[0])],
            "sizes beyond the payload": [message_of("submit", ids=[1], functions=[7], sizes=[9], payload=b"x")],
            "a column of another length": [message_of("submit", ids=[1, 2, 3], functions=[7, 7], sizes=[0])],
            "a large row without its frame": [message_of("submit", ids=[1], functions=[7], sizes=[0], large=[0])],
            "a function that was never sent": [message_of("submit", ids=[1], functions=[5], sizes=[0])],
            "a message of another role": [message_of("retracted", clients=[1], ids=[1], attempts=[1], returned=[0])],
            "an object without frames": [message_of("object", id=1)],
            "a delimiter frame": [b"", message_of("cancel", ids=[1])],
            "a function without a kind": [message_of("function", number=9, name="f"), b""],
            "force that is neither 0 nor 1": [message_of("cancel", ids=[1], force=[2])],
        }
        with self.peer("client") as client:
            client.join()
            for what, frames in bad.items():
                with self.findings.check("What a bad peer gets", f"{what}: an error and nothing else"):
                    client.send(*frames)
                    must(client.expect("error").fields["text"], "its text is empty")
                    client.say("heartbeat", sequence=1)
                    client.expect("heartbeatEcho")
            with self.findings.check("What a bad peer gets", "golden messages of a client: it keeps running"):
                for vector in ALL:
                    if is_for_scheduler(vector) and vector.message not in ("hello", "goodbye", "shutdown"):
                        client.send(*vector.frames)
                client.say("heartbeat", sequence=77)
                client.expect("heartbeatEcho", where=lambda echo: echo.fields["sequence"] == 77)

    # ------------------------------------------------------------------------------------------------------------ tasks

    def _tasks(self, client: Peer, worker: Peer) -> None:
        with self.findings.check("Submit to result", "function, dispatch, started, results, resolved"):
            self.submit(client, [10], b"argument")
            function = worker.expect("function")
            must(function.fields["kind"] == self.kind and function.frames == [b""], f"it sent {function}")
            dispatch = worker.expect("dispatch")
            must(dispatch.payloads() == [b"argument"], f"payloads are {dispatch.payloads()}")
            must(dispatch.column("functions") == [function.fields["number"]], "the function was not sent")
            (name,) = dispatch.names()
            must(name == (client.incarnation, 10, 1), f"it is dispatched as {name}")
            self.start(worker, name)
            must(client.expect("started").fields["ids"] == [10], "another task has started")
            self.finish(worker, name, payload=b"result")
            must(self.resolved(client, 10) == {10: (VALUE, b"result")}, "the outcome or payload is wrong")
        with self.findings.check("Columns and payloads", "payloads in frames of their own, both ways; many segments"):
            message = SCHEMA.Message.new_message(num_first_segment_words=1)
            body = message.init("submit")
            body.ids, body.functions, body.sizes, body.large = [11, 12], [7], [0], [0, 1]
            client.send(message.to_bytes(), b"a" * 100_000, b"")
            received: dict[int, tuple[Name, bytes]] = {}
            while len(received) < 2:
                dispatch = worker.expect("dispatch")
                received.update(zip(dispatch.fields["ids"], zip(dispatch.names(), dispatch.payloads())))
                for name in dispatch.names():
                    fields = {"outcomes": [EXCEPTION], "durations": [1], "sizes": [0], "large": [0]}
                    worker.say("results", b"alone", clients=[name[0]], ids=[name[1]], attempts=[name[2]], **fields)
            must(
                {key: value[1] for key, value in received.items()} == {11: b"a" * 100_000, 12: b""},
                "the payloads are wrong",
            )
            answers = self.resolved(client, 11, 12)
            must(set(answers.values()) == {(EXCEPTION, b"alone")}, f"they are resolved with {answers}")
        with self.findings.check("What a bad peer gets", "results of unknown tasks are ignored"):
            self.finish(worker, (client.incarnation, 10, 1), (client.incarnation, 999, 1), (1, 1, 1))
            must(not client.listen(0.3), "the client gets a message")

    def _kinds(self, client: Peer, worker: Peer) -> None:
        other = f"{self.kind} other"
        with self.findings.check("Functions", "a worker gets only kinds that it offers; other tasks wait"):
            client.say("function", b"", number=8, name="g", kind=other)
            client.say("submit", ids=[20, 21], functions=[8, 7], sizes=[0])
            self.finish(worker, self.dispatched(worker, 21)[21])
            self.resolved(client, 21)
            with self.peer("worker", kinds=[other]) as able:
                able.join()
                self.finish(able, self.dispatched(able, 20)[20])
                self.resolved(client, 20)

    def _cancels(self, client: Peer, worker: Peer) -> None:
        check = self.findings.check
        with check("Cancel", "a waiting task is resolved at once; an unknown task gets no answer"):
            running = self.begin(client, worker, 30)
            self.submit(client, [31])
            client.say("cancel", ids=[31, 999])
            must(self.resolved(client, 31) == {31: (CANCELLED, b"")}, "the outcome or payload is wrong")
        with check("Cancel", "the cancel of a running task is refused, and the task runs to its end"):
            client.say("cancel", ids=[30])
            self._give_back(worker, running, 0)
            must(client.expect("cancelRefused").fields["ids"] == [30], "another task is refused")
        with check("Stop", "a forced cancel stops the task, which is resolved as cancelled"):
            client.say("cancel", ids=[30], force=[1])
            must(running in worker.expect("stop").names(), "another task is stopped")
            self.finish(worker, running, outcome=EXCEPTION, payload=b"stopped")
            must(self.resolved(client, 30)[30][0] == CANCELLED, "the outcome or payload is wrong")

    def _give_back(self, worker: Peer, name: Name, given: int) -> None:
        """Answer a retract, if one comes. A scheduler that knows that the task runs sends none."""
        try:
            worker.expect("retract", 0.3)
        except WrongError:
            return
        worker.say("retracted", clients=[name[0]], ids=[name[1]], attempts=[name[2]], returned=[given])

    def _time_limit(self, client: Peer, worker: Peer) -> None:
        with self.findings.check("Time limits", "`started` is requested; then the task is stopped and times out"):
            self.submit(client, [40], options={"timeoutMilliseconds": 200})
            dispatch = worker.expect("dispatch")
            must(dispatch.column("flags")[0] & REPORT_START, "flag bit 1 is not set")
            (name,) = dispatch.names()
            self.start(worker, name)
            worker.expect("stop")
            self.finish(worker, name, outcome=EXCEPTION, payload=b"stopped")
            must(self.resolved(client, 40)[40][0] == TIMED_OUT, "the outcome or payload is wrong")

    def _retries(self, client: Peer, worker: Peer) -> None:
        with self.findings.check("Options", "retryable: another attempt with a higher number, at last an exception"):
            self.submit(client, [50], options={"retries": 1})
            first = self.dispatched(worker, 50)[50]
            self.finish(worker, first, outcome=RETRYABLE, payload=b"1")
            second = self.dispatched(worker, 50)[50]
            must(second[2] > first[2], f"attempt {second[2]} after {first[2]}")
            self.finish(worker, second, outcome=RETRYABLE, payload=b"2")
            must(self.resolved(client, 50) == {50: (EXCEPTION, b"2")}, "the outcome or payload is wrong")

    def _lost_worker(self, client: Peer, worker: Peer) -> None:
        with self.findings.check("A worker dies", "its tasks are dispatched again, and its later results are ignored"):
            first = self.begin(client, worker, 60)
            worker.say("goodbye", reason="a test")
            with self.peer("worker", kinds=[self.kind]) as other:
                other.join()
                second = self.dispatched(other, 60)[60]
                must(second[2] > first[2], f"attempt {second[2]} after {first[2]}")
                self.finish(worker, first, payload=b"late")
                self.finish(other, second, payload=b"right")
                must(self.resolved(client, 60) == {60: (VALUE, b"right")}, "the outcome or payload is wrong")

    def _rows_of_calls(self, client: Peer, worker: Peer) -> None:
        with self.findings.check("Rows of calls", "the worker sees the flag, and its answer reaches the client"):
            self.submit(client, [65], b"form", options={"calls": 3})
            dispatch = worker.expect("dispatch")
            (name,) = dispatch.names()
            must(dispatch.column("flags") == [CALLS], f"flags {dispatch.column('flags')}")
            must(dispatch.payloads() == [b"form"], "the payload is wrong")
            fields = {"outcomes": [VALUE], "durations": [1000], "sizes": [2], "payload": b"ab", "calls": [2]}
            worker.say("results", clients=[name[0]], ids=[name[1]], attempts=[name[2]], **fields)
            must(self.resolved(client, 65) == {65: (VALUE, b"ab")}, "the outcome or payload is wrong")

    def _again(self, client: Peer, worker: Peer) -> None:
        with self.findings.check("A connection is lost", "known rows submitted again are ignored and answered once"):
            name = self.begin(client, worker, 80)
            client.join()
            client.say("function", b"", number=7, name="f", kind=self.kind)
            self.submit(client, [80])
            client.say("heartbeat", sequence=80)  # messages of different connections have no order
            client.expect("heartbeatEcho")
            self.finish(worker, name, payload=b"once")
            must(self.resolved(client, 80) == {80: (VALUE, b"once")}, "the outcome or payload is wrong")
            more = [each for each in client.listen(0.3) if each.kind == "resolved"]
            again = [each for each in worker.listen(0.1) if each.kind == "dispatch"]
            must(not more and not again, f"further messages came: {more + again}")
        with self.findings.check("A connection is lost", "a worker that joins again keeps its running tasks"):
            name = self.begin(client, worker, 81)
            worker.hello(running=_tasks(name))
            worker.expect("welcome")
            self.finish(worker, name, payload=b"gone on")
            must(self.resolved(client, 81) == {81: (VALUE, b"gone on")}, "the outcome or payload is wrong")
        with self.findings.check("A client leaves", "its waiting tasks are dropped, and running ones are stopped"):
            name = self.begin(client, worker, 82)
            client.say("goodbye", reason="a test")
            worker.expect("stop", where=lambda stop: name in stop.names())
            self.finish(worker, name, outcome=EXCEPTION)
            must(not [each for each in worker.listen(0.3) if each.kind == "dispatch"], "another task is dispatched")


def _tasks(name: Name) -> dict[str, list[int]]:
    return {"clients": [name[0]], "ids": [name[1]], "attempts": [name[2]]}
