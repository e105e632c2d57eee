"""Hosts that can't be found are said to be so at once, by everything that connects. No name server is asked."""

from __future__ import annotations

import logging
import socket
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
COMPLAINT = "the host nosuchhost can't be found: Name or service not known"


class NameServer:
    """In the place of the system's: it knows no host of that name, until it does."""

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


def test_what_is_found_and_what_is_not(names: NameServer) -> None:
    assert host_problem(ADDRESS) == COMPLAINT
    assert host_problem(parse_connect_address("tcp://127.0.0.1:1")) == ""
    asked = names.asked
    for address in (parse_connect_address("tcp://[::1]:1"), Address("ipc", "", 0, "/tmp/nobody")):
        assert host_problem(address) == "" and names.asked == asked


def test_a_name_that_is_none() -> None:
    assert host_problem(Address("tcp", "a" * 70 + ".b", 1, "")).startswith("the host aaaa")


def test_a_question_is_not_kept_waiting(names: NameServer, capsys: pytest.CaptureFixture[str]) -> None:
    for question in (["status"], ["workers"], ["story", "17"]):
        assert cli.main([*question, str(ADDRESS), "--timeout", "3600"]) == 1
        assert capsys.readouterr().err == f"scaler_client: {ADDRESS}: {COMPLAINT}\n"


def test_scaler_top_for_scripts_is_not_kept_waiting(names: NameServer, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("urwid", reason="scaler_top needs urwid: pip install urwid")
    from scaler_client.top import cli as top

    for option in ("--once", "--json"):
        assert top.main([option, "--timeout", "3600", str(ADDRESS)]) == 1
        assert capsys.readouterr().err == f"scaler_top: {ADDRESS}: {COMPLAINT}\n"


def test_what_watches_for_long_says_so_until_there_is_one(names: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_lookup, "AGAIN_SECONDS", 0.0)
    with MonitorSocket(ADDRESS) as watching:
        wait_until(lambda: watching.connection_problem() == COMPLAINT)
        names.knows = True
        wait_until(lambda: watching.connection_problem() == "")


def test_it_is_looked_for_now_and_then(names: NameServer) -> None:
    look = HostLookup(ADDRESS)
    wait_until(lambda: look.problem() == COMPLAINT)
    assert [look.problem() for _ in range(3)] == [COMPLAINT] * 3 and names.asked == 1


def test_the_clients_log_and_error_say_it(names: NameServer, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConnectionError, match=f"no scheduler answers at {ADDRESS} within 0.3 seconds: {COMPLAINT}"):
        Client(str(ADDRESS), timeout_seconds=0.3)
    wait_until(lambda: caplog.messages == [f"{ADDRESS}: {COMPLAINT}; the lookup is repeated"])


def test_what_goes_on_trying_is_warned_once(names: NameServer, caplog: pytest.LogCaptureFixture) -> None:
    """As scaler_cluster does."""
    warn_if_unresolved(ADDRESS, logging.getLogger("scaler_worker.agent.process"))
    wait_until(lambda: caplog.messages == [f"{ADDRESS}: {COMPLAINT}; the lookup is repeated"])
