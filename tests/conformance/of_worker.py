"""The conversation with a worker under test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.conformance.calls import OWN_PYTHON, Call, python_calls, with_input
from tests.conformance.findings import Findings, WrongError, must
from tests.conformance.listener import Gone, Listener, check_hello, check_scheduler
from tests.conformance.messages import Name, Received
from tests.conformance.of_agent import AgentConversation
from tests.schema_messages import SCHEMA, message_of
from tests.wire.vectors import ALL

CLIENT = 1 << 40
"""The incarnation of the tasks' client."""
NEVER: Name = (CLIENT, 1 << 62, 1)
"""A task that is never dispatched."""
QUICK, SLOW = 1, 2
"""The numbers of the functions."""
IN_MESSAGE, AGENT_FILE, WORKER_FILE = 0, 1, 2
"""Values of `inputSources`."""
FIRST_OBJECT = 1 << 40
LARGE_BYTES = 300_000
PROFILE, REPORT_START = 1, 2
OUTCOMES = {
    0: "value", 1: "exception", 2: "functionFailed", 3: "resultFailed", 4: "retryable", 9: "inputLost", 10: "stored",
}  # fmt: skip
"""The outcomes that a worker may send."""
VALUE, RESULT_FAILED, INPUT_LOST = 0, 3, 9
FAILURES = (1, 2, 4)
"""The outcomes with texts, for functions by name."""


class Answer(NamedTuple):
    outcome: int
    payload: bytes
    results: Received

    def __str__(self) -> str:
        text = self.payload.decode("utf-8", "backslashreplace")
        return f"{OUTCOMES[self.outcome]}, {text[:200]!r}"


@dataclass
class WorkerConversation:
    listener: Listener
    findings: Findings
    quick: Call | None = None
    """A call that returns soon. None: a function of a kind that the worker offers, without arguments."""
    slow: Call | None = None
    """A call that runs until it is stopped."""
    hello: Received = field(init=False)
    next_id: int = field(init=False, default=0)
    dispatched: set[Name] = field(init=False, default_factory=set)
    answers: dict[Name, Answer] = field(init=False, default_factory=dict)
    """Answers by task, also of tasks that no check waits for."""
    finished: set[Name] = field(init=False, default_factory=set)
    """Tasks that a hello has named as ended: their results come once more."""
    twice: set[Name] = field(init=False, default_factory=set)
    no_text: list[str] = field(init=False, default_factory=list)
    """Texts that are not valid UTF-8."""
    call_was_named: bool = field(init=False, default=False)
    plain: Answer | None = field(init=False, default=None)
    """The answer of the first call."""

    def run(self, hello: Received) -> None:
        """Run the whole conversation with the worker of this hello."""
        self.hello = hello
        self._choose_calls()
        try:
            self._play()
        finally:
            self._all_answers()

    def _play(self) -> None:
        self._join()
        self._tasks()
        self._inputs()
        self._odd_messages()
        self._golden_messages()
        if self.slow is None:
            self.findings.leave_out("Retract, Stop", "tasks that run", "no SLOW= call was given")
        else:
            slow = self._runs_on()
            if slow is None:
                self.findings.leave_out("Retract, Stop", "tasks that run", "no `started` came for SLOW=, or it ended")
            elif self._retract_and_stop(slow):
                self._forgotten()
            else:
                self.findings.leave_out("A connection is lost", "all that follows", "the running task was not stopped")
                return
        self._connection_lost()
        self._refused()

    def _choose_calls(self) -> None:
        kinds = self.hello.fields["kinds"]
        self.call_was_named = self.quick is not None
        if self.quick is None and (not kinds or OWN_PYTHON in kinds):
            self.quick, self.slow = python_calls()
            self.call_was_named = True
        if self.quick is None:
            self.quick = Call(kinds[0], b"", b"[]")

    # ------------------------------------------------------------------------------------------------------------- join

    def _join(self) -> None:
        check, listener = self.findings.check, self.listener
        with check("Join", "the hello"):
            check_hello(self.hello, "worker")
            must(not self.hello.fields["running"]["ids"], "it has just started but names running tasks")
        with check("Join", "before the welcome it sends only hello and heartbeats"):
            listener.listen(0.3)
            must(not listener.take("results") and not listener.take("started"), "it sent more")
        listener.welcome()
        self._check_beats()
        self._announce()

    def _check_beats(self) -> None:
        with self.findings.check("Join", "at least three heartbeats per lease"):
            self.listener.beats.clear()
            lease = self.listener.lease_milliseconds / 1000
            self.listener.listen(lease)
            must(len(self.listener.beats) >= 2, f"{len(self.listener.beats)} heartbeats in a lease of {lease:g} s")

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
        return self._given([(CLIENT, task_id, 1) for task_id in ids])

    def _given(self, names: list[Name]) -> list[Name]:
        """Record these tasks as dispatched. Golden messages use some names again."""
        self.dispatched.update(names)
        for name in names:
            self.answers.pop(name, None)
        return names

    def _results(self, names: list[Name], seconds: float | None = None) -> list[Answer]:
        """Return the answer of each task. Answers of other tasks are kept."""
        while not self.answers.keys() >= set(names):
            self._take(self.listener.expect("results", seconds), names)
        return [self.answers[name] for name in names]

    def _take_what_came(self) -> None:
        for results in self.listener.take("results"):
            self._take(results, [])

    def _take(self, results: Received, wanted: list[Name]) -> None:
        for texts in ("errors", "tracebacks"):
            if not _is_utf8(results.fields[texts]):
                self.no_text.append(f"{texts}, {results.fields[texts][:200]!r}")
        calls = results.column("calls")
        must(not any(calls), f"calls is {calls[:20]}, but no row stands for several calls")
        for name, outcome, payload in zip(results.names(), results.column("outcomes"), results.payloads()):
            if name not in self.dispatched:  # only tasks of earlier checks may still be answered
                earlier = {each[:2] for each in self.dispatched} - {each[:2] for each in wanted}
                must(name[:2] in earlier, f"results of {name}, which was not dispatched")
                continue
            must(outcome in OUTCOMES, f"outcome {outcome}")
            if name in self.answers:
                if name not in self.finished:  # after such a hello it answers once more
                    self.twice.add(name)
                continue
            self.answers[name] = Answer(outcome, payload, results)
            if self._is_text(outcome) and not _is_utf8(payload):
                self.no_text.append(f"{name}: {OUTCOMES[outcome]}, {payload[:200]!r}")

    def _is_text(self, outcome: int) -> bool:
        is_named = self.quick is not None and self.quick.kind.startswith("named ")
        return outcome in (RESULT_FAILED, INPUT_LOST) or (is_named and outcome in FAILURES)

    def _all_answers(self) -> None:
        """Check mistakes that show only at the end. Repetitions of a mistake count once."""
        with self.findings.check("Submit to result", "each task is answered once"):
            self.listener.listen(0.1)
            self._take_what_came()
            must(not self.twice, f"{len(self.twice)} tasks are answered twice, for example {sorted(self.twice)[:5]}")
        with self.findings.check("Kinds of functions", "texts of failures are UTF-8"):
            must(not self.no_text, "; ".join(self.no_text[:5]))

    def _check_call(self, answer: Answer) -> None:
        """Check that a call succeeds: otherwise a worker that runs nothing would pass."""
        what = f"CALL= returns: {answer}"
        if self.call_was_named or answer.outcome == VALUE:
            with self.findings.check("Submit to result", what):
                must(answer.outcome == VALUE, "the outcome must be `value`")
        else:
            self.findings.leave_out("Submit to result", what, "no CALL= was given, so it was called without arguments")

    def _tasks(self) -> None:
        check = self.findings.check
        answer: Answer | None = None
        with check("Submit to result", "one task: one answer, with client, id and attempt"):
            (answer,) = self._results(self._dispatch(1))
            must(answer.results.column("durations"), "durations are missing")
        if answer is not None:
            self.plain = answer
            self._check_call(answer)
        with check("Columns and payloads", "constant columns: 300 tasks, each answered once"):
            self._results(self._dispatch(300))
        with check("Columns and payloads", "payloads in frames of their own, also small ones"):
            self._results(self._dispatch(3, alone=True))
        with check("Transport", "a message in many segments"):
            self._results(self._dispatch_in_segments())
        with check("Profiling", "cpuTimes and peaks of a profiled row"):
            (name,) = self._dispatch(1, flags=PROFILE)
            results = self._results([name])[0].results
            row = results.names().index(name)
            must(results.column("peaks") and results.column("peaks")[row] > 0, "its peak is 0 or missing")
            must(results.column("cpuTimes"), "cpuTimes are missing")
        with check("Time limits", "`started` before the results, if the row requests it"):
            (name,) = self._dispatch(1, flags=REPORT_START)
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
        return self._given([(CLIENT, self.next_id - 2, 1), (CLIENT, self.next_id - 1, 1)])

    # ----------------------------------------------------------------------------------------------------------- inputs

    def _inputs(self) -> None:
        """Pass the last argument of CALL= as an input, in each way. The result must be that of the plain call."""
        assert self.quick is not None
        section = "What a worker does with inputs"
        check, listener = self.findings.check, self.listener
        halves = with_input(self.quick)
        if halves is None or self.plain is None or self.plain.outcome != VALUE:
            self.findings.leave_out(section, "tasks that read results", "CALL= has no argument, or no value")
            return
        payload, content = halves
        with check(section, "bytes behind the row's own payload (inlineSizes)"):
            sizes, sources = [1 + len(content)], [IN_MESSAGE]
            self._same(self._dispatch_reader(payload + content, [NEVER[1]], sources, inlineSizes=sizes))
        with check(section, "an `object`, which several rows read"):
            listener.say("object", content, b"", client=CLIENT, id=FIRST_OBJECT, name="an object")
            for _ in range(2):
                self._same(self._dispatch_reader(payload, [FIRST_OBJECT], [IN_MESSAGE]))
        with check(section, "two rows of one dispatch, of which the second has inputs"):
            self._same_of_two_rows(payload, content)
        with check(section, "an input that was never sent, or that was forgotten: inputLost, and later tasks run"):
            listener.say("forgetObjects", clients=[CLIENT], ids=[FIRST_OBJECT])
            for each in (FIRST_OBJECT, FIRST_OBJECT + 1):
                answer = self._results(self._dispatch_reader(payload, [each], [IN_MESSAGE]))[0]
                must(answer.outcome == INPUT_LOST, f"the answer is {answer}")
            self._results(self._dispatch(1))
        agent = listener.agent(self.hello.fields["agent"])
        if agent is not None:
            self._files(agent, payload, content)

    def _dispatch_reader(self, payload: bytes, inputs: list[int], sources: list[int], **fields: Any) -> list[Name]:
        """Dispatch one row with inputs."""
        columns = {"clients": [CLIENT], "ids": [self.next_id], "attempts": [1], "functions": [QUICK]}
        rows = {"inputs": inputs, "inputCounts": [len(inputs)], "inputSources": sources}
        self.listener.say("dispatch", **columns, **rows, sizes=[len(payload)], payload=payload, **fields)
        self.next_id += 1
        return self._given([(CLIENT, self.next_id - 1, 1)])

    def _same_of_two_rows(self, payload: bytes, content: bytes) -> None:
        assert self.quick is not None
        plain = self.quick.payload
        ids = [self.next_id, self.next_id + 1]
        self.next_id += 2
        columns = {"clients": [CLIENT], "ids": ids, "attempts": [1], "functions": [QUICK]}
        rows = {"inputs": [NEVER[1]], "inputCounts": [0, 1], "inputSources": [0], "inlineSizes": [1 + len(content)]}
        sizes = [len(plain), len(payload) + len(content)]
        self.listener.say("dispatch", **columns, **rows, sizes=sizes, payload=plain + payload + content)
        self._same(self._given([(CLIENT, each, 1) for each in ids]))

    def _same(self, names: list[Name]) -> None:
        """Check that the results of these tasks are those of the plain call."""
        assert self.plain is not None
        for answer in self._results(names):
            same = (answer.outcome, answer.payload) == (VALUE, self.plain.payload)
            must(same, f"the answer is {answer}, that of the plain call {self.plain}")

    def _files(self, agent: Received, payload: bytes, content: bytes) -> None:
        """Check files of the agent, if blanks at the end do not change the input."""
        assert self.quick is not None
        can_pad = not self.quick.kind.startswith("named raw")
        if can_pad:
            with self.findings.check("Objects", "a file that the agent makes of a large `object` (inputSources 1)"):
                incarnation = agent.fields["incarnation"]
                frame = content.ljust(LARGE_BYTES)
                self.listener.say_to_agent(
                    incarnation, "object", frame, client=CLIENT, id=FIRST_OBJECT + 2, name="a file"
                )
                self._same(self._dispatch_reader(payload, [FIRST_OBJECT + 2], [AGENT_FILE]))
        if not agent.fields["data"]["address"]:
            self.findings.leave_out(
                "Data addresses", "files that go from host to host", "the agent has no data address"
            )
            return

        def reads(stored: int) -> None:
            self._same(self._dispatch_reader(payload, [stored], [WORKER_FILE]))

        AgentConversation(self.listener, self.findings, agent, reads if can_pad else None, content).run()

    # ------------------------------------------------------------------------------------------------ what is odd there

    def _odd_messages(self) -> None:
        with self.findings.check("Versioning", "unknown messages and messages of other roles are ignored"):
            unknown = bytearray(message_of("helloWanted"))
            unknown[16:18] = (999).to_bytes(2, "little")  # the tag of the union
            for frames in ([bytes(unknown)], [message_of("credit", bytes=1)], [message_of("error", text="a test")]):
                self.listener.send(frames)
            self._results(self._dispatch(1))
        with self.findings.check("Retract", "a task that was never here: returned 0"):
            self.listener.say("retract", clients=[NEVER[0]], ids=[NEVER[1]], attempts=[NEVER[2]])
            answer = self.listener.expect("retracted")
            must(answer.names() == [NEVER] and answer.column("returned") == [0], f"it answered {answer.fields}")
        with self.findings.check("Stop", "a task that is not here: no answer"):
            self.listener.say("stop", clients=[CLIENT], ids=[1 << 62], attempts=[1])
            self._results(self._dispatch(1))

    def _golden_messages(self) -> None:
        """Send every golden Dispatch without objects and rows of calls, whose form the kit does not know.

        Each row must be answered, with any outcome.
        """
        assert self.quick is not None
        vectors = [
            each
            for each in ALL
            if each.message == "dispatch" and not each.fields.get("inputs") and each.name != "dispatch-calls"
        ]
        for number in {number for each in vectors for number in each.fields["functions"]} - {QUICK}:
            self.listener.say("function", self.quick.function, number=number, name="golden", kind=self.quick.kind)
        for vector in vectors:
            with self.findings.check("Submit to result", f"golden message {vector.name}: each row is answered once"):
                rows = len(vector.fields["ids"])
                columns = vector.column("clients", rows), vector.fields["ids"], vector.column("attempts", rows)
                self.listener.send(vector.frames)
                self._results(self._given(list(zip(*columns))))
        numbers = {number for each in vectors for number in each.fields["functions"]} | {QUICK, SLOW}
        self.listener.say("forgetFunctions", numbers=sorted(numbers))
        self._announce()
        with self.findings.check("Functions", "a function that was forgotten and sent again with its number"):
            self._results(self._dispatch(1))

    # --------------------------------------------------------------------------------------------------- what has begun

    def _begin(self) -> Name:
        (name,) = self._dispatch(1, function=SLOW)
        try:
            self.listener.expect("started", where=lambda started: name in started.names())
        except WrongError as error:
            self._take_what_came()
            if name in self.answers:
                raise WrongError(f"no started of SLOW=, but results at once: {self.answers[name]}") from None
            self._stop(name)  # later tasks would wait behind it
            raise error
        return name

    def _runs_on(self) -> Name | None:
        """Return a running task of SLOW=; None: there is none."""
        with self.findings.check("Limits and times", "`started` of a task that runs for more than 10 ms"):
            name = self._begin()
            self.listener.listen(0.2)
            self._take_what_came()
            must(name not in self.answers, f"SLOW= ends before it is stopped: {self.answers.get(name)}")
            return name
        return None

    def _stop(self, name: Name) -> None:
        self.listener.say("stop", clients=[name[0]], ids=[name[1]], attempts=[name[2]])

    def _retract_and_stop(self, slow: Name) -> bool:
        """Return whether the running task was stopped."""
        check = self.findings.check
        queued = self._dispatch(3)
        given: dict[Name, int] = {}
        with check("Retract", "queued tasks are returned, a running task is not"):
            asked = [slow, *queued[1:]]
            clients, ids, attempts = zip(*asked)
            self.listener.say("retract", clients=list(clients), ids=list(ids), attempts=list(attempts))
            while len(given) < len(asked):
                answer = self.listener.expect("retracted")
                given.update(zip(answer.names(), answer.column("returned")))
                given.pop(NEVER, None)
            must(given == {slow: 0, queued[1]: 1, queued[2]: 1}, f"it answered {given}")
        with check("Stop", "a running task is interrupted within 2 s; queued tasks run next"):
            self._stop(slow)
            self._results([slow], 2.5)
            self._results(queued[:1])
        with check("Retract", "no results come of returned tasks"):
            self._none_of([name for name in queued if given.get(name)])
        return slow in self.answers

    def _none_of(self, names: list[Name]) -> None:
        self.listener.listen(0.3)
        self._take_what_came()
        late = [name for name in names if name in self.answers]
        must(not late, f"results of {late}")

    def _forgotten(self) -> None:
        check, listener = self.findings.check, self.listener
        slow: Name | None = None
        with check("A connection is lost", "after helloWanted: the same incarnation, and running tasks are named"):
            slow = self._begin()
            queued = self._dispatch(2)
            listener.say("helloWanted")
            hello = self._hello_again()
            named = _named(hello)
            names = named[: len(named) - hello.fields["finished"]]
            must(names == [slow], f"`running` names {names}")
        listener.epoch += 1
        listener.welcome()
        self._announce()
        if slow is None:
            return
        with check("A connection is lost", "running tasks continue under their names, queued ones are dropped"):
            fresh = self._dispatch(1)
            self._stop(slow)
            self._results([slow, *fresh])
            self._none_of(queued)

    def _hello_again(self) -> Received:
        hello = self.listener.expect("hello")
        check_hello(hello, "worker")
        must(hello.fields["incarnation"] == self.hello.fields["incarnation"], "its incarnation has changed")
        named = _named(hello)
        self.finished.update(named[len(named) - hello.fields["finished"] :])
        return hello

    def _connection_lost(self) -> None:
        hello: Received | None = None
        with self.findings.check("A connection is lost", "it reconnects by itself, and sends a hello when asked"):
            self.listener.say("goodbye", reason="a test")
            self.listener.rebind()
            hello = self._hello_again()
        if not self.listener.route:
            raise Gone("the worker did not come again")
        if hello is not None:
            check_scheduler(self.findings, hello, self.listener.welcomed_as)
        self.listener.epoch += 1
        self.listener.welcome()
        self._announce()
        with self.findings.check("A connection is lost", "it runs tasks again"):
            self._results(self._dispatch(5))

    def _refused(self) -> None:
        with self.findings.check("What a bad peer gets", "refused: it does not send the same hello again"):
            self.listener.take("hello")  # from a worker that has answered several helloWanted
            self.listener.say("helloWanted")
            self._hello_again()
            version = SCHEMA.protocolVersion + 1
            self.listener.say("refused", reason="protocolVersion", text="a test", protocolVersion=version, version="2")
            self.listener.listen(1.5)
            # Another process may: an agent replaces each process that ends.
            again = [hello.fields["incarnation"] for hello in self.listener.take("hello")]
            must(self.hello.fields["incarnation"] not in again, "it sent the hello again")


def _named(hello: Received) -> list[Name]:
    """The tasks that a hello names."""
    running = hello.fields["running"]
    rows = range(len(running["ids"]))
    return [tuple(running[field][row if len(running[field]) > 1 else 0] for field in running) for row in rows]


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
