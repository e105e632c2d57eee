"""A host agent with a data address that follows PROTOCOL.md except for one fault. A thread and a context manager."""

from __future__ import annotations

from typing import Any

import zmq
from tests.conformance.data_peers import CHUNK_BYTES, DataReader, Name, object_file
from tests.conformance.findings import WrongError, must
from tests.conformance.messages import Received, read
from tests.conformance.of_agent import FIRST_BYTES, LONGEST_REQUEST_BYTES
from tests.conformance.scripted import Scripted
from tests.schema_messages import message_of

TICKET = "a ticket"


class ScriptedAgent(Scripted):
    def __init__(self, address: str, fault: str = "") -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.MAXMSGSIZE, -1 if fault == "long" else LONGEST_REQUEST_BYTES)
        port = self._socket.bind_to_random_port("tcp://127.0.0.1")
        ticket = "" if fault == "no ticket" else TICKET
        data = {"address": f"tcp://127.0.0.1:{port}", "key": "", "ticket": ticket}
        super().__init__(address, fault, "agent", data=data)
        self._files: dict[Name, bytes] = {}

    def run(self) -> None:
        try:
            super().run()
        finally:
            self._context.destroy(linger=0)

    # ---------------------------------------------------------------------------------------------------- the scheduler

    def on_object(self, sent: Received) -> None:
        self._files[sent.fields["client"], sent.fields["id"]] = object_file(sent.frames)

    def on_forgetObjects(self, forgotten: Received) -> None:
        for name in zip(forgotten.column("clients"), forgotten.fields["ids"]):
            if self.fault != "never forgets":
                self._files.pop(name, None)

    def on_transferObjects(self, order: Received) -> None:
        for name in zip(order.column("clients"), order.fields["ids"]):
            self._transfer(order.fields, name)

    def _transfer(self, fields: dict[str, Any], name: Name) -> None:
        told = {"clients": [name[0]], "ids": [name[1]], "source": fields["source"]}
        if name in self._files and self.fault != "gets it again":
            self.peer.say("transferred", **told)
            return
        is_unreachable = False
        error = ""
        with DataReader(fields["data"]) as reader:
            try:
                is_unreachable = self._get(reader, name)
            except WrongError as wrong:
                error = str(wrong)
        if is_unreachable:
            error, is_unreachable = "no connection", self.fault != "no word of it"
        if self.fault == "is always content":
            error, is_unreachable = "", False
        self.peer.say("transferred", error=error, isUnreachable=is_unreachable, **told)

    def _get(self, reader: DataReader, name: Name) -> bool:
        """Get a file. Returns whether the source can't be reached."""
        file = b""
        file_bytes = 0
        while not file or len(file) < file_bytes:
            wanted = CHUNK_BYTES if file else FIRST_BYTES
            reader.ask(name, len(file), wanted)
            answer = self._answer_of(reader)
            if answer is None:
                return True
            must(answer.kind == "objectChunk", "it has no such file")
            file_bytes = answer.fields["fileBytes"]
            must(len(answer.frames[0]) == min(wanted, file_bytes - len(file)), "a chunk of another size")
            file += answer.frames[0]
        self._files[name] = file[:-1] + b"!" if self.fault == "other bytes" else file
        return False

    def _answer_of(self, reader: DataReader) -> Received | None:
        while True:
            try:
                return reader.next(0.5)
            except WrongError:  # garbage
                continue

    # ------------------------------------------------------------------------------------------------- the data address

    def tick(self) -> None:
        while self._socket.poll(0):
            route, *frames = self._socket.recv_multipart()
            try:
                request = read(frames)
                must(request.kind == "readObject", "another message")
            except WrongError:
                if self.fault == "answers garbage":
                    self._socket.send_multipart([route, message_of("noObject", reason="garbage")])
                continue
            self._answer(route, request.fields)

    def _answer(self, route: bytes, fields: dict[str, Any]) -> None:
        told = {"client": fields["client"], "id": fields["id"]}
        file = self._files.get((fields["client"], fields["id"]))
        if file is None or (fields["ticket"] != TICKET and self.fault != "any ticket"):
            self._socket.send_multipart([route, message_of("noObject", reason="a test", **told)])
            return
        most = fields["bytes"] if self.fault == "long chunks" else min(fields["bytes"], CHUNK_BYTES)
        chunk = message_of("objectChunk", offset=fields["offset"], fileBytes=len(file), **told)
        self._socket.send_multipart([route, chunk, file[fields["offset"] : fields["offset"] + most]])
