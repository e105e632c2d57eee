"""Requests beyond the scheduler's limits fail with an error that names the limit. All other work continues."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.commands import SchedulerCommand, cluster, scheduler

from scaler_client import Client, TaskRefusedError
from scaler_client.pickling.functions import _RECENT_FUNCTIONS

SECONDS = 30
WHY = r"function adding.<locals>.<lambda> is rejected: a client may have 2 functions .*\(--client-function-limit\)"

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerCommand]:
    folder = tmp_path_factory.mktemp("client_limits")
    with scheduler(folder, "--client-function-limit", "2") as daemon, cluster(folder, daemon.address, 1):
        yield daemon
        assert "Traceback" not in daemon.log()


def adding(number: int) -> Callable[[int], int]:
    return lambda value: value + number


@pytest.fixture
def client(daemon: SchedulerCommand) -> Iterator[Client]:
    with Client(daemon.address, timeout_seconds=SECONDS) as client:
        yield client


def test_functions_beyond_the_limit(client: Client) -> None:
    first, second, third = adding(1), adding(2), adding(3)
    assert [client.submit(each, 10).result(SECONDS) for each in (first, second)] == [11, 12]
    before, refused, after = client.submit(first, 1), client.submit(third, 1), client.submit(second, 1)
    with pytest.raises(TaskRefusedError, match=WHY):
        refused.result(SECONDS)
    assert not refused.cancel()
    assert (before.result(SECONDS), after.result(SECONDS)) == (2, 3)
    again = client.submit(third, 1)
    again.cancel()
    assert again.done()
    with pytest.raises(TaskRefusedError, match=WHY):
        client.map(third, [(each,) for each in range(5000)])
    with pytest.raises(TaskRefusedError, match=WHY):
        client.get({"a": (third, 1), "b": (first, "a")}, keys=["b"])
    assert client.map(first, [(each,) for each in range(5000)]) == list(range(1, 5001))


def test_peers_beyond_the_limit(tmp_path: Path) -> None:
    with scheduler(tmp_path, "--peer-limit", "1") as daemon, Client(daemon.address, timeout_seconds=SECONDS):
        why = f"^the scheduler at {daemon.address} does not accept this client for now: there is 1 peer already"
        with pytest.raises(ConnectionError, match=why):
            Client(daemon.address, timeout_seconds=1)
        daemon.logged(r"WARNING.*: (client \S+ \(process \d+ on .*\) is refused: there is 1 peer already)")
        assert daemon.log().count("says hello") == 1


def test_dropped_functions_make_room(daemon: SchedulerCommand) -> None:
    with Client(daemon.address, timeout_seconds=SECONDS) as client:
        held = [adding(number) for number in range(2)]
        assert [client.submit(each, 10).result(SECONDS) for each in held] == [10, 11]
        third = operator.itemgetter(0)
        assert isinstance(client.submit(third, [12]).exception(SECONDS), TaskRefusedError)
        held.clear()
        # A client keeps some functions after their last use, until other functions displace them.
        for _ in range(_RECENT_FUNCTIONS):
            last = client.submit(third, [12]).exception(SECONDS)
        assert last is None
