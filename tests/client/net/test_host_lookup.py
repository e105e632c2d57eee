"""Unknown hosts are reported at once by everything that connects. The tests use no real name server."""

from __future__ import annotations

import logging
import socket
import sys
from typing import Any

import pytest
from tests.waiting import wait_until

from scaler_client import Client
from scaler_client.commands.addresses import Address, parse_connect_address
from scaler_client.inspect import cli
from scaler_client.monitor.socket import MonitorSocket
from scaler_client.net import host_lookup
from scaler_client.net.host_lookup import HostLookup, host_problem, warn_if_unresolved

ADDRESS = parse_connect_address("tcp://nosuchhost:2345")
PROBLEM = "the host nosuchhost can't be found: Name or service not known"


class NameServer:
    """Replaces the system's name lookup. It knows the host only when the test says so."""

    def __init__(self) -> None:
        self.asked = 0
        self.knows = False

    def __call__(self, host: str, *_: Any) -> list[Any]:
        self.asked += 1
        if host == "nosuchhost" and not self.knows:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return []


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> NameServer:
    server = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", server)
    return server


def test_found_and_unknown_hosts(names: NameServer) -> None:
    assert host_problem(ADDRESS) == PROBLEM
    assert host_problem(parse_connect_address("tcp://127.0.0.1:1")) == ""
    asked = names.asked
    for address in (parse_connect_address("tcp://[::1]:1"), Address("ipc", "", 0, "/tmp/nobody")):
        assert host_problem(address) == "" and names.asked == asked


def test_an_invalid_host_name() -> None:
    assert host_problem(Address("tcp", "a" * 70 + ".b", 1, "")).startswith("the host aaaa")


def test_a_command_reports_an_unknown_host_at_once(names: NameServer, capsys: pytest.CaptureFixture[str]) -> None:
    for question in (["status"], ["workers"], ["story", "17"]):
        assert cli.main([*question, str(ADDRESS), "--timeout", "3600"]) == 1
        assert capsys.readouterr().err == f"scaler_client: {ADDRESS}: {PROBLEM}\n"


def test_scaler_top_for_scripts_reports_an_unknown_host_at_once(
    names: NameServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "urwid", None)  # it is not installed
    from scaler_client.top import cli as top

    for option in ("--once", "--json"):
        assert top.main([option, "--timeout", "3600", str(ADDRESS)]) == 1
        assert capsys.readouterr().err == f"scaler_top: {ADDRESS}: {PROBLEM}\n"


def test_a_long_running_monitor_shows_the_problem_until_the_host_is_found(
    names: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_lookup, "AGAIN_SECONDS", 0.0)
    with MonitorSocket(ADDRESS) as watching:
        wait_until(lambda: watching.connection_problem() == PROBLEM)
        names.knows = True
        wait_until(lambda: watching.connection_problem() == "")


def test_the_lookup_is_repeated(names: NameServer) -> None:
    look = HostLookup(ADDRESS)
    wait_until(lambda: look.problem() == PROBLEM)
    assert [look.problem() for _ in range(3)] == [PROBLEM] * 3 and names.asked == 1


def test_the_clients_log_and_error_name_the_problem(names: NameServer, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConnectionError, match=f"no scheduler answers at {ADDRESS} within 0.3 seconds: {PROBLEM}"):
        Client(str(ADDRESS), timeout_seconds=0.3)
    wait_until(lambda: caplog.messages == [f"{ADDRESS}: {PROBLEM}; the lookup is repeated"])


def test_a_process_that_keeps_trying_warns_once(names: NameServer, caplog: pytest.LogCaptureFixture) -> None:
    """scaler_cluster is such a process."""
    warn_if_unresolved(ADDRESS, logging.getLogger("scaler_worker.agent.process"))
    wait_until(lambda: caplog.messages == [f"{ADDRESS}: {PROBLEM}; the lookup is repeated"])
