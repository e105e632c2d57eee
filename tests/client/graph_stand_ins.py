"""Fakes for tests of graphs and objects: a client without a connection, and a cluster without processes.

The client's session is the real one. The cluster runs what the session sends, as the scheduler and the workers would.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from tests.client.session.stand_ins import joined_session

from scaler_client.api.data_api import DataApi
from scaler_client.api.task_options import TaskOptions
from scaler_client.nested.task_host import RunningTask
from scaler_client.pickling.custom_serializer import call_dumper
from scaler_client.pickling.functions import Function, FunctionTable
from scaler_client.pickling.input_lookup import with_inputs
from scaler_client.pickling.references import StoredObject
from scaler_client.pickling.serializer import dumps, loads
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Keep, Options, Outcome
from scaler_client.session.session import Session


class Buffer:
    """Pickles out of band, like an array. It is not hashable."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Buffer) and bytes(other.data) == bytes(self.data)

    def __reduce__(self) -> Any:
        return Buffer, (pickle.PickleBuffer(self.data),)


class SessionIoThread:
    """An I/O thread that passes everything to a session at once."""

    is_nested = False
    is_closed = False
    close_reason = ""
    frame_limit = 0

    def __init__(self, session: Session) -> None:
        self.session = session
        self.cancelled: list[int] = []

    def call_soon(self, command: Callable[[Session], None]) -> None:
        command(self.session)

    def forget_object(self, stored: StoredObject) -> None:
        self.session.objects.forget(stored)

    def check_can_wait(self) -> None:
        raise AssertionError("the test would wait without end")

    def cancel_many(self, ids: Callable[[], list[int]]) -> None:
        self.cancelled += ids()


class SessionClient(DataApi):
    """A client with a session that has joined."""

    def __init__(
        self, session: Session | None = None, serializer: Any = None, options: TaskOptions | None = None
    ) -> None:
        self.session = joined_session() if session is None else session
        self._io_thread: Any = SessionIoThread(self.session)
        self._serializer = serializer
        self._dump_call = call_dumper(serializer, self._io_thread)
        self._functions = FunctionTable(lambda number: None, serializer)
        self._options = options or TaskOptions()

    def _function(self, fn: Callable[..., Any]) -> Function:
        return self._functions.get(fn)

    def _current_task(self) -> RunningTask | None:
        return None

    def _wire_options(self, task: RunningTask | None, profiling: bool | None) -> Options | None:
        return self._options.to_wire(profiling=profiling)


class Cluster:
    """Runs what a session has sent, when `run` is called."""

    def __init__(self) -> None:
        self.objects: dict[int, Any] = {}
        """The values of objects and of kept results, by id."""
        self.ran: list[int] = []
        self.forgotten: list[int] = []
        self._functions: dict[int, Any] = {}
        self._failed: dict[int, tuple[int, bytes]] = {}
        self._results: dict[int, Any] = {}

    def run(self, session: Session) -> None:
        for message in session.pop_outgoing():
            if isinstance(message, messages.Function):
                self._functions[message.number] = loads(message.payload)
            elif isinstance(message, messages.Object):
                first, *others = message.frames
                self.objects[message.id] = pickle.loads(first, buffers=others)
            elif isinstance(message, messages.ForgetObjects):
                self.forgotten += message.ids
            elif isinstance(message, messages.Submit):
                session.handle(self._resolved(message), 0.0)

    def _resolved(self, batch: messages.Submit) -> messages.Resolved:
        answer = messages.Resolved([], [], [])
        for each in batch.keep_earlier:  # as if these tasks were still open
            if each in self._results:
                self.objects[each] = self._results[each]
        inputs = list(batch.inputs)
        for row, task_id in enumerate(batch.ids):
            count = batch.input_counts[row] if batch.input_counts else 0
            mine, inputs = inputs[:count], inputs[count:]
            number = batch.functions[row if len(batch.functions) > 1 else 0]
            keep = batch.keep[row] if batch.keep else Keep.NO
            outcome, payload = self._run_row(task_id, number, batch.payloads[row], mine, keep)
            answer.ids.append(task_id)
            answer.outcomes.append(outcome)
            answer.payloads.append(payload)
        assert not inputs
        return answer

    def _run_row(self, task_id: int, number: int, payload: Any, inputs: list[int], keep: int) -> tuple[int, bytes]:
        self.ran.append(task_id)
        for each in inputs:
            if each in self._failed:
                self._failed[task_id] = self._failed[each]
                return self._failed[task_id]
        values = [self.objects[each] for each in inputs]
        try:
            with with_inputs(values.__getitem__):
                arguments = loads(payload)
                args, kwargs = (arguments, {}) if type(arguments) is tuple else arguments
                data = dumps(self._functions[number](*args, **kwargs))
        except Exception as error:
            self._failed[task_id] = Outcome.EXCEPTION, pickle.dumps((error, "remote frames\n"))
            return self._failed[task_id]
        self._results[task_id] = loads(data)
        if keep:
            self.objects[task_id] = loads(data)
        return (Outcome.KEPT, b"") if keep == Keep.YES else (Outcome.VALUE, data)
