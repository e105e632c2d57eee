"""The conversation with a worker under test."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.conformance.calls import OWN_PYTHON, Call, python_calls
from tests.conformance.findings import Findings, must
from tests.conformance.listener import Gone, Listener, check_hello
from tests.conformance.messages import Name, Received
from tests.schema_messages import SCHEMA, message_of
from tests.wire.vectors import ALL

CLIENT = 1 << 40
"""Whose tasks these are."""
QUICK, SLOW = 1, 2
"""Numbers of the functions."""
PROFILE, TELL_START = 1, 2
VALUE, EXCEPTION, FUNCTION_FAILED, RESULT_FAILED, RETRYABLE, INPUT_LOST, STORED = 0, 1, 2, 3, 4, 9, 10


@dataclass
class WorkerConversation:
    listener: Listener
    findings: Findings
    quick: Call | None = None
    """A call that returns soon; without it a function's number alone is dispatched, of a kind that the worker names."""
    slow: Call | None = None
    """One that runs until it is stopped."""
    hello: Received = field(init=False)
    next_id: int = field(init=False, default=0)

    def run(self, hello: Received) -> None:
        """Play all of it, with the worker that has said this hello."""
        self.hello = hello
        self._choose_calls()
        self._join()
        self._tasks()
        self._odd_messages()
        self._golden_messages()
        if self.slow is None:
            self.findings.leave_out("Retract, Stop", "what has begun", "no SLOW= call was named")
        else:
            self._retract_and_stop()
            self._forgotten()
        self._connection_lost()
        self._refused()

    def _choose_calls(self) -> None:
        kinds = self.hello.fields["kinds"]
        if self.quick is None and (not kinds or OWN_PYTHON in kinds):
            self.quick, self.slow = python_calls()
        if self.quick is None:
            self.quick = Call(kinds[0], b"", b"[]")

    # ------------------------------------------------------------------------------------------------------------- join

    def _join(self) -> None:
        check, listener = self.findings.check, self.listener
        with check("Join", "its hello"):
            check_hello(self.hello, "worker")
            must(not self.hello.fields["running"]["ids"], "it has just started, and names tasks that it runs")
        with check("Join", "until the welcome there is nothing but hello and heartbeats"):
            listener.listen(0.3)
            must(not listener.take("results") and not listener.take("started"), "it said more")
        listener.welcome()
        self._check_beats()
        self._announce()

    def _check_beats(self) -> None:
        with self.findings.check("Join", "a heartbeat at least three times a lease"):
            self.listener.beats.clear()
            lease = self.listener.lease_milliseconds / 1000
            self.listener.listen(lease)
            must(len(self.listener.beats) >= 2, f"{len(self.listener.beats)} in a lease of {lease:g} s")

    def _announce(self) -> None:
        for number, call in ((QUICK, self.quick), (SLOW, self.slow)):
            if call is not None:
                self.listener.say("function", call.function, number=number, name="a function", kind=call.kind)

    # ------------------------------------------------------------------------------------------------------------ tasks

    def _dispatch(self, count: int, *, function: int = QUICK, flags: int = 0, alone: bool = False) -> list[Name]:
        call = self.quick if function == QUICK else self.slow
        assert call is not None
        ids = list(range(self.next_id, self.next_id + count))
        self.next_id += count
        fields = {
            "clients": [CLIENT], "ids": ids, "attempts": [1], "functions": [function],
            "sizes": [0 if alone else len(call.payload)], "flags": [flags] if flags else [],
            "payload": b"" if alone else call.payload * count, "large": list(range(count)) if alone else [],
        }  # fmt: skip
        self.listener.say("dispatch", *([call.payload] * count if alone else []), **fields)
        return [(CLIENT, task_id, 1) for task_id in ids]

    def _results(self, names: list[Name], seconds: float | None = None) -> dict[Name, tuple[int, Received]]:
        """Outcome and message of each; all of them once, and no others."""
        answers: dict[Name, tuple[int, Received]] = {}
        while len(answers) < len(names):
            results = self.listener.expect("results", seconds)
            for name, outcome in zip(results.names(), results.column("outcomes")):
                must(name in names, f"results of {name}, which was not dispatched, or was answered, or was given back")
                must(name not in answers, f"results of {name} twice")
                allowed = (VALUE, EXCEPTION, FUNCTION_FAILED, RESULT_FAILED, RETRYABLE, INPUT_LOST, STORED)
                must(outcome in allowed, f"outcome {outcome}")
                answers[name] = outcome, results
        return answers

    def _tasks(self) -> None:
        check = self.findings.check
        with check("Submit to result", "one task: its results once, by client, id and attempt"):
            ((outcome, results),) = self._results(self._dispatch(1)).values()
            must(len(results.column("durations")) == 1, "durations are missing")
            if self.quick is not None and self.quick.function:
                must(outcome == VALUE, f"outcome {outcome}: {results.payloads()[0]!r}")
        with check("Columns and payloads", "columns of one element hold for all rows: 300 tasks, answered once each"):
            self._results(self._dispatch(300))
        with check("Columns and payloads", "payloads that travel alone, also small ones"):
            self._results(self._dispatch(3, alone=True))
        with check("Transport", "a message in many segments"):
            self._results(self._dispatch_in_segments())
        with check("Profiling", "cpuTimes and peaks of a row that asks for it"):
            (name,) = self._dispatch(1, flags=PROFILE)
            results = self._results([name])[name][1]
            must(results.column("peaks") and results.column("peaks")[0] > 0, "its peak is 0, or not there")
            must(len(results.column("cpuTimes")) == 1, "cpuTimes are missing")
        with check("Time limits", "`started` before the results of a row that asks for it"):
            (name,) = self._dispatch(1, flags=TELL_START)
            self.listener.expect("started", where=lambda started: name in started.names())
            self._results([name])

    def _dispatch_in_segments(self) -> list[Name]:
        call = self.quick
        assert call is not None
        message = SCHEMA.Message.new_message(num_first_segment_words=1)
        body = message.init("dispatch")
        body.clients, body.ids, body.attempts = [CLIENT], [self.next_id, self.next_id + 1], [1]
        body.functions, body.sizes, body.payload = [QUICK], [len(call.payload)], call.payload * 2
        self.listener.send([message.to_bytes()])
        self.next_id += 2
        return [(CLIENT, self.next_id - 2, 1), (CLIENT, self.next_id - 1, 1)]

    # ------------------------------------------------------------------------------------------------ what is odd there

    def _odd_messages(self) -> None:
        with self.findings.check("Versioning", "unknown members and messages of other roles are passed over"):
            unknown = bytearray(message_of("helloWanted"))
            unknown[16:18] = (999).to_bytes(2, "little")  # the union's tag
            for frames in ([bytes(unknown)], [message_of("credit", bytes=1)], [message_of("error", text="a test")]):
                self.listener.send(frames)
            self._results(self._dispatch(1))
        with self.findings.check("Retract", "of a task that was never here: given 0"):
            name = (CLIENT, 1 << 62, 1)
            self.listener.say("retract", clients=[CLIENT], ids=[1 << 62], attempts=[1])
            answer = self.listener.expect("retracted")
            must(answer.names() == [name] and answer.column("given") == [0], f"it answered {answer.fields}")
        with self.findings.check("Stop", "of a task that is not here: nothing"):
            self.listener.say("stop", clients=[CLIENT], ids=[1 << 62], attempts=[1])
            self._results(self._dispatch(1))

    def _golden_messages(self) -> None:
        """Every golden Dispatch without objects: whatever its functions do with such payloads, each row is answered."""
        assert self.quick is not None
        vectors = [each for each in ALL if each.message == "dispatch" and not each.fields.get("inputs")]
        for number in {number for each in vectors for number in each.fields["functions"]} - {QUICK}:
            self.listener.say("function", self.quick.function, number=number, name="golden", kind=self.quick.kind)
        for vector in vectors:
            with self.findings.check("Submit to result", f"golden message {vector.name}: each row is answered once"):
                rows = len(vector.fields["ids"])
                columns = vector.column("clients", rows), vector.fields["ids"], vector.column("attempts", rows)
                self.listener.send(vector.frames)
                self._results(list(zip(*columns)))
        numbers = {number for each in vectors for number in each.fields["functions"]} | {QUICK, SLOW}
        self.listener.say("forgetFunctions", numbers=sorted(numbers))
        self._announce()
        with self.findings.check("Functions", "of a function that was forgotten, and came again under its number"):
            self._results(self._dispatch(1))

    # --------------------------------------------------------------------------------------------------- what has begun

    def _begin(self) -> Name:
        (name,) = self._dispatch(1, function=SLOW)
        self.listener.expect("started", where=lambda started: name in started.names())
        return name

    def _stop(self, name: Name) -> None:
        self.listener.say("stop", clients=[name[0]], ids=[name[1]], attempts=[name[2]])

    def _retract_and_stop(self) -> None:
        check = self.findings.check
        slow: Name | None = None
        with check("Retract", "what is queued is given back and what runs is not; no results come of what was given"):
            slow = self._begin()
            queued = self._dispatch(3)
            asked = [slow, *queued[1:]]
            clients, ids, attempts = zip(*asked)
            self.listener.say("retract", clients=list(clients), ids=list(ids), attempts=list(attempts))
            given: dict[Name, int] = {}
            while len(given) < len(asked):
                answer = self.listener.expect("retracted")
                given.update(zip(answer.names(), answer.column("given")))
            must(given == {slow: 0, queued[1]: 1, queued[2]: 1}, f"it answered {given}")
        if slow is None:
            return
        with check("Stop", "what runs is interrupted, within 2 s; the queue goes on behind it"):
            self._stop(slow)
            self._results([slow], 2.5)
            self._results([queued[0]])
        with check("Retract", "none of what was given comes after all"):
            self.listener.listen(0.3)
            late = [name for results in self.listener.take("results") for name in results.names()]
            must(not late, f"results of {late}")

    def _forgotten(self) -> None:
        check, listener = self.findings.check, self.listener
        slow: Name | None = None
        with check("A connection is lost", "at helloWanted: the same incarnation, and what runs is named"):
            slow = self._begin()
            queued = self._dispatch(2)
            listener.say("helloWanted")
            hello = self._hello_again()
            running = hello.fields["running"]
            rows = range(len(running["ids"]))
            names = [tuple(running[field][row if len(running[field]) > 1 else 0] for field in running) for row in rows]
            must(names == [slow], f"`running` names {names}")
        listener.epoch += 1
        listener.welcome()
        self._announce()
        if slow is None:
            return
        with check("A connection is lost", "what ran goes on under its name, and the queue was dropped"):
            fresh = self._dispatch(1)
            self._stop(slow)
            self._results([slow, *fresh])
            listener.listen(0.3)
            late = [name for results in listener.take("results") for name in results.names()]
            must(not late, f"results of {late}, of {queued} that were to be dropped")

    def _hello_again(self) -> Received:
        hello = self.listener.expect("hello")
        check_hello(hello, "worker")
        must(hello.fields["incarnation"] == self.hello.fields["incarnation"], "another incarnation than before")
        return hello

    def _connection_lost(self) -> None:
        with self.findings.check("A connection is lost", "it comes again by itself, and says hello when it is asked"):
            self.listener.say("goodbye", reason="a test")
            self.listener.rebind()
            self._hello_again()
        if not self.listener.route:
            raise Gone("the worker did not come again")
        self.listener.epoch += 1
        self.listener.welcome()
        self._announce()
        with self.findings.check("A connection is lost", "it runs tasks as before"):
            self._results(self._dispatch(5))

    def _refused(self) -> None:
        with self.findings.check("What a bad peer gets", "refused: not the same hello again"):
            self.listener.say("helloWanted")
            self._hello_again()
            version = SCHEMA.protocolVersion + 1
            self.listener.say("refused", reason="protocolVersion", text="a test", protocolVersion=version, version="2")
            self.listener.listen(1.5)
            # Another process may: an agent starts one in the place of each that ends.
            again = [hello.fields["incarnation"] for hello in self.listener.take("hello")]
            must(self.hello.fields["incarnation"] not in again, "it said hello again")
