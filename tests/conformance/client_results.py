"""The results that tasks of a client under test read, and those that it keeps, as a scheduler has them."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from tests.conformance.findings import must
from tests.conformance.listener import Listener
from tests.conformance.messages import Received

VALUE, KEPT, INPUT_LOST = 0, 8, 9
KEEP_YES = 1
MESSAGES = ("object", "objects", "forgetObjects", "fetchObjects")
"""The messages of a client about results and objects."""


@dataclass
class ClientResults:
    """All ids are those of the client's tasks and objects."""

    listener: Listener
    reads: dict[int, list[int]] = field(default_factory=dict)
    """What each task reads."""
    keep: dict[int, int] = field(default_factory=dict)
    """The `keep` of each task."""
    values: dict[int, bytes] = field(default_factory=dict)
    """The values of tasks that ended with one."""
    failed: set[int] = field(default_factory=set)
    kept: set[int] = field(default_factory=set)
    """Tasks that ended with `kept`."""
    known: set[int] = field(default_factory=set)
    """What rows may read: named in `keepEarlier`, kept or sent since the last welcome."""
    stored: set[int] = field(default_factory=set)
    """The results and objects that the scheduler has since the last welcome."""
    asked: set[int] = field(default_factory=set)
    """Results that the client was asked for, without an answer."""
    was_asked: bool = False

    def forget_all(self) -> None:
        """Become a new scheduler."""
        self.known.clear()
        self.stored.clear()
        self.asked.clear()

    def readers(self) -> set[int]:
        return {reader for reader, inputs in self.reads.items() if inputs}

    def inputs(self) -> set[int]:
        return {each for inputs in self.reads.values() for each in inputs}

    def nodes(self) -> set[int]:
        return self.readers() | self.inputs() | {task for task, keep in self.keep.items() if keep}

    def take_submit(self, submit: Received, earlier_tasks: Set[int]) -> None:
        """Check what the rows read, and ask for results that the scheduler does not have."""
        ids, earlier = submit.fields["ids"], submit.fields["keepEarlier"]
        new = set(earlier) - earlier_tasks
        must(not new, f"keepEarlier names {sorted(new)[:20]}, which are no earlier tasks")
        self.known.update(earlier)
        self.asked.difference_update(self.kept.intersection(ids))  # the row comes again in place of its kept result
        wanted = [each for each in earlier if each in self.values.keys() | self.failed and each not in self.stored]
        if wanted:
            self.asked.update(wanted)
            self.was_asked = True
            self.listener.say("fetchObjects", clients=[1], ids=wanted)
        inputs = submit.fields["inputs"]
        counts = submit.column("inputCounts") or [0] * len(ids)
        keeps = submit.column("keep") or [0] * len(ids)
        must(sum(counts) == len(inputs), f"inputCounts add up to {sum(counts)}, there are {len(inputs)} inputs")
        for task_id, count, keep in zip(ids, counts, keeps):
            self.reads[task_id], inputs = inputs[:count], inputs[count:]
            unknown = set(self.reads[task_id]) - self.known
            must(not unknown, f"task {task_id} reads {sorted(unknown)}, which are neither kept nor in keepEarlier")
            self.keep[task_id] = keep
            if keep:
                self.known.add(task_id)

    def end(self, task_id: int, outcome: int, value: bytes | None) -> tuple[int, bytes]:
        """Note the end of a task. Returns the outcome and payload for its client."""
        if self.failed.intersection(self.reads.get(task_id, ())):
            outcome, value = INPUT_LOST, None
        if value is None:
            self.failed.add(task_id)
            return outcome, b"an input is lost" if outcome == INPUT_LOST else b""
        self.values[task_id] = value
        if task_id in self.known:
            self.stored.add(task_id)
        if self.keep.get(task_id) != KEEP_YES:
            return outcome, value
        self.kept.add(task_id)
        return KEPT, len(value).to_bytes(8, "little") + task_id.to_bytes(8, "little")

    def take(self, message: Received) -> None:
        """Handle one of MESSAGES."""
        if message.kind == "object":
            self._take_object(message.fields["id"], b"".join(message.frames))
        elif message.kind == "objects":
            ids = message.fields["ids"]
            must(ids == sorted(set(ids)), f"the ids of objects do not ascend: {ids[:20]}")
            for each, payload in zip(ids, message.payloads()):
                self._take_object(each, payload)
        elif message.kind == "forgetObjects":
            for each in message.fields["ids"]:
                self.known.discard(each)
                if each in self.asked:
                    self.asked.discard(each)
                    must(each not in self.values, f"it does not send the result of {each}, which it has")
        else:
            self._send(message.fields["ids"])

    def _take_object(self, name: int, content: bytes) -> None:
        if name in self.asked:
            self.asked.discard(name)
            must(name in self.values, f"it sends a result of {name}, which has none")
            must(content == self.values[name], f"it sends {content[:40]!r} as the result of {name}")
        self.known.add(name)
        self.stored.add(name)

    def _send(self, ids: list[int]) -> None:
        """Send kept values to the client."""
        for each in ids:
            must(each in self.keep, f"it asks for {each}, which is no task")
            if each in self.kept and each in self.stored:
                self.listener.say("object", self.values[each], client=1, id=each, name="a result")
            else:
                self.listener.say("forgetObjects", clients=[1], ids=[each])
