"""Client and its I/O thread, with a fake scheduler."""

from __future__ import annotations

import functools
import os
import pickle
import threading
from array import array
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import zmq
from tests.client.running_scheduler import RunningScheduler
from tests.client.scheduler_stand_in import NEVER, WAIT_SECONDS, FakeScheduler
from tests.client.stand_ins import in_threads
from zmq.utils import z85

from scaler_client import Client, ClientClosedError, KeyFileError, ProfilingInfo, TaskTimeoutError
from scaler_client.api import client as client_module
from scaler_client.io import connection
from scaler_client.pickling.call_rows import pack_answer
from scaler_client.pickling.serializer import dumps, loads
from scaler_client.protocol.messages import Outcome


def square(x: int) -> int:
    return x * x


def test_a_long_wait_for_a_scheduler_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection, "SILENCE_WARNING_SECONDS", 0.05)
    with pytest.raises(ConnectionError, match="within 0.02 seconds"):
        Client("tcp://127.0.0.1:1", timeout_seconds=0.02)
    assert caplog.messages == []
    with pytest.raises(ConnectionError, match="within 0.1 seconds"):
        Client("tcp://127.0.0.1:1", timeout_seconds=0.1)
    assert caplog.messages == ["no scheduler answers at tcp://127.0.0.1:1 yet; giving up in 0 s"]


def test_map_names_an_item_that_cannot_be_pickled(client: Client) -> None:
    with pytest.raises(TypeError, match=r"^item 1: argument 0 of type _thread\.lock can't be pickled: ") as raised:
        client.map(square, [(1,), (threading.Lock(),), (3,)])  # type: ignore[list-item]
    assert isinstance(raised.value.__cause__, TypeError)


class Row(NamedTuple):
    x: int
    y: int


UNPACKED = {"x": 1}, {1}, frozenset({1}), range(2), iter([1]), "ab", b"ab", 1, None, memoryview(b"ab"), array("d", [1])


@pytest.mark.parametrize("item", UNPACKED, ids=lambda item: type(item).__name__)
def test_map_unpacks_only_tuples_and_lists(client: Client, item: Any) -> None:
    with pytest.raises(TypeError) as raised:
        client.map(square, [(1,), item])
    text = str(raised.value)
    assert f"item 1 is {type(item).__name__}: " in text and "(item,)" in text and "client.executor().map" in text


def test_map_shortens_a_large_item_in_its_error(client: Client) -> None:
    with pytest.raises(TypeError) as raised:
        client.map(square, [dict.fromkeys(range(10_000))])  # type: ignore[list-item]
    assert len(str(raised.value)) < 400


def test_map_takes_lists_and_named_tuples(running_client: Client) -> None:
    assert running_client.map(divmod, [(7, 2), [8, 3], Row(9, 4)]) == [(3, 1), (2, 2), (2, 1)]


@pytest.mark.parametrize("others", [(), ([0] * 9,), ("abcdefghi", [[]] * 9)], ids=len)
def test_map_takes_a_zip(running_client: Client, others: tuple[Any, ...]) -> None:
    numbers = [0, 1, 2, 3, 1 << 70, [5], 6.0, None, "eight"]
    assert running_client.map(lambda *args: args, zip(numbers, *others)) == list(zip(numbers, *others))
    assert running_client.map(square, zip()) == []


def test_options_are_sent_with_tasks(scheduler: FakeScheduler, client: Client) -> None:
    view = client.options(priority=5, retries=2, timeout=0.25, name="mine", capabilities={"gpu": 2})
    assert type(view) is Client
    future = view.options(priority=-1).submit(square, 3)
    submitted = scheduler.receive("submit")
    assert submitted["options"] == {
        "priority": -1,
        "depth": 0,
        "retries": 2,
        "timeoutMilliseconds": 250,
        "profiling": False,
        "name": "mine",
        "capabilities": [{"name": "gpu", "amount": 2}],
        "streamOutput": False,
        "graph": 0,
        "keys": "",
        "calls": 0,
        "releaseResources": False,
        "gangSize": 0,
    }
    scheduler.resolve(submitted["ids"], dumps(9))
    assert future.result(WAIT_SECONDS) == 9
    plain = client.submit(square, 4)
    submitted = scheduler.receive("submit")
    assert "options" not in submitted
    scheduler.resolve(submitted["ids"], dumps(16))
    assert plain.result(WAIT_SECONDS) == 16


def test_map_takes_options(scheduler: FakeScheduler, client: Client) -> None:
    def answer(number: int) -> object:
        if number:
            return client.options(priority=7).map(square, [(1,), (2,)])
        submitted = scheduler.receive("submit")
        assert submitted["options"]["priority"] == 7 and submitted["options"]["calls"] == 1
        scheduler.resolve(submitted["ids"], pack_answer([0], None, 1000))
        return None

    assert in_threads(2, answer) == [None, [0, 0]]


def test_profiling(scheduler: FakeScheduler, client: Client) -> None:
    for view, keywords in ((client, {"profiling": True}), (client.options(profiling=True), {})):
        future = view.submit(square, 1, **keywords)
        submitted = scheduler.receive("submit")
        assert submitted["options"]["profiling"]
        scheduler.resolve(submitted["ids"], dumps(0), durations=[1_500_600], cpuTimes=[400_400], peaks=[1 << 30])
        future.result(WAIT_SECONDS)
        assert future.profiling_info() == ProfilingInfo(1501, 400, 1 << 30)
    unmeasured = client.options(profiling=True).submit(square, 1, profiling=False)
    submitted = scheduler.receive("submit")
    assert "options" not in submitted
    scheduler.resolve(submitted["ids"], dumps(0))
    unmeasured.result(WAIT_SECONDS)
    with pytest.raises(ValueError, match="submit it with profiling=True"):
        unmeasured.profiling_info()


def profiled(x: int, profiling: Any = "default") -> tuple[int, Any]:
    return x, profiling


def test_profiling_goes_to_a_function_with_such_a_parameter(running: RunningScheduler, running_client: Client) -> None:
    for given in ("cpu", True, None):
        assert running_client.submit(profiled, 1, profiling=given).result(WAIT_SECONDS) == (1, given)
    view = running_client.options(profiling=True)
    assert view.submit(profiled, 1, profiling="cpu").result(WAIT_SECONDS) == (1, "cpu")
    assert running_client.submit(functools.partial(profiled, 2), profiling=False).result(WAIT_SECONDS) == (2, False)
    assert running_client.submit(dict, profiling=True, x=1).result(WAIT_SECONDS) == {"x": 1}
    assert [each.get("profiling") for each in running.options] == [None] * 3 + [True, None, True]
    with pytest.raises(TypeError, match="profiling must be True or False, not 'cpu'"):
        running_client.submit(square, 1, profiling="cpu")
    assert running_client.executor().submit(profiled, 3, profiling=True).result(WAIT_SECONDS) == (3, True)


class OwnClient(Client):
    """A subclass with an attribute, as a program may define it."""

    def __init__(self, address: str, tag: str) -> None:
        super().__init__(address)
        self.tag = tag

    def tagged(self, x: int) -> tuple[str, Any]:
        return self.tag, self.submit(square, x).result(WAIT_SECONDS)


def test_a_pickled_subclass_keeps_its_class(running: RunningScheduler) -> None:
    with OwnClient(running.address, "a") as client:
        with pickle.loads(pickle.dumps(client.options(name="mine"))) as other:
            assert type(other) is OwnClient and other.tagged(3) == ("a", 9)
            assert other._options.name == "mine"
    with Client(running.address) as plain:
        assert vars(plain).keys() <= client_module.CONNECTION_ATTRIBUTES


def test_a_client_can_profile_all_tasks(scheduler: FakeScheduler) -> None:
    with Client(scheduler.address, profiling=True) as client:
        client.submit(square, 1)
        assert scheduler.receive("submit")["options"]["profiling"]
        client.submit(square, 1, profiling=False)
        assert "options" not in scheduler.receive("submit")


def test_a_task_beyond_its_timeout_raises(scheduler: FakeScheduler, client: Client) -> None:
    future = client.options(timeout=1).submit(square, 1)
    scheduler.resolve(scheduler.receive("submit")["ids"], b"square ran for more than 1 s", Outcome.TIMED_OUT)
    with pytest.raises(TaskTimeoutError, match="more than 1 s") as raised:
        future.result(WAIT_SECONDS)
    assert isinstance(raised.value, TimeoutError)


def test_cancel_by_force(scheduler: FakeScheduler, client: Client) -> None:
    future = client.submit(square, 1)
    ids = scheduler.receive("submit")["ids"]
    scheduler.say("started", ids=ids)

    def cancel(number: int) -> object:
        if number:
            return future.cancel(force=True)
        cancelled = scheduler.receive("cancel")
        scheduler.resolve(ids, b"", Outcome.CANCELLED)
        return cancelled

    assert in_threads(2, cancel) == [{"ids": ids, "force": [1]}, True]
    assert future.cancelled()


def test_functions_with_retry_on_are_sent_wrapped(scheduler: FakeScheduler, client: Client) -> None:
    client.options(retry_on=(OSError, ValueError)).submit(square, 3)
    function = scheduler.receive("function")
    shipped = loads(scheduler.payloads[0])
    assert function["name"] == "square"
    assert (shipped(3), shipped.retry_on) == (9, (OSError, ValueError))
    assert scheduler.receive("submit")["options"]["retries"] == 3
    client.options(retries=1).options(retry_on=OSError).submit(square, 3)
    assert scheduler.receive("submit")["options"]["retries"] == 1


def test_a_restarted_scheduler_is_found_at_once(scheduler: FakeScheduler, client: Client) -> None:
    future = client.submit(square, 1)
    scheduler.receive("submit")
    scheduler.close()
    again = FakeScheduler(scheduler.address, incarnation=6)
    try:
        submitted = again.receive("submit")
        again.resolve(submitted["ids"], dumps(1))
        assert future.result(WAIT_SECONDS) == 1
        assert again.hellos == [{**hello, "scheduler": 5} for hello in scheduler.hellos]
    finally:
        client.disconnect()
        again.close()


def test_the_first_connection_needs_no_heartbeat(scheduler: FakeScheduler, client: Client) -> None:
    client.submit(square, 1)
    assert scheduler.receive_until("submit") == ["hello", "function", "submit"]


# ------------------------------------------------------------------------------------------------------------- pickling


class Doubling:
    """A custom serializer."""

    @staticmethod
    def serialize(obj: object) -> bytes:
        return pickle.dumps((obj, obj))

    @staticmethod
    def deserialize(payload: bytes) -> object:
        return pickle.loads(payload)[0]


def test_an_unpickled_client_connects_as_a_new_one(scheduler: FakeScheduler) -> None:
    with Client(
        scheduler.address, profiling=True, timeout_seconds=7, heartbeat_interval_seconds=NEVER, serializer=Doubling
    ) as client:
        with pickle.loads(pickle.dumps(client.options(priority=3))) as other:
            assert type(other) is Client and other.address == client.address
            other.submit(square, 4)
            function = scheduler.receive("function")
            assert function["name"] == "square"
            assert loads(scheduler.payloads[0])(("int", Doubling.serialize(4))) == ("int", Doubling.serialize(16))
            options = scheduler.receive("submit")["options"]
            assert (options["priority"], options["profiling"]) == (3, True)
            assert (other._settings.timeout_seconds, other._settings.heartbeat_interval_seconds) == (7, NEVER)
        incarnations = {hello["incarnation"] for hello in scheduler.hellos}
        assert len(incarnations) == 2
        client.submit(square, 4)


class Shifting:
    """A custom serializer with state."""

    def __init__(self, shift: int) -> None:
        self._shift = shift

    def serialize(self, obj: object) -> bytes:
        return bytes((byte + self._shift) % 256 for byte in pickle.dumps(obj))

    def deserialize(self, payload: bytes) -> object:
        return pickle.loads(bytes((byte - self._shift) % 256 for byte in payload))


def test_an_unpickled_client_keeps_everything(running: RunningScheduler) -> None:
    with Client(running.address, serializer=Shifting(3), stream_output=True) as client:
        view = client.options(
            timeout=9, retries=2, retry_on=OSError, priority=3, name="mine", capabilities=["gpu"], profiling=True
        )
        with pickle.loads(pickle.dumps(view)) as other:
            assert other._options == view._options
            assert other.submit(square, 4).result(WAIT_SECONDS) == 16
            assert other.map(square, [(5,)]) == [25]
            assert other.options(name="other").executor().submit(square, 6).result(WAIT_SECONDS) == 36
        assert view.submit(square, 7).result(WAIT_SECONDS) == 49
    assert [each.pop("name") for each in running.options] == ["mine", "mine", "other", "mine"]
    assert running.options == [running.options[0]] * 4
    assert running.options[0]["streamOutput"] is True


# ------------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"address": 2345}, TypeError, "address must be a string or a local cluster, not 2345"),
        ({"address": ""}, ValueError, "bad address ''"),
        ({"address": "127.0.0.1:2345"}, ValueError, "bad address '127.0.0.1:2345'"),
        ({"profiling": 1}, TypeError, "profiling must be True or False, not 1"),
        ({"stream_output": "yes"}, TypeError, "stream_output must be True or False, not 'yes'"),
        ({"timeout_seconds": "60"}, TypeError, "timeout_seconds must be a number, not '60'"),
        ({"timeout_seconds": True}, TypeError, "timeout_seconds must be a number, not True"),
        ({"timeout_seconds": 0}, ValueError, "timeout_seconds must be a number of seconds above 0 and at most .*"),
        ({"heartbeat_interval_seconds": float("nan")}, ValueError, "heartbeat_interval_seconds must .*, not nan"),
        ({"serializer": pickle}, TypeError, "serializer <module 'pickle'.* has no method serialize"),
    ],
)
def test_bad_arguments(scheduler: FakeScheduler, arguments: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Client(**{"address": scheduler.address, **arguments})
    assert not scheduler.hellos


def test_a_view_is_its_client(client: Client) -> None:
    view = client.options(priority=1)
    view.disconnect()
    for each in (view, client):
        with pytest.raises(ClientClosedError, match="disconnected"):
            each.submit(square, 1)


def test_a_view_in_a_forked_child(client: Client) -> None:
    view = client.options(priority=1)
    child = os.fork()
    if not child:
        try:
            view.submit(square, 1)
        except ClientClosedError as error:
            os._exit(0 if "parent process" in str(error) else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_keys_without_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A local cluster would ignore them."""
    monkeypatch.delenv("SCALER_ADDRESS", raising=False)
    with pytest.raises(KeyFileError, match="there is no folder of keys at .*/nokeys$"):
        Client(keys=tmp_path / "nokeys")
    with pytest.raises(KeyFileError, match="cannot read the key .*/client.secret"):
        Client(keys=tmp_path)
    for name in ("server", "client"):
        public, secret = zmq.curve_keypair()
        for suffix, key in ((".key", public), (".secret", secret)):
            path = tmp_path / (name + suffix)
            path.write_text(z85.decode(key).hex() + "\n")
            path.chmod(0o600)
    with pytest.raises(ValueError, match="^keys= needs the address of the scheduler, as an argument or in SCALER_ADDR"):
        Client(keys=tmp_path)
