"""A worker and a client that follow PROTOCOL.md except for one fault. They are threads and context managers."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import zmq
from tests.conformance.findings import WrongError
from tests.conformance.messages import Name, Received, read
from tests.conformance.peer import Peer, ServingThread

PROFILE, REPORT_START = 1, 2
VALUE, EXCEPTION, FUNCTION_FAILED, INPUT_LOST = 0, 1, 2, 9


class Scripted(ServingThread):
    def __init__(self, address: str, fault: str, role: str, **hello: Any) -> None:
        super().__init__()
        self.peer = Peer(address, role, **hello)
        self.fault = fault
        self._scheduler = 0
        self._waits_for_welcome = False

    def run(self) -> None:
        with self.peer:
            self._hello()
            while not self.has_ended.is_set():
                self.tick()
                self.peer.say("heartbeat", sequence=1)
                with suppress(WrongError):  # a message of a newer protocol
                    for received in self.peer.listen(0.02):
                        self._take(received)

    def _take(self, received: Received) -> None:
        if received.kind == "helloWanted" and (self.fault == "many hellos" or not self._waits_for_welcome):
            self._hello()
        elif received.kind == "welcome":
            self._waits_for_welcome = False
            self._scheduler = received.fields["incarnation"]
        if act := getattr(self, f"on_{received.kind}", None):
            act(received)

    def _hello(self) -> None:
        self._waits_for_welcome = True
        self.peer.hello(scheduler=0 if self.fault == "no scheduler" else self._scheduler, **self.running())

    def tick(self) -> None:
        """Do what is due, about every 20 ms."""

    def running(self) -> dict[str, Any]:
        return {}


class ScriptedWorker(Scripted):
    """A worker with the functions `x`, which returns 1, and `wait`, which runs until it is stopped."""

    def __init__(self, address: str, fault: str) -> None:
        super().__init__(address, fault, "worker", kinds=["named json x", "named json wait"])
        self._kinds: dict[int, str] = {}
        self._queue: list[tuple[Name, str, int, bytes, list[bytes | None]]] = []
        self._objects: dict[tuple[int, int], bytes] = {}
        self._runs: Name | None = None

    def running(self) -> dict[str, Any]:
        return {"running": _columns(self._runs)} if self._runs else {}

    def on_welcome(self, _welcome: Received) -> None:
        self._queue.clear()

    def on_function(self, function: Received) -> None:
        self._kinds[function.fields["number"]] = function.fields["kind"]

    def on_dispatch(self, dispatch: Received) -> None:
        kinds = [self._kinds[number] for number in dispatch.column("functions")]
        flags = dispatch.column("flags") or [0] * len(kinds)
        inputs = dispatch.fields["inputs"]
        sizes = dispatch.fields["inlineSizes"] or [0] * len(inputs)
        counts = dispatch.column("inputCounts") or [0] * len(kinds)
        begin = 0
        for name, kind, flag, payload, count in zip(dispatch.names(), kinds, flags, dispatch.payloads(), counts):
            found: list[bytes | None] = []
            for each, size in zip(inputs[begin : begin + count], sizes[begin : begin + count]):
                if size and self.fault != "no inlined inputs":
                    payload, inlined = payload[: 1 - size], payload[1 - size :]
                    found.append(inlined)
                else:
                    found.append(self._objects.get((name[0], each)))
            begin += count
            self._queue.append((name, kind, flag, payload, found))
        self._go_on()

    def on_object(self, sent: Received) -> None:
        content = sent.frames[0] if self.fault != "no objects" else b"0"
        self._objects[sent.fields["client"], sent.fields["id"]] = content

    def on_forgetObjects(self, forgotten: Received) -> None:
        for name in zip(forgotten.column("clients"), forgotten.fields["ids"]):
            if self.fault != "never forgets":
                self._objects.pop(name, None)

    def on_retract(self, retract: Received) -> None:
        queued = {row[0] for row in self._queue}
        given = [int(name in queued) for name in retract.names()]
        self._queue = [row for row in self._queue if row[0] not in retract.names()]
        self.peer.say("retracted", **{**_columns(*retract.names()), "returned": given})

    def on_stop(self, stop: Received) -> None:
        if self._runs in stop.names() and self.fault != "never stops":
            self._answer(self._runs, EXCEPTION, b"stopped")
            self._runs = None
            self._go_on()

    def _go_on(self) -> None:
        while self._queue and self._runs is None:
            name, kind, flags, payload, inputs = self._queue.pop(0)
            if kind == "named json x":
                self._run_quick(name, flags, payload, inputs)
            elif self.fault == "slow at once":
                self._answer(name, FUNCTION_FAILED, b"no such function")
            else:
                self._runs = name
                self._start(name)

    def _run_quick(self, name: Name, flags: int, payload: bytes, inputs: list[bytes | None]) -> None:
        if flags & REPORT_START:
            self._start(name)
        measured = {"cpuTimes": [1], "peaks": [1]} if flags & PROFILE else {}
        if self.fault == "fails":
            self._answer(name, FUNCTION_FAILED, b"no such function", **measured)
        elif None in inputs and self.fault != "runs without inputs":
            self._answer(name, INPUT_LOST, b"an input is not here", **measured)
        elif payload != b"[1]" and (payload != b"[]" or inputs not in ([b"1"], [None])):
            self._answer(name, EXCEPTION, b"\xff" if self.fault == "no text" else b"bad arguments", **measured)
        else:
            self._answer(name, VALUE, b"1", **measured)

    def _start(self, name: Name) -> None:
        if self.fault != "never started":
            self.peer.say("started", **_columns(name))

    def _answer(self, name: Name, outcome: int, payload: bytes, **measured: Any) -> None:
        fields = {"outcomes": [outcome], "durations": [1], "sizes": [len(payload)], "payload": payload, **measured}
        for _ in range(2 if self.fault == "twice" else 1):
            self.peer.say("results", **_columns(name), **fields)


class ScriptedClient(Scripted):
    """A client.

    Args:
        tasks: the number of tasks.
        readers: the number of further tasks, which read the results of the first ones.
    """

    def __init__(self, address: str, fault: str, tasks: int, readers: int = 0) -> None:
        super().__init__(address, fault, "client")
        self._open = set(range(tasks + readers))
        self._first_reader = tasks
        self._values: dict[int, bytes] = {}
        self._unsent: list[int] = []
        self._has_sent_one = False
        self._window = self._taken = 0

    def on_welcome(self, welcome: Received) -> None:
        self._window, self._taken = welcome.fields["resultWindow"], 0
        self._unsent = sorted(self._open)
        self._has_sent_one = False
        self.peer.say("function", b"", number=1, name="x", kind="named json x")
        self._submit(welcome.fields["credit"])

    def on_credit(self, credit: Received) -> None:
        self._submit(credit.fields["bytes"])

    def on_fetchObjects(self, wanted: Received) -> None:
        for each in wanted.fields["ids"]:
            if self.fault == "sends nothing":
                continue
            if each in self._values and self.fault != "has nothing":
                self.peer.say("object", b"x" if self.fault == "sends other bytes" else self._values[each], id=each)
            else:
                self.peer.say("forgetObjects", ids=[each])

    def on_resolved(self, resolved: Received) -> None:
        rows = zip(resolved.fields["ids"], resolved.column("outcomes"), resolved.payloads())
        self._values.update((each, payload) for each, outcome, payload in rows if outcome == VALUE)
        self._open.difference_update(resolved.fields["ids"])
        self._taken += sum(map(len, resolved.payloads()))
        if self._taken >= self._window // 4:
            self.peer.say("received", bytes=self._taken)
        if not self._open:
            self.has_ended.set()

    def _submit(self, credit: int) -> None:
        """Submit one task, once, if there is little credit, and all tasks in two messages if there is much."""
        if credit < 1000:
            batches = [] if self._has_sent_one or not credit else [self._unsent[:1]]
        else:
            plain = [each for each in self._unsent if each < self._first_reader]
            half = len(plain) // 2
            batches = [plain[:half], plain[half:]]
        for batch in filter(None, reversed(batches) if self.fault == "descending" else batches):
            self._has_sent_one = True
            self.peer.say("submit", ids=batch, functions=[1], sizes=[0])
            self._unsent = [each for each in self._unsent if each not in batch]
        if credit >= 1000:
            self._submit_readers()

    def _submit_readers(self) -> None:
        for reader in self._unsent:
            read = reader - self._first_reader
            earlier = [] if self.fault == "names no input" else [read]
            fields = {"inputs": [read], "inputCounts": [1], "keepEarlier": earlier}
            self.peer.say("submit", ids=[reader], functions=[1], sizes=[0], **fields)
        self._unsent = []


def _columns(*names: Name) -> dict[str, list[int]]:
    clients, ids, attempts = (list(column) for column in zip(*names))
    return {"clients": clients, "ids": ids, "attempts": attempts}


class ForgetfulScheduler(ServingThread):
    """A scheduler that never says one kind of message: it forwards all others of a real scheduler."""

    def __init__(self, scheduler: str, unsaid: str) -> None:
        super().__init__()
        self._scheduler = scheduler
        self._unsaid = unsaid
        self._context = zmq.Context()
        self._peers = self._context.socket(zmq.ROUTER)
        self.address = f"tcp://127.0.0.1:{self._peers.bind_to_random_port('tcp://127.0.0.1')}"
        self._connections: dict[bytes, zmq.Socket[bytes]] = {}
        """By route of the peer."""

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._context.destroy(linger=0)

    def run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._peers, zmq.POLLIN)
        while not self.has_ended.is_set():
            ready = dict(poller.poll(20))
            if self._peers in ready:
                route, *frames = self._peers.recv_multipart()
                if route not in self._connections:
                    connection = self._connections[route] = self._context.socket(zmq.DEALER)
                    connection.connect(self._scheduler)
                    poller.register(connection, zmq.POLLIN)
                self._connections[route].send_multipart(frames)
            for route, connection in self._connections.items():
                if connection in ready:
                    frames = connection.recv_multipart()
                    if read(frames).kind != self._unsaid:
                        self._peers.send_multipart([route, *frames])
