"""Objects that a client sends: their frames, their references, and where references may be used."""

from __future__ import annotations

import array
import copy
import gc
import pickle
import threading
from typing import Any

import cloudpickle
import pytest
from tests.client.graph_stand_ins import Buffer, Cluster, SessionClient

from scaler_client.errors import ObjectNotFoundError, SerializerError
from scaler_client.futures.future import TaskFuture
from scaler_client.io.objects import dump_object
from scaler_client.pickling import references
from scaler_client.pickling.object_frames import MAX_FRAMES, OUT_OF_BAND_BYTES
from scaler_client.pickling.references import CallWithInputs, ObjectRef
from scaler_client.pickling.serializer import dumps
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Outcome


@pytest.fixture
def client() -> SessionClient:
    return SessionClient()


def load(frames: Any) -> Any:
    first, *others = frames
    return pickle.loads(first, buffers=[memoryview(frame).toreadonly() for frame in others])


def submit(client: SessionClient, *args: Any, **kwargs: Any) -> TaskFuture[Any]:
    """Submit a call that returns its arguments, as the client does."""
    future: TaskFuture[Any] = TaskFuture(client._io_thread, client._function(echo), client._dump_call(args, kwargs))
    future.task_id = client.session.submit(future, *future.row(-1))  # type: ignore[arg-type]
    return future


def echo(*args: Any, **kwargs: Any) -> Any:
    return args, kwargs


# --------------------------------------------------------------------------------------------------------------- frames


LARGE = OUT_OF_BAND_BYTES


@pytest.mark.parametrize(
    ("value", "buffers"),
    [
        (Buffer(bytes(LARGE)), 1),
        (Buffer(bytearray(LARGE)), 1),
        (Buffer(bytes(LARGE - 1)), 0),
        ({"a": [Buffer(b"1" * LARGE), Buffer(b"2" * LARGE)], "small": Buffer(b"3")}, 3),
        (Buffer(memoryview(bytes(4 * LARGE)).cast("I", (16, LARGE // 16))), 1),
        ([1, "two", None], 0),
        (b"x" * LARGE, 0),
    ],
)
def test_large_buffers_are_frames_of_their_own(value: Any, buffers: int) -> None:
    frames = dump_object(value, None)
    assert len(frames) == 1 + buffers
    assert load(frames) == value


def test_functions_can_be_objects() -> None:
    assert load(dump_object(lambda: 5, None))() == 5


def test_large_buffers_are_not_copied() -> None:
    data = bytearray(LARGE)
    frames = dump_object(Buffer(data), None)
    data[5] = 7
    assert frames[1][5] == 7
    loaded = load(frames).data
    data[6] = 8
    assert loaded[6] == 8 and loaded.readonly


@pytest.mark.parametrize("count", [MAX_FRAMES - 1, MAX_FRAMES, 200])
def test_the_largest_of_many_buffers_become_frames(count: int) -> None:
    values = [Buffer(bytes([number]) * (LARGE + number)) for number in range(count)]
    frames = dump_object(values[::-1], None)
    assert len(frames) <= MAX_FRAMES and len(frames[0]) < LARGE
    own = min(count, MAX_FRAMES - 3 if count >= MAX_FRAMES else count)
    sizes = sorted(map(len, frames[1:]))
    assert set(range(LARGE + count - own, LARGE + count)) <= set(sizes)
    assert load(frames) == values[::-1]


def test_many_buffers_of_one_size() -> None:
    """One buffer more than the limit of frames: once, none of them became a frame of its own."""
    values = [Buffer(bytes([number]) * LARGE) for number in range(200)]
    frames = dump_object(values, None)
    assert len(frames) <= MAX_FRAMES and len(frames[0]) < LARGE
    assert load(frames) == values


@pytest.mark.parametrize("sizes", [[5], [0, 1, 0], [LARGE, 7, LARGE, 64, 100], [1000] * 300, [LARGE] * 100 + [3]])
def test_readers_cannot_write_to_buffers(sizes: list[int]) -> None:
    values = [Buffer(bytearray([number % 256]) * size) for number, size in enumerate(sizes)]
    loaded = load(dump_object(values, None))
    assert [bytes(each.data) for each in loaded] == [bytes(each.data) for each in values]
    assert all(memoryview(each.data).readonly for each in loaded)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (threading.Lock(), r"^the object of type _thread\.lock can't be pickled: TypeError: "),
        ([(i for i in ())], r"^the object of type list can't be pickled: .* \(it is item 0\)"),
    ],
)
def test_values_that_cannot_be_sent(client: SessionClient, value: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        client.send_object(value)


# ----------------------------------------------------------------------------------------------------------- references


def test_names(client: SessionClient) -> None:
    assert client.send_object([1]).name == ""
    assert client.send_object("text").name == ""
    assert client.send_object("first", [1]).name == client.send_object([1], name="first").name == "first"
    assert client.send_object("none", None).name == "none"
    sent = [message for message in client.session.pop_outgoing() if isinstance(message, messages.Object)]
    assert [message.name for message in sent] == ["", "", "first", "first", "none"]
    assert [load(message.frames) for message in sent] == [[1], "text", [1], [1], None]


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((5, [1]), {}, "an object's name must be a string, not 5"),
        (([1],), {"name": 5}, "an object's name must be a string, not 5"),
        (("a", [1]), {"name": "b"}, "the object has two names: 'a' and 'b'"),
    ],
)
def test_bad_names(client: SessionClient, args: Any, kwargs: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        client.send_object(*args, **kwargs)


def test_the_repr_of_references(client: SessionClient) -> None:
    ref = client.send_object("data", b"x" * 10_000)
    assert repr(ref) == "<ObjectRef 'data', 10,018 bytes>"
    client.session.objects.clear()
    assert repr(ref) == "<ObjectRef 'data', 10,018 bytes, freed>"
    assert repr(client.send_object([])).startswith("<ObjectRef, ")


def test_references_anywhere_among_arguments(client: SessionClient) -> None:
    one, two = client.send_object("one", [1]), client.send_object({"two": 2})
    calls: list[Any] = [
        ((one,), {}),
        ((one, 5, two, one), {}),
        ((one, [1, 2]), {"key": two}),
        (([one, {"deep": (two, one)}],), {}),
        ((5,), {"key": {"deep": [two]}}),
        ((Holder(one),), {}),
    ]
    futures = [submit(client, *args, **kwargs) for args, kwargs in calls]
    Cluster().run(client.session)
    values = [future.result(0) for future in futures]
    assert values[:5] == [
        (([1],), {}),
        (([1], 5, {"two": 2}, [1]), {}),
        (([1], [1, 2]), {"key": {"two": 2}}),
        (([[1], {"deep": ({"two": 2}, [1])}],), {}),
        ((5,), {"key": {"deep": [{"two": 2}]}}),
    ]
    assert values[5][0][0].value == [1]


class Holder:
    def __init__(self, value: Any) -> None:
        self.value = value


def test_each_input_of_a_call_is_named_once(client: SessionClient) -> None:
    one, two = client.send_object([1]), client.send_object([2])
    for args in ((two, one, two), ([two, one], two)):
        payload = client._dump_call(args, {})
        assert isinstance(payload, CallWithInputs)
        assert payload.input_ids() == [1, 0]
    assert type(client._dump_call((1, [2]), {})) is bytes


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_references_outside_of_arguments_are_rejected(client: SessionClient, pickler: Any) -> None:
    ref = client.send_object("data", [1])
    text = r"<ObjectRef 'data', .*> can't be pickled: a reference is for the arguments of submit, map and graphs"
    with pytest.raises(TypeError, match=text):
        pickler.dumps(ref)
    with pytest.raises(TypeError, match=text):
        client.send_object([ref])
    with pytest.raises(TypeError, match=text):
        client._function(lambda: ref)
    with pytest.raises(TypeError, match=text):
        dumps([ref])
    assert copy.copy(ref) is ref and copy.deepcopy([ref])[0] is ref


@pytest.mark.parametrize("args", [lambda ref: (ref,), lambda ref: ([ref, Holder(1)],), lambda ref: (Holder(ref),)])
def test_references_that_cannot_be_passed(client: SessionClient, args: Any) -> None:
    other = SessionClient()
    ref = other.send_object("data", [1])
    with pytest.raises(ValueError, match="^<ObjectRef 'data', .*> belongs to another client: send the object with"):
        client._dump_call(args(ref), {})
    other.session.close("over")
    with pytest.raises(ObjectNotFoundError, match="^<ObjectRef 'data', .*, freed> is not kept any more"):
        other._dump_call((1,), {"key": args(ref)})
    assert issubclass(ObjectNotFoundError, LookupError)


def test_an_unpicklable_argument_is_named_even_beside_references(client: SessionClient) -> None:
    ref = client.send_object([1])
    with pytest.raises(TypeError, match=r"^argument 1 of type _thread\.lock can't be pickled"):
        client._dump_call((ref, threading.Lock()), {})


def test_too_many_references_in_a_call(client: SessionClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "MAX_INPUTS", 2)
    one, two, three = (client.send_object([number]) for number in range(3))
    client._dump_call((one, two, one), {})
    with pytest.raises(ValueError, match="^a call can't refer to more than 2 objects and nodes$"):
        client._dump_call((one, two, three), {})


def test_nested_pickling_of_calls(client: SessionClient) -> None:
    """Each call has its own inputs."""
    one, two = client.send_object([1]), client.send_object([2])
    inner: list[Any] = []

    class Submits:
        def __reduce__(self) -> Any:
            inner.append(client._dump_call((two,), {}))
            return list, ((),)

    outer = client._dump_call((one, Submits(), two), {})
    assert isinstance(outer, CallWithInputs) and outer.input_ids() == [0, 1]
    assert [each.input_ids() for each in inner] == [[1]]


# ---------------------------------------------------------------------------------------------- the client that owns it


def test_the_last_reference_frees_the_object(client: SessionClient) -> None:
    ref: ObjectRef | None = client.send_object([1])
    client.session.pop_outgoing()
    again = ref
    del ref
    gc.collect()
    assert client.session.pop_outgoing() == []
    del again
    gc.collect()
    assert client.session.pop_outgoing() == [messages.ForgetObjects([0])]
    assert len(client.session.objects) == 0


def test_a_reading_task_keeps_the_object(client: SessionClient) -> None:
    future = submit(client, client.send_object(array.array("B", [1])))
    gc.collect()
    assert not [each for each in client.session.pop_outgoing() if isinstance(each, messages.ForgetObjects)]
    client.session.handle(messages.Resolved([future.task_id], [Outcome.VALUE], [dumps(5)]), 1.0)
    gc.collect()
    assert client.session.pop_outgoing() == [messages.ForgetObjects([0])]
    assert future.result(0) == 5


def test_a_reading_graph_keeps_the_object(client: SessionClient) -> None:
    (future,) = client.submit_graph({"a": client.send_object([1, 2]), "b": (sum, "a")}, ["b"])
    cluster = Cluster()
    gc.collect()
    cluster.run(client.session)
    assert future.result(0) == 3
    del future
    gc.collect()
    cluster.run(client.session)
    assert 0 in cluster.forgotten


def test_a_lost_input_raises_its_own_error(client: SessionClient) -> None:
    future = submit(client, 1)
    answer = messages.Resolved([future.task_id], [Outcome.INPUT_LOST], [b"f: object 7 is not there"])
    client.session.handle(answer, 1.0)
    with pytest.raises(ObjectNotFoundError, match=r"(?m)^f: object 7 is not there$"):
        future.result(0)


# -------------------------------------------------------------------------------------------- serializers of the user's


class Text:
    """A serializer of cloudpickle's bytes."""

    @staticmethod
    def serialize(obj: Any) -> bytes:
        if isinstance(obj, Holder):
            raise RuntimeError("not this")
        return b"own" + bytes(cloudpickle.dumps(obj))

    @staticmethod
    def deserialize(payload: bytes) -> Any:
        assert payload.startswith(b"own")
        return cloudpickle.loads(payload[3:])


def test_objects_of_a_custom_serializer() -> None:
    client = SessionClient(serializer=Text)
    ref = client.send_object([1, 2])
    future = submit(client, ref, "text", key=ref)
    (sent,) = [each for each in client.session.pop_outgoing() if isinstance(each, messages.Object)]
    assert b"own" in bytes(sent.frames[0]) and load(sent.frames) == [1, 2]
    client = SessionClient(serializer=Text)
    ref = client.send_object([1, 2])
    future = submit(client, ref, "text", key=ref)
    Cluster().run(client.session)
    assert future.result(0) == (([1, 2], "text"), {"key": [1, 2]})


def test_errors_of_a_custom_serializer() -> None:
    client = SessionClient(serializer=Text)
    with pytest.raises(SerializerError, match=r"^the object of type .*Holder can't be serialized in the client: .*not"):
        client.send_object(Holder(1))
    ref = client.send_object([1])
    with pytest.raises(SerializerError, match="the object of type list can't be serialized .*a reference is for"):
        client.send_object([ref])
    for argument in (ref, [ref]):
        with pytest.raises(ValueError, match="belongs to another client"):
            SessionClient(serializer=Text)._dump_call((argument,), {})
