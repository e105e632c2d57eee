"""What clients are told about the hosts. Runs under PyPy and CPython."""

from __future__ import annotations

import pytest
from tests.scheduler.core.harness import C, Core, W

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.report.hosts import ANSWER_SECONDS, HOSTS_LIMIT, PACKAGES_LIMIT


def join_agent(core: Core, number: int, packages: str) -> bytes:
    route = b"agent %d" % number
    event = events.Hello(
        route, 1, events.AGENT, 5000 + number, 0, "python 3.11.7", "1.2.3", f"node-{number}", 7, "a", packages=packages
    )
    core.feed(event)
    core.take_one("welcome", route)
    return route


def ask(core: Core, route: bytes = C) -> effects.HeartbeatEcho:
    core.feed(events.Heartbeat(route, 9, [], wants_hosts=True))
    core.take_one("echo", route, 9)
    return core.echoes[route]


def rows(echo: effects.HeartbeatEcho) -> list[tuple[str, str, str, int, int]]:
    return [(host.name, host.language, host.version, host.packages, host.clock_ms) for host in echo.hosts]


def test_hosts_with_equal_packages_share_a_list(core: Core) -> None:
    core.client(C, 1)
    for number, packages in enumerate(("numpy 1\n", "numpy 2\n", "numpy 1\n", "")):
        join_agent(core, number, packages)
    echo = ask(core)
    assert list(echo.packages) == ["numpy 1\n", "numpy 2\n"]
    assert [row[0] for row in rows(echo)] == ["node-0", "node-1", "node-2", "node-3"]
    assert [row[3] for row in rows(echo)] == [1, 2, 1, 0]
    assert rows(echo)[0][1:3] == ("python 3.11.7", "1.2.3")


def test_a_clock_goes_on_after_the_heartbeat(core: Core) -> None:
    core.client(C, 1)
    route = join_agent(core, 0, "")
    assert rows(ask(core))[0][4] == 0, "no heartbeat has told it"
    core.feed(events.Heartbeat(route, 1, [], clock_ms=1_700_000_000_000))
    core.take()
    core.wait(2.5)
    assert rows(ask(core))[0][4] == 1_700_000_002_500


def test_a_client_is_told_once_in_a_while(core: Core) -> None:
    core.client(C, 1)
    join_agent(core, 0, "numpy 1\n")
    assert len(ask(core).hosts) == 1
    assert (list(ask(core).hosts), list(ask(core).packages)) == ([], []), "the heartbeat itself is answered"
    core.wait(ANSWER_SECONDS)
    assert len(ask(core).hosts) == 1


def test_only_clients_are_told(core: Core) -> None:
    core.worker(W, 22)
    join_agent(core, 0, "numpy 1\n")
    assert list(ask(core, W).hosts) == []
    core.client(C, 1)
    core.heartbeat(C)
    assert list(core.echoes[C].hosts) == []


@pytest.mark.parametrize("hosts", [HOSTS_LIMIT, HOSTS_LIMIT + 1])
def test_the_answer_is_bounded(core: Core, hosts: int) -> None:
    core.client(C, 1)
    for number in range(hosts):
        join_agent(core, number, f"numpy {number}\n")
    echo = ask(core)
    assert len(echo.hosts) == HOSTS_LIMIT and len(echo.packages) == PACKAGES_LIMIT
    assert [row[3] for row in rows(echo)] == [*range(1, PACKAGES_LIMIT + 1)] + [0] * (HOSTS_LIMIT - PACKAGES_LIMIT)
