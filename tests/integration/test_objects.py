"""Objects, with real processes: references in arguments, the cost of objects, and when they are freed."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import numpy
import psutil
import pytest
from tests.integration.commands import (
    STOP_SECONDS,
    Command,
    SchedulerCommand,
    cluster,
    environment,
    is_alive,
    monitor,
    scheduler,
)
from tests.integration.host_files import directory_of, files_of
from tests.integration.restarts import OFTEN, restarts
from tests.waiting import wait_until

from scaler_client import Client, ClientClosedError, ObjectNotFoundError, ObjectRef, SerializerError
from scaler_client.commands.object_files import STORAGE_FILES

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 60
WORKERS = 4
SIZE = 200 << 20
LARGE = 1 << 20
"""The size of an object that becomes a file: one megabyte."""


class Host(NamedTuple):
    daemon: SchedulerCommand
    command: Command


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A scheduler and a cluster for one test, with short heartbeat intervals."""
    with scheduler(tmp_path, "--client-timeout-seconds", "2", "--worker-timeout-seconds", "2") as daemon:
        with cluster(tmp_path, daemon.address, 2, *OFTEN) as command:
            yield Host(daemon, command)


def connected(host: Host) -> Client:
    return Client(host.daemon.address, heartbeat_interval_seconds=0.2)


def total(*args: Any, **kwargs: Any) -> int:
    """Return the sum of all numbers, at any depth."""
    result = 0
    stack = [*args, *kwargs.values()]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack += value.values()
        elif isinstance(value, (list, tuple, set)):
            stack += value
        else:
            result += int(numpy.sum(value))
    return result


# ------------------------------------------------------------------------------------------------- where they may stand


def test_ways_to_call_send_object(client: Client) -> None:
    for ref, name in (
        (client.send_object("large_object", [1, 2, 3]), "large_object"),
        (client.send_object([1, 2, 3]), ""),
        (client.send_object([1, 2, 3], name="x"), "x"),
    ):
        assert isinstance(ref, ObjectRef) and ref.name == name
        assert client.submit(sum, ref).result(SECONDS) == 6


@pytest.mark.parametrize("size", [3, LARGE // 8], ids=["in messages", "in a file"])
def test_references_anywhere_in_arguments(client: Client, size: int) -> None:
    array = numpy.arange(size)
    ref, other, expected = client.send_object(array), client.send_object([1]), int(array.sum())
    calls: list[tuple[tuple[Any, ...], dict[str, Any], int]] = [
        ((ref,), {}, expected),
        ((), {"x": ref}, expected),
        ((ref, 1), {"x": ref, "y": other}, 2 * expected + 2),
        (([ref, (ref, {"k": [ref, other]})],), {}, 3 * expected + 1),
        (({"a": {"b": ref}},), {"c": {"d": (other, other)}}, expected + 2),
    ]
    for args, kwargs, result in calls:
        assert client.submit(total, *args, **kwargs).result(SECONDS) == result
    assert client.map(total, [(ref, i, [other]) for i in range(50)]) == [expected + i + 1 for i in range(50)]
    assert client.options(priority=2).submit(total, ref).result(SECONDS) == expected
    graph = {
        "ref": ref, "alias": "ref", "sum": (total, "alias"), "argument": (total, ref), "deep": (total, {"k": [ref]}),
        "call": (total, (total, ref), other),
    }  # fmt: skip
    got = client.get(graph, list(graph))
    assert (got.pop("ref") == array).all() and (got.pop("alias") == array).all()
    assert got == {"sum": expected, "argument": expected, "deep": expected, "call": expected + 1}
    with client.executor() as executor:
        assert list(executor.map(total, [ref, other])) == [expected, 1]


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        b"",
        {"a": [1]},
        {1, 2},
        bytes(LARGE),
        "x" * LARGE,
        lambda x: x + 1,
        int,
        numpy.array(5),
        numpy.zeros(0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_kinds_of_objects(client: Client, value: Any) -> None:
    ref = client.send_object(value)
    if callable(value):
        assert client.submit(lambda fn: fn(1), ref).result(SECONDS) == value(1)
    else:
        got = client.submit(lambda x: x, ref).result(SECONDS)
        assert type(got) is type(value) and (numpy.array_equal(got, value) or got == value)


def test_bad_input(client: Client) -> None:
    with pytest.raises(TypeError, match="the object of type _thread.lock can't be pickled"):
        client.send_object(threading.Lock())
    with pytest.raises(TypeError, match="an object's name must be a string, not 3"):
        client.send_object(3, [1])  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="an object's name must be a string, not None"):
        client.send_object([1], name=None)  # type: ignore[call-overload]
    ref = client.send_object([1])
    assert copy.copy(ref) is ref and copy.deepcopy([ref])[0] is ref
    for outside in (lambda: pickle.dumps(ref), lambda: client.submit(lambda: ref)):
        with pytest.raises(TypeError, match="a reference is for the arguments of submit, map and graphs"):
            outside()


def test_references_of_other_clients_and_of_freed_objects(host: Host) -> None:
    with connected(host) as client, connected(host) as other:
        ref = client.send_object("mine", [1, 2])
        uses: list[Callable[[Client], object]] = [
            lambda user: user.submit(sum, ref),
            lambda user: user.map(sum, [(ref,)]),
            lambda user: user.get({"a": (sum, ref)}, ["a"]),
            lambda user: user.submit_graph({"a": [ref]}, ["a"]),
        ]
        for use in uses:
            with pytest.raises(ValueError, match="<ObjectRef 'mine', .* belongs to another client"):
                use(other)
        begun = client.submit(sum, ref)
        assert begun.result(SECONDS) == 3
        client.clear()
        for use in uses:
            with pytest.raises(ObjectNotFoundError, match="<ObjectRef 'mine'"):
                use(client)
        again = client.send_object([4])
        assert client.submit(sum, again).result(SECONDS) == 4
        client.disconnect()
        with pytest.raises(ObjectNotFoundError):
            other.submit(sum, again)
        with pytest.raises(ClientClosedError):
            client.send_object([1])


def test_send_object_inside_tasks(client: Client) -> None:
    def parent(inner: Client, given: list[int], size: int) -> int:
        ref = inner.send_object(numpy.full(size, 2))
        with Client() as own:
            children = [own.submit(total, ref, given), inner.submit(total, [ref, ref])]
            of_graph: int = inner.get({"a": ref, "b": (total, "a")}, ["b"])["b"]
            return sum(child.result() for child in children) + of_graph

    shared = client.send_object([1, 2])
    sizes = [1, 10, LARGE // 4, LARGE // 2]
    futures = [client.submit(parent, client, shared, size) for size in sizes]
    assert [future.result(SECONDS) for future in futures] == [8 * size + 3 for size in sizes]


def test_send_object_in_many_threads(client: Client) -> None:
    def use(number: int) -> int:
        refs = [client.send_object([number, i]) for i in range(20)]
        return sum(future.result(SECONDS) for future in [client.submit(total, ref) for ref in refs])

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(use, range(16))) == [20 * number + 190 for number in range(16)]


def test_serializers_that_raise_are_named(host: Host) -> None:
    class Fragile:
        @staticmethod
        def serialize(obj: Any) -> bytes:
            if obj == "no":
                raise ValueError("not this")
            return bytes(cloudpickle.dumps(obj))

        @staticmethod
        def deserialize(payload: bytes) -> Any:
            value = cloudpickle.loads(payload)
            if value == "not there":
                raise KeyError("not that")
            return value

    with Client(host.daemon.address, serializer=Fragile) as client:
        with pytest.raises(SerializerError, match=r"^the object of type str can't be serialized in the client: Value"):
            client.send_object("no")
        with pytest.raises(
            SerializerError, match=r"^node 'a' of the graph: argument 0 of type str can't be serialized"
        ):
            client.get({"a": (len, "no")}, ["a"])
        ref = client.send_object("not there")
        graph = {"a": (len, ref), "b": (len, "a"), "c": (lambda: "no",), "d": (len, "c"), "e": (len, "fine")}
        futures = dict(zip(graph, client.submit_graph(graph, list(graph))))
        for key, text in (("a", "the object of type str can't be deserialized on the worker: KeyError"),
                          ("d", r"type str can't be serialized on the worker: ValueError\('not this'\)")):  # fmt: skip
            with pytest.raises(SerializerError, match=text):
                futures[key].result(SECONDS)
        assert isinstance(futures["b"].exception(SECONDS), SerializerError)
        assert futures["e"].result(SECONDS) == 4


# ------------------------------------------------------------------------------------------------------- what they cost


def look_at(array: Any, _: int) -> tuple[int, bool, int]:
    return int(array[::4096].sum()) + int(array.sum() & 0), array.flags.writeable, os.getpid()


def seen_by_all(client: Client, ref: ObjectRef, expected: int) -> None:
    """Let each worker read the array."""
    seen: set[int] = set()
    while len(seen) < WORKERS:
        for value, is_writeable, pid in client.map(look_at, [(ref, i) for i in range(2 * WORKERS)]):
            assert (value, is_writeable) == (expected, False)
            seen.add(pid)


def held_by(pid: int, *fields: str) -> int:
    """Return the sum of these fields of a process in the system's memory statistics, in bytes."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    found = dict(re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE))
    return sum(int(found[field]) << 10 for field in fields)


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="this system does not count memory like this")
def test_a_host_has_an_array_once_for_all_workers(tmp_path: Path) -> None:
    with scheduler(tmp_path) as daemon, cluster(tmp_path, daemon.address, WORKERS, *OFTEN) as command:
        with Client(daemon.address, heartbeat_interval_seconds=0.2) as client:
            with monitor(daemon.monitor_address) as watch:
                wait_until(lambda: watch.next().workers == WORKERS)
            seen_by_all(client, client.send_object(numpy.zeros(LARGE, int)), 0)  # now they have imported numpy
            family = [command.process.pid, *(process.pid for process in command.descendants())]
            before = sum(held_by(pid, "Pss") for pid in family)
            array = numpy.arange(SIZE // 8)
            expected = int(array[::4096].sum())
            ref = client.send_object("array", array)
            seen_by_all(client, ref, expected)
            (name,) = files_of(command)
            directory = directory_of(command.process.pid)
            status = (directory / name).stat()
            assert stat.S_IMODE(status.st_mode) == 0o600 and stat.S_IMODE(directory.stat().st_mode) == 0o700
            assert SIZE <= status.st_size < SIZE + LARGE and status.st_uid == os.getuid()
            cost = sum(held_by(pid, "Pss") for pid in family) - before
            assert SIZE * 0.9 < cost < SIZE * 1.2, f"{cost >> 20} MB for {WORKERS} workers"
            del ref
            gc.collect()
            wait_until(lambda: not files_of(command))
            wait_until(
                lambda: sum(held_by(pid, "Pss") for pid in family) - before < SIZE * 0.2, what="the array is unmapped"
            )


def test_more_objects_than_the_credit(tmp_path: Path) -> None:
    """Objects of a client do not delay its tasks. Objects beyond the limit are refused, and the error names them."""
    with scheduler(tmp_path, "--memory-limit", "64M") as daemon, cluster(tmp_path, daemon.address, 2):
        with Client(daemon.address) as client:
            refs = [client.send_object(numpy.full(10 * LARGE // 8, i)) for i in range(8)]
            futures = [client.submit(total, ref) for ref in refs]
            assert [future.result(SECONDS) for future in futures[:6]] == [i * 10 * LARGE // 8 for i in range(6)]
            for future in futures[6:]:
                with pytest.raises(ObjectNotFoundError, match="total: object .* is not there"):
                    future.result(SECONDS)
            del refs, futures, future
            for i in range(30):  # one after the other, any number fits
                assert client.submit(total, client.send_object(numpy.full(20 * LARGE // 8, i))).result(SECONDS) >= i


# -------------------------------------------------------------------------------------------------------- freed objects


@contextmanager
def shared_by(host: Host) -> Iterator[tuple[Client, list[ObjectRef]]]:
    """Return a client with objects that both workers have read."""
    with connected(host) as client:
        refs = [client.send_object(numpy.full(LARGE, i)) for i in range(3)]
        refs.append(client.send_object([1]))  # too small for a file
        assert client.map(total, [(ref,) for ref in refs] * 4) == [0, LARGE, 2 * LARGE, 1] * 4
        assert len(files_of(host.command)) == 3
        yield client, refs


def test_an_object_is_freed_with_its_last_reference(host: Host) -> None:
    with shared_by(host) as (client, refs):
        del refs[1:]
        gc.collect()
        wait_until(lambda: len(files_of(host.command)) == 1)
        running = client.submit(total, refs[0])
        refs.clear()
        assert running.result(SECONDS) == 0, "a task that reads it keeps it"
        wait_until(lambda: not files_of(host.command))


def test_objects_are_freed_by_clear_and_disconnect(host: Host) -> None:
    with shared_by(host) as (client, refs):
        client.clear()
        wait_until(lambda: not files_of(host.command))
        again = client.send_object(numpy.zeros(LARGE))
        assert client.submit(total, again).result(SECONDS) == 0
        assert len(files_of(host.command)) == 1
        client.disconnect()
        wait_until(lambda: not files_of(host.command))
        assert refs and again


CLIENT = """
import sys
import numpy
from scaler_client import Client
client = Client(sys.argv[1], heartbeat_interval_seconds=0.2)
ref = client.send_object(numpy.zeros(1 << 20))
print(client.submit(len, ref).result(), flush=True)
sys.stdin.readline()
"""


def test_objects_of_a_killed_client_are_freed(host: Host) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CLIENT, host.daemon.address],
        env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None and process.stdout.readline() == f"{LARGE}\n"
        assert len(files_of(host.command)) == 1
    finally:
        process.kill()
        process.communicate()
    wait_until(lambda: not files_of(host.command))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["terminated", "killed"])
def test_objects_are_freed_with_the_agent(host: Host, number: signal.Signals) -> None:
    with shared_by(host) as (_, refs):
        directory = directory_of(host.command.process.pid)
        host.command.descendants()
        host.command.process.send_signal(number)
        host.command.process.wait(STOP_SECONDS)
        wait_until(lambda: not directory.exists())
        wait_until(lambda: not any(map(is_alive, host.command.seen.values())))
        assert refs


def test_files_of_a_killed_host_are_removed_by_the_next_agent(host: Host, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    with shared_by(host) as (client, refs):
        directory = directory_of(host.command.process.pid)
        processes = [psutil.Process(host.command.process.pid), *host.command.descendants()]
        for process in processes:
            process.suspend()  # otherwise the remaining process would remove the files
        # Once they are dead, an agent of another test may remove the files too.
        assert len(set(os.listdir(directory)).difference(STORAGE_FILES)) == 3
        for process in processes:
            process.kill()
        host.command.process.wait()
        wait_until(lambda: not any(map(is_alive, processes)))
        with cluster(second, host.daemon.address, 2, *OFTEN) as other:
            assert client.map(total, [(ref,) for ref in refs]) == [0, LARGE, 2 * LARGE, 1]
            # A worker may join before its agent. Then it gets an object itself, without a file.
            assert not directory.exists() and len(files_of(other)) <= 3


def test_replaced_workers_get_the_objects_again(host: Host) -> None:
    with shared_by(host) as (client, refs):
        workers = set(client.map(lambda *_: os.getpid(), [(i,) for i in range(20)]))
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        assert client.map(total, [(ref,) for ref in refs] * 5) == [0, LARGE, 2 * LARGE, 1] * 5
        assert len(files_of(host.command)) == 3


@pytest.mark.parametrize("way", ["kill", "stop"])
def test_a_restarted_scheduler_is_sent_the_objects_again(tmp_path: Path, way: str) -> None:
    with restarts(tmp_path) as daemon, cluster(tmp_path, daemon.now.address, 2, *OFTEN) as command:
        with Client(daemon.now.address, heartbeat_interval_seconds=0.2) as client:
            refs = [client.send_object(numpy.full(LARGE, 1)), client.send_object([2]), client.send_object(bytes(LARGE))]
            assert client.submit(total, refs[0], refs[1]).result(SECONDS) == LARGE + 2
            for _ in range(2):
                del refs[2:]
                daemon.kill() if way == "kill" else daemon.stop()
                daemon.start(daemon.now.address)
                refs.append(client.send_object([3]))
                assert client.submit(total, refs).result(SECONDS) == LARGE + 5
                assert len(files_of(command)) <= 1, "nothing of the last scheduler's is left"
            del refs
            wait_until(lambda: not files_of(command))
