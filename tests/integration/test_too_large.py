"""A message with more bytes than the scheduler takes in one frame fails with an error that says so.

Nothing else fails.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest
from tests.integration.commands import SchedulerCommand, cluster, monitor, scheduler
from tests.waiting import wait_until

from scaler_client import Client, MessageTooLargeError, ResultPickleError
from scaler_client.commands.object_files import directory_of

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 60
LIMIT = 2 << 20
WORKERS = 2

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerCommand]:
    folder = tmp_path_factory.mktemp("too_large")
    with scheduler(folder, "--message-size-limit", "2M") as daemon, cluster(folder, daemon.address, WORKERS):
        with monitor(daemon.monitor_address) as watch:
            wait_until(lambda: watch.next().workers == WORKERS, SECONDS, "all workers have said hello")
        yield daemon


@pytest.fixture
def client(daemon: SchedulerCommand) -> Iterator[Client]:
    """A client whose connection is not lost: the scheduler has not cut it."""
    with Client(daemon.address, timeout_seconds=SECONDS) as client:
        assert client.submit(os.getpid).result(SECONDS)
        with monitor(daemon.monitor_address) as watch:
            before = watch.next().received["hello"]
            yield client
            snapshot = watch.next()
        assert snapshot.received["hello"] == before, "somebody was cut off, and came again"
        assert snapshot.dropped.get("malformed", 0) == 0
    assert "Traceback" not in daemon.log()


def make(log: str, size: int) -> bytes:
    with open(log, "a") as file:
        file.write("x")
    return bytes(size)


def test_arguments(client: Client) -> None:
    before = [client.submit(pow, i, 2) for i in range(100)]
    large = client.submit(len, bytes(LIMIT + 1))
    after = [client.submit(pow, i, 2) for i in range(100)]
    with pytest.raises(
        MessageTooLargeError, match=r"the task has 2,097,\d\d\d bytes in one frame, and the scheduler takes 2,097,152"
    ):
        large.result(SECONDS)
    assert [each.result(SECONDS) for each in (*before, *after)] == [i * i for i in range(100)] * 2
    assert client.submit(len, bytes(LIMIT - 1000)).result(SECONDS) == LIMIT - 1000


def test_an_argument_beyond_all_credit_fails_alone(tmp_path: Path) -> None:
    """Tasks that were submitted behind it wait for no more credit than it gives back."""
    with scheduler(tmp_path, "--message-size-limit", "2M", "--memory-limit", "16M") as daemon:
        with Client(daemon.address, timeout_seconds=SECONDS) as client:
            assert client.map(len, []) == []
            waiting = [client.submit(pow, i, 2) for i in range(10)]
            with pytest.raises(MessageTooLargeError):  # at once: no worker is there
                client.submit(len, bytes(40_000_000)).result(SECONDS)
            futures = client.submit_graph(
                {"large": (len, bytes(40_000_000)), **{f"node {i}": (pow, i, 2) for i in range(3)}},
                keys=["large", *(f"node {i}" for i in range(3))],
            )
            with pytest.raises(MessageTooLargeError):
                futures[0].result(SECONDS)
            with cluster(tmp_path, daemon.address, 2):
                assert [each.result(SECONDS) for each in waiting] == [i * i for i in range(10)]
                assert [each.result(SECONDS) for each in futures[1:]] == [0, 1, 4]


def test_arguments_of_map(client: Client) -> None:
    with pytest.raises(MessageTooLargeError):
        client.map(len, [(b"1",), (bytes(LIMIT + 1),), (b"2",)])
    assert client.map(len, [(bytes(60_000),)] * 200) == [60_000] * 200, "batches of 4 MB are cut in two"


def test_a_function(client: Client) -> None:
    content = os.urandom(LIMIT + 1)
    with pytest.raises(MessageTooLargeError, match="the task's function has"):
        client.submit(lambda: len(content)).result(SECONDS)
    assert client.submit(len, b"12").result(SECONDS) == 2


def test_a_result(client: Client) -> None:
    """For a client on the worker's machine it is a file, and no frame. Workers elsewhere do not find its directory."""
    assert len(client.submit(bytes, LIMIT + 1).result(SECONDS)) == LIMIT + 1
    directory = directory_of(client._connection.io_thread._session.incarnation)
    os.rename(directory, f"{directory}-away")
    try:
        large = client.submit(bytes, LIMIT + 1)
        with pytest.raises(ResultPickleError, match=r"the result has 2,097,\d\d\d bytes in one frame, and the sched"):
            large.result(SECONDS)
    finally:
        os.rename(f"{directory}-away", directory)
    assert list(map(len, client.map(bytes, [(60_000,)] * 200))) == [60_000] * 200


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no /dev/shm here")
def test_a_kept_result(client: Client, tmp_path: Path) -> None:
    log = tmp_path / "runs"
    kept = client.options(keep=True).submit(make, str(log), LIMIT + 1)
    for _ in range(2):
        with pytest.raises(ResultPickleError, match=r"the result has 2,097,\d\d\d bytes in one frame, and the sched"):
            kept.result(SECONDS)
    assert client.submit(len, kept).result(SECONDS) == LIMIT + 1, "tasks can read it on its host"
    assert log.read_text() == "x", "it has run once"


def test_an_object(client: Client) -> None:
    with pytest.raises(MessageTooLargeError, match=r"the object numbers has 2,097,\d\d\d bytes in one frame"):
        client.send_object("numbers", bytes(LIMIT + 1))
    assert client.submit(len, client.send_object(bytes(LIMIT - 1000))).result(SECONDS) == LIMIT - 1000


def test_nodes_of_a_graph(client: Client) -> None:
    graph = {"a": (len, b"1"), "large": (len, bytes(LIMIT + 1)), "after": (pow, "large", "a")}
    a, after = client.submit_graph(graph, keys=["a", "after"])
    assert a.result(SECONDS) == 1
    with pytest.raises(MessageTooLargeError):
        after.result(SECONDS)
    assert client.get({"a": (len, b"1")}, keys=["a"]) == {"a": 1}
