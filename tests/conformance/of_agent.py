"""The conversation with the host agent of a worker under test: files that go from host to host."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.conformance.data_peers import CHUNK_BYTES, DataReader, DataSource, Name, closed_address, object_file
from tests.conformance.findings import Findings, must
from tests.conformance.listener import Listener
from tests.conformance.messages import Received
from tests.schema_messages import message_of
from tests.wire.vectors import ALL

FIRST_BYTES = 256 * 1024
LONGEST_REQUEST_BYTES = 16 * 1024
ANSWER_SECONDS = 4.0
"""Within this time a request for a chunk that is not there has an answer."""
PROBE_OFFSET = 64
"""The offset of requests that follow garbage, which has none with this offset: an answer to garbage would show."""
CLIENT = 1 << 40


class AgentConversation:
    """Checks an agent that has a data address.

    Args:
        incarnation: the agent's.
        reads: has a worker of the agent run a task that reads this object as a file of its host; raises WrongError if
            the result is wrong. None: no such call is known.
        input_bytes: the object's content.
    """

    def __init__(
        self,
        listener: Listener,
        findings: Findings,
        hello: Received,
        reads: Callable[[int], None] | None,
        input_bytes: bytes,
    ) -> None:
        self._listener = listener
        self._findings = findings
        self._hello = hello
        self._agent: int = hello.fields["incarnation"]
        self._data: dict[str, str] = hello.fields["data"]
        self._reads = reads
        self._frames = [input_bytes.ljust(5 * CHUNK_BYTES // 2 - 77), b" " * 77]
        self._file = object_file(self._frames)

    def run(self) -> None:
        with self._findings.check("Data addresses", "`data` in the hello of the agent"):
            self._check_data()
        with DataSource(bool(self._data["key"])) as source:
            # This takes 5 s: other checks go on meanwhile.
            self._order(source, (CLIENT, 1 << 53), data={**source.data, "address": closed_address()})
            self._gets_a_file(source, (CLIENT, 1 << 50))
            self._fails_to_get_a_file(source)
            self._serves((CLIENT, 1 << 50))
            self._drops_garbage((CLIENT, 1 << 50))
            self._forgets(source, (CLIENT, 1 << 50))
            self._is_unreachable(source, (CLIENT, 1 << 53))

    def _check_data(self) -> None:
        data, has_keys = self._data, self._listener.has_keys
        must(data["address"].startswith("tcp://"), f"the address is {data['address']!r}")
        must(data["ticket"], "there is no ticket")
        must(max(map(len, data.values())) <= 256, f"a text has more than 256 characters: {data}")
        must(
            bool(data["key"]) == has_keys,
            f"the run has {'keys' if has_keys else 'no keys'}, the key is {data['key']!r}",
        )
        must(not data["key"] or len(bytes.fromhex(data["key"])) == 32, f"the key is {data['key']!r}")

    # ------------------------------------------------------------------------------------------------------ as receiver

    def _order(self, source: DataSource, name: Name, **changed: Any) -> None:
        """Tell the agent to get a file."""
        self._order_all(source, [name], **changed)

    def _order_all(self, source: DataSource, names: Sequence[Name], **changed: Any) -> None:
        clients, ids = map(list, zip(*names))
        fields = {"clients": clients, "ids": ids, "bytes": [sum(map(len, self._frames))], "data": source.data}
        order = {**fields, "source": source.incarnation, **changed}
        self._listener.say_to_agent(self._agent, "transferObjects", **order)

    def _transferred(self, source: DataSource, name: Name) -> dict[str, Any]:
        def is_answer(received: Received) -> bool:
            return name in zip(received.column("clients"), received.fields["ids"])

        fields = self._listener.expect_of_agent("transferred", is_answer).fields
        must(fields["source"] == source.incarnation, f"its source is {fields['source']}")
        return fields

    def _gets_a_file(self, source: DataSource, name: Name) -> None:
        check = self._findings.check
        source.files[name] = self._file
        with check("Data addresses", "transferObjects: the agent asks for all chunks, and says `transferred`"):
            self._order(source, name)
            done = self._transferred(source, name)
            must(not done["error"], f"the error is {done['error']!r}")
            asked = [(each["offset"], each["bytes"]) for each in source.requests]
            must({each["ticket"] for each in source.requests} == {source.data["ticket"]}, "another ticket")
            offsets = [0, *range(FIRST_BYTES, len(self._file), CHUNK_BYTES)]
            must([offset for offset, _ in asked] == offsets, f"it asks for (offset, bytes) {asked}")
        if self._reads is not None:
            with check("Data addresses", "a worker of the agent reads the file (inputSources 2)"):
                self._reads(name[1])
        with check("Data addresses", "an order for a file that is there: `transferred` at once"):
            source.requests.clear()
            self._order(source, name)
            must(not self._transferred(source, name)["error"], "it says an error")
            must(not source.requests, f"it asks for {source.requests}")
        self._gets_two_files(source)

    def _gets_two_files(self, source: DataSource) -> None:
        missing = {(CLIENT, 1 << 54), (CLIENT, (1 << 54) + 1)}
        source.files.update(dict.fromkeys(missing, self._file))

        def is_answer(received: Received) -> bool:
            return not missing.isdisjoint(zip(received.column("clients"), received.fields["ids"]))

        with self._findings.check("Data addresses", "an order for two files: `transferred` for each"):
            self._order_all(source, sorted(missing))
            while missing:
                done = self._listener.expect_of_agent("transferred", is_answer)
                must(not done.fields["error"], f"the error is {done.fields['error']!r}")
                missing.difference_update(zip(done.column("clients"), done.fields["ids"]))

    def _fails_to_get_a_file(self, source: DataSource) -> None:
        check = self._findings.check
        with check("Data addresses", "the source has no such file: `transferred` with an error"):
            self._order(source, (CLIENT, 1 << 51))
            done = self._transferred(source, (CLIENT, 1 << 51))
            must(done["error"] and not done["isUnreachable"], f"it says {done}")
        with check("Data addresses", "the source sends chunks of a wrong size: `transferred` with an error"):
            source.files[CLIENT, 1 << 52] = self._file
            source.is_wrong = True
            self._order(source, (CLIENT, 1 << 52))
            done = self._transferred(source, (CLIENT, 1 << 52))
            must(done["error"] and not done["isUnreachable"], f"it says {done}")

    def _is_unreachable(self, source: DataSource, name: Name) -> None:
        section = "Data addresses"
        with self._findings.check(section, "nobody listens at the address: `transferred` with isUnreachable after 5 s"):
            done = self._transferred(source, name)
            must(done["error"] and done["isUnreachable"], f"it says {done}")

    # ------------------------------------------------------------------------------------------------------- as source

    def _next(self, reader: DataReader, seconds: float = ANSWER_SECONDS) -> Received | None:
        """Return the next answer; None: none comes in time. Meanwhile the scheduler answers heartbeats."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            answer = reader.next(0.02)
            if answer is not None:
                return answer
            self._listener.listen(0.001)
        return None

    def _expect_chunk(self, reader: DataReader, name: Name, offset: int, size: int) -> None:
        answer = self._next(reader)
        must(answer is not None, "no answer")
        assert answer is not None
        told = {"client": name[0], "id": name[1], "offset": offset, "fileBytes": len(self._file)}
        must((answer.kind, answer.fields) == ("objectChunk", told), f"the answer is {answer.kind} {answer.fields}")
        must(
            answer.frames == [self._file[offset : offset + size]],
            f"it has {len(answer.frames[0])} bytes, or wrong ones",
        )

    def _serves(self, name: Name) -> None:
        check = self._findings.check
        with (
            check("Data addresses", "readObject: chunks of the file, of at most 1 MiB"),
            DataReader(self._data) as reader,
        ):
            parts = [(0, FIRST_BYTES), (FIRST_BYTES, CHUNK_BYTES), (FIRST_BYTES + CHUNK_BYTES, 3 * CHUNK_BYTES), (3, 7)]
            for offset, size in parts:
                reader.ask(name, offset, size)
            for offset, size in parts:
                self._expect_chunk(reader, name, offset, min(size, CHUNK_BYTES))
            for offset in (len(self._file) - 5, len(self._file), 1 << 62):
                reader.ask(name, offset, CHUNK_BYTES)
                self._expect_chunk(reader, name, offset, CHUNK_BYTES)
        with check("Data addresses", "a wrong ticket: noObject"), DataReader(self._data) as reader:
            for ticket in ("", self._data["ticket"][:-1], self._data["ticket"] + "x", "\u00e9"):
                reader.ask(name, 0, 5, ticket=ticket)
                answer = self._next(reader)
                must(answer is not None and answer.kind == "noObject", f"the answer to ticket {ticket!r} is {answer}")

    def _drops_garbage(self, name: Name) -> None:
        check = self._findings.check
        with DataReader(self._data) as reader:
            good = reader.request(name, 0, 5)
            for what, garbage in self._garbage(good).items():
                with check("Data addresses", f"{what}: no answer, and the connection stays"):
                    for frames in garbage:
                        reader.send(*frames)
                    reader.ask(name, PROBE_OFFSET, 5)
                    self._expect_chunk(reader, name, PROBE_OFFSET, 5)
            with check("Data addresses", "a message of more than 16 KiB: the connection is cut"):
                reader.send(good + bytes(LONGEST_REQUEST_BYTES))
                answer = self._next(reader, 0.3)
                must(answer is None, f"there is an answer: {answer}")
        with check("Data addresses", "after all that, other connections get answers"), DataReader(self._data) as reader:
            reader.ask(name, 0, 5)
            self._expect_chunk(reader, name, 0, 5)

    def _garbage(self, good: bytes) -> dict[str, list[list[bytes]]]:
        """Return messages to which an agent has no answer."""
        chance = random.Random(1)
        ticket = good.index(self._data["ticket"].encode())
        other = [each.frames for each in ALL if each.message != "readObject" and sum(map(len, each.frames)) < 8192]
        return {
            "random bytes": [[chance.randbytes(chance.randrange(200))] for _ in range(20)],
            "no bytes, and a delimiter frame": [[b""], [b"", good]],
            "a cut request": [[good[:end]] for end in range(0, len(good), 8)],
            "other messages": other[:30] + [[message_of("transferObjects", source=1)], [message_of("noObject", id=1)]],
            "a ticket that is not UTF-8": [[good[:ticket] + b"\xff\xfe" + good[ticket + 2 :]]],
        }

    def _forgets(self, source: DataSource, name: Name) -> None:
        with (
            self._findings.check("Data addresses", "after forgetObjects: noObject within 4 s"),
            DataReader(self._data) as reader,
        ):
            self._listener.say_to_agent(self._agent, "forgetObjects", clients=[name[0]], ids=[name[1]])
            # Messages of different connections have no order: the answer to a later order shows that it has read this.
            source.files.clear()
            self._order(source, name)
            self._transferred(source, name)
            reader.ask(name, 0, 5)
            answer = self._next(reader, ANSWER_SECONDS + 2.0)
            must(answer is not None and answer.kind == "noObject", f"the answer is {answer}")
