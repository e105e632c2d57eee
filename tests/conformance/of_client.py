"""The conversation with a client under test, which must submit a few dozen tasks by itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.conformance.calls import answer_to
from tests.conformance.client_results import MESSAGES, ClientResults
from tests.conformance.findings import Findings, WrongError, must
from tests.conformance.listener import WAIT_SECONDS, Listener, check_hello, check_scheduler
from tests.conformance.messages import Received
from tests.schema_messages import message_of
from tests.wire.vectors import ALL

TASK_BYTES = 128
"""The bytes that a task counts in addition to its payload."""
WINDOW = 1 << 20
TASKS = 20
"""The least number of tasks that the client must submit."""
VALUE, CANCELLED = 0, 6


@dataclass
class ClientConversation:
    listener: Listener
    findings: Findings
    hello: Received = field(init=False)
    functions: dict[int, str] = field(init=False, default_factory=dict)
    """The kinds of the client's functions, by number."""
    open: dict[int, tuple[int, bytes]] = field(init=False, default_factory=dict)
    """Function and payload of open tasks, by id."""
    answered: set[int] = field(init=False, default_factory=set)
    counted: int = field(init=False, default=0)
    """The bytes submitted since the last welcome."""
    came: list[int] = field(init=False, default_factory=list)
    """The ids submitted since the last welcome, in order."""
    results: ClientResults = field(init=False)

    def __post_init__(self) -> None:
        self.results = ClientResults(self.listener)

    def run(self, hello: Received) -> None:
        """Run the whole conversation with the client of this hello."""
        self.hello = hello
        with self.findings.check("Join", "the hello"):
            check_hello(hello, "client")
        with self.findings.check("Join", "before the welcome it sends only hello and heartbeats"):
            self.listener.listen(0.3)
            must(not self.listener.take("submit") and not self.listener.take("function"), "it sent more")
        self._credit()
        if len(self.open) >= TASKS:
            self._answers()
            self._inputs_end()
            self._forgotten()
            self._results_are_sent()
            self._odd_messages()
            self._connection_lost()
        else:
            why = f"{len(self.open)} tasks are open at once, which takes some {TASKS}"
            self.findings.leave_out("A connection is lost", "resubmission, answers and unknown messages", why)
        self._rest()

    # ---------------------------------------------------------------------------------------------------- what it sends

    def _take_submits(self, seconds: float) -> int:
        """Read and check submits for this long; return the number of tasks."""
        self.listener.listen(seconds)
        tasks = 0
        for message in self.listener.take("function", "submit", *MESSAGES):
            if message.kind == "function":
                must(len(message.frames) == 1, f"function with {len(message.frames)} frames")
                self.functions[message.fields["number"]] = message.fields["kind"]
            elif message.kind == "submit":
                tasks += self._take_submit(message)
            else:
                self.results.take(message)
        return tasks

    def _take_submit(self, submit: Received) -> int:
        ids = submit.fields["ids"]
        must(ids == sorted(set(ids)), f"ids do not ascend: {ids[:20]}")
        unknown = set(submit.fields["functions"]) - set(self.functions)
        must(not unknown, f"functions {unknown} were not sent before")
        again = self.answered.intersection(ids) - self.results.kept
        must(not again, f"tasks {sorted(again)[:20]} are submitted again, and were answered")
        self.answered.difference_update(ids)
        self.results.take_submit(submit, self.open.keys() | self.answered)
        for task_id, function, payload in zip(ids, submit.column("functions"), submit.payloads()):
            known = self.open.setdefault(task_id, (function, payload))
            must(known == (function, payload), f"task {task_id} has changed")
            self.counted += len(payload) + TASK_BYTES
        self.came += ids
        return len(ids)

    def _await_tasks(self, count: int) -> None:
        for _ in range(round(WAIT_SECONDS / 0.1)):
            self._take_submits(0.1)
            if len(self.open) >= count:
                return
        raise WrongError(f"{len(self.open)} tasks are open, where {count} were expected")

    def _resolve(self, ids: list[int], outcome: int = VALUE) -> None:
        """Answer open tasks. With VALUE, results that stay are kept, and readers of lost results fail."""
        outcomes, answers = [], []
        for each in ids:
            function, _ = self.open.pop(each)
            value = answer_to(self.functions[function]) if outcome == VALUE else None
            row = self.results.end(each, outcome, value)
            outcomes.append(row[0])
            answers.append(row[1])
        self.answered.update(ids)
        sizes = [len(answer) for answer in answers]
        self.listener.say("resolved", ids=ids, outcomes=outcomes, sizes=sizes, payload=b"".join(answers))

    def _plain(self) -> list[int]:
        """Return the open tasks that neither read results nor are read."""
        return sorted(self.open.keys() - self.results.nodes()) or sorted(self.open)

    # ----------------------------------------------------------------------------------------------------- conversation

    def _credit(self) -> None:
        """Grant no credit at first, then one byte, which allows one task of any size."""
        check, listener = self.findings.check, self.listener
        listener.welcome(credit=0, resultWindow=WINDOW)
        with check("Credit", "without credit it submits nothing"):
            must(not self._take_submits(1.0), "tasks came")
        with check("Join", "at least three heartbeats per lease"):
            listener.beats.clear()
            lease = listener.lease_milliseconds / 1000
            listener.listen(lease)
            must(len(listener.beats) >= 2, f"{len(listener.beats)} heartbeats in a lease of {lease:g} s")
        with check("Credit", "any credit allows one task of any size, and no second one"):
            listener.say("credit", bytes=1)
            submit = listener.expect("submit")
            for function in listener.take("function"):
                self.functions[function.fields["number"]] = function.fields["kind"]
            rows = self._take_submit(submit)
            must(rows == 1 and not self._take_submits(0.5), "a second one came")
        with check("Submit to result", f"with enough credit, {TASKS} tasks: functions first, ids ascend"):
            listener.say("credit", bytes=1 << 40)
            self._await_tasks(TASKS)

    def _answers(self) -> None:
        with self.findings.check("Submit to result", "it accepts answers in any order, repeated, and of unknown ids"):
            ids = self._plain()[: -1 - TASKS // 4 : -1]
            function = self.open[ids[0]][0]
            self._resolve(ids)
            self.listener.say("resolved", ids=[*ids, 1 << 62], outcomes=[CANCELLED], sizes=[0])
            self.listener.say("started", ids=[ids[0], 1 << 62])
            self.listener.say("cancelRefused", ids=[ids[0], 1 << 62])
            must(function in self.functions, "the client is gone")
            self._take_submits(0.3)
        with self.findings.check("Credit", "`received` after each quarter of the window"):
            task_id = self._plain()[0]
            # JSON may end in blanks, and pickle ignores what follows its end.
            answer = answer_to(self.functions[self.open.pop(task_id)[0]]).ljust(WINDOW // 2)
            self.answered.add(task_id)
            self.results.end(task_id, VALUE, answer)
            self.listener.say("resolved", answer, ids=[task_id], outcomes=[VALUE], sizes=[0], large=[0])
            # One that is sent with a heartbeat may come before it.
            self.listener.expect("received", where=lambda received: received.fields["bytes"] >= WINDOW // 2)

    def _inputs_end(self) -> None:
        """End tasks that others read, the last one without a value: after the next welcome these are to be sent."""
        ids = sorted(self.results.inputs() & self.open.keys() - self.results.readers())
        if ids:
            self._resolve(ids[:-1] if len(ids) > 1 else ids)
            if len(ids) > 1:
                self._resolve(ids[-1:], CANCELLED)

    def _results_are_sent(self) -> None:
        """Wait for the results that the scheduler has asked for, because open tasks read them."""
        section = "Results of tasks that were submitted without `keep`"
        if not self.results.inputs():
            self.findings.leave_out(
                section, "results that the scheduler asks for", "no task reads another one's result"
            )
            return
        with self.findings.check(
            section, "after a welcome it sends the results that the scheduler asks for, if it has them"
        ):
            must(self.results.was_asked, "no `keepEarlier` names the inputs that have ended")
            for _ in range(round(WAIT_SECONDS / 0.1)):
                if not self.results.asked:
                    break
                self._take_submits(0.1)
            must(not self.results.asked, f"no answer for results {sorted(self.results.asked)[:20]}")

    def _forgotten(self) -> None:
        with self.findings.check("A connection is lost", "after helloWanted: the same incarnation"):
            self.listener.say("helloWanted")
            self._hello_again()
        self._expect_all_again()

    def _hello_again(self) -> Received:
        hello = self.listener.expect("hello")
        check_hello(hello, "client")
        must(hello.fields["incarnation"] == self.hello.fields["incarnation"], "its incarnation has changed")
        return hello

    def _expect_all_again(self) -> None:
        """Welcome the client as a restarted scheduler does."""
        listener = self.listener
        listener.take("submit")
        listener.take("function")
        listener.epoch += 1
        with self.findings.check("A connection is lost", "it sends functions and open tasks again, with the same ids"):
            before, readers = dict(self.open), self.results.readers()
            self.open.clear()
            self.functions.clear()
            self.counted = 0
            self.came.clear()
            self.results.forget_all()
            listener.welcome(credit=1 << 40, resultWindow=WINDOW)
            self._await_tasks(len(before))
            lost = set(before) - set(self.open)
            must(not lost, f"tasks {sorted(lost)[:20]} did not come again")
            # A reader may have a small result inside its arguments now.
            changed = [each for each in before.keys() - readers if before[each][1] != self.open[each][1]]
            must(not changed, f"tasks {changed[:20]} came with other payloads")
            again = [each for each in self.came if each in before]
            must(again == sorted(again), f"ids do not ascend from one submit to the next: {again[:20]}")

    def _odd_messages(self) -> None:
        with self.findings.check("Versioning", "unknown messages, those of other roles and golden ones are ignored"):
            unknown = bytearray(message_of("helloWanted"))
            unknown[16:18] = (999).to_bytes(2, "little")  # the tag of the union
            self.listener.send([bytes(unknown)])
            self.listener.send([message_of("error", text="a test")])
            self.listener.send([message_of("notice", text="a test")])
            for vector in ALL:
                is_of_others = vector.message in ("dispatch", "retract", "stop", "endWorker", "fetchObjects")
                if is_of_others or vector.name.startswith("resolved-segments"):
                    self._send_golden(vector.frames, vector.fields.get("ids", []))
            self.listener.beats.clear()
            self.listener.listen(self.listener.lease_milliseconds / 1000)
            must(self.listener.beats, "it sends nothing any more")

    def _send_golden(self, frames: list[bytes], ids: list[int]) -> None:
        if not set(ids) & set(self.open):  # else it would be an answer that the client can't read
            self.listener.send(frames)

    def _connection_lost(self) -> None:
        hello: Received | None = None
        with self.findings.check("A connection is lost", "it reconnects by itself, and sends a hello when asked"):
            self.listener.say("goodbye", reason="a test")
            self.listener.rebind()
            hello = self._hello_again()
        if hello is not None:
            check_scheduler(self.findings, hello, self.listener.welcomed_as)
        self._expect_all_again()

    def _rest(self) -> None:
        """Answer all tasks, so that a program that waits for them can end."""
        with self.findings.check("A client leaves", "when all its tasks are answered, it sends a goodbye"):
            for _ in range(round(WAIT_SECONDS / 0.1)):
                self._take_submits(0.1)
                if self.open:
                    self._resolve(sorted(self.open))
                for cancel in self.listener.take("cancel"):
                    self._resolve([each for each in cancel.fields["ids"] if each in self.open], CANCELLED)
                if self.listener.take("goodbye"):
                    return
            raise WrongError("none came, of a program that was to end when its tasks are answered")
