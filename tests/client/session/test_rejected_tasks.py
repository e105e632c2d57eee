"""Tasks that the scheduler rejects by an error message."""

from __future__ import annotations

from typing import Any

from tests.client.graph_stand_ins import SessionClient
from tests.client.session.stand_ins import Answered, MapRows, SinkRecorder, joined_session, submit

from scaler_client.errors import TaskRefusedError
from scaler_client.pickling import serializer
from scaler_client.pickling.functions import Function
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Outcome

WHY = "function 2 is not taken: a client may have 2 functions (--client-function-limit)"


def refusal(*ids: int) -> messages.Error:
    return messages.Error(WHY, list(ids))


def is_refused(sink: SinkRecorder, task_id: int) -> bool:
    [(failed, outcome, payload)] = [told for told in sink.told if told[0] == task_id]
    error, _ = serializer.loads(payload)
    assert isinstance(error, TaskRefusedError) and WHY in str(error)
    return outcome == Outcome.EXCEPTION


def announced(sent: list[Any]) -> list[int]:
    return [message.number for message in sent if isinstance(message, messages.Function)]


def test_rejected_tasks_fail_and_the_next_task_sends_the_function_again() -> None:
    session = joined_session()
    function = Function(2, "g", b"code")
    taken, first, second = SinkRecorder(), SinkRecorder(function), SinkRecorder(function)
    ids = [submit(session, sink) for sink in (taken, first, second)]
    assert announced(session.pop_outgoing()) == [1, 2]
    session.handle(refusal(*ids[1:]), 1.0)
    assert is_refused(first, ids[1]) and is_refused(second, ids[2])
    assert taken.told == [] and list(session.pending) == [ids[0]]
    submit(session, SinkRecorder(function))
    submit(session, taken)
    assert announced(session.pop_outgoing()) == [2]


def test_only_the_named_rows_of_a_map_fail() -> None:
    session = joined_session()
    rows = MapRows(Function(2, "g", b"code"), [b"a", b"b", b"c"])
    first = rows.submit(session)
    session.pop_outgoing()
    session.handle(refusal(first, first + 2), 1.0)
    assert is_refused(rows, first) and is_refused(rows, first + 2) and list(session.pending) == [first + 1]
    rows.submit(session)
    assert announced(session.pop_outgoing()) == [2]


def test_the_cancel_of_a_rejected_task_is_answered() -> None:
    session = joined_session()
    sink, answered = SinkRecorder(), Answered()
    task_id = submit(session, sink)
    session.pop_outgoing()
    session.cancel([task_id], answered)
    session.handle(refusal(task_id), 1.0)
    assert answered.times == 1 and is_refused(sink, task_id)
    session.handle(refusal(task_id, 4711), 1.0)  # one task that is over, one that never was
    assert len(sink.told) == 1


def test_a_rejected_graph_fails_as_a_whole_and_its_sent_tasks_are_cancelled() -> None:
    client = SessionClient(joined_session())
    futures = client.submit_graph({"a": (pow, 2, 3), "b": (abs, "a"), "c": (abs, "a")}, ["b", "c"])
    [graph] = client.session.tasks.graphs()
    client.session.pop_outgoing()
    client.session.handle(refusal(graph.first), 1.0)
    for future in futures:
        error = future.exception(0)
        assert isinstance(error, TaskRefusedError) and WHY in str(error)
    ids = list(range(graph.first, graph.first + 3))
    assert client.session.pop_outgoing() == [messages.Cancel(ids, force=True)]
    assert not client.session.tasks.ids()
    submit(client.session, SinkRecorder())
    client.submit_graph({"a": (pow, 2, 3), "b": (abs, "a")}, ["b"])
    assert len(announced(client.session.pop_outgoing())) == 3
