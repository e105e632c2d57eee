"""Parsing of addresses. Runs under PyPy and CPython."""

from __future__ import annotations

import dataclasses
import os

import pytest

from scaler_scheduler.commands import addresses

GOOD_ADDRESSES = [
    ("tcp://127.0.0.1:2345", ("tcp", "127.0.0.1", 2345, ""), "tcp://127.0.0.1:2345"),
    (" tcp://some-host_1.example:1 ", ("tcp", "some-host_1.example", 1, ""), "tcp://some-host_1.example:1"),
    ("tcp://[::1]:2345", ("tcp", "::1", 2345, ""), "tcp://[::1]:2345"),
    ("tcp://[fe80::1%eth0]:65535", ("tcp", "fe80::1%eth0", 65535, ""), "tcp://[fe80::1%eth0]:65535"),
    (
        "ipc:///tmp/scaler-addresses-of-tests",
        ("ipc", "", 0, "/tmp/scaler-addresses-of-tests"),
        "ipc:///tmp/scaler-addresses-of-tests",
    ),
    ("ipc://@abstract", ("ipc", "", 0, "@abstract"), "ipc://@abstract"),
]


@pytest.mark.parametrize("text, parts, shown", GOOD_ADDRESSES)
def test_addresses(text, parts, shown):
    for parse in (addresses.parse_bind_address, addresses.parse_connect_address):
        address = parse(text)
        assert dataclasses.astuple(address) == parts
        assert str(address) == shown
        assert address.is_ipv6 == ("[" in text)


@pytest.mark.parametrize(
    "text", ["tcp://127.0.0.1:0", "tcp://127.0.0.1:*", "tcp://*:0", "tcp://*:2345", "tcp://[::]:*"]
)
def test_addresses_for_binding_only(text):
    assert str(addresses.parse_bind_address(text)) == text.replace(":0", ":*")
    with pytest.raises(addresses.AddressError, match="only for binding"):
        addresses.parse_connect_address(text)


BAD_ADDRESSES = [
    ("", "must be tcp"),
    ("127.0.0.1:2345", "must be tcp"),
    ("udp://127.0.0.1:2345", "must be tcp"),
    ("tcp:/127.0.0.1:2345", "must be tcp"),
    ("tcp://127.0.0.1", "port is missing"),
    ("tcp://[::1]", "port is missing"),
    ("tcp://127.0.0.1:", "port must be a number from 0 to 65535"),
    ("tcp://127.0.0.1:65536", "port must be a number"),
    ("tcp://127.0.0.1:-1", "port must be a number"),
    ("tcp://127.0.0.1:http", "port must be a number"),
    ("tcp://127.0.0.1:" + "9" * 5000, "port must be a number"),
    ("tcp://127.0.0.1:٣", "port must be a number"),
    ("tcp://:2345", "host is missing"),
    ("tcp://::1:2345", "IPv6 address needs brackets"),
    ("tcp://[nonsense]:2345", "is not an IPv6 address"),
    ("tcp://[127.0.0.1]:2345", "is not an IPv6 address"),
    ("tcp://[fe80::1%]:2345", "is not an IPv6 address"),
    ("tcp://[fe80::1%a/b]:2345", "is not an IPv6 address"),
    ("tcp://999.0.0.1:2345", "is not an IPv4 address"),
    ("tcp://127.1:2345", "is not an IPv4 address"),
    ("tcp://a b:2345", "is not a host name"),
    ("tcp://a/b:2345", "is not a host name"),
    ("tcp://host\n:2345", "is not a host name"),
    ("tcp://eth0;127.0.0.1:2345", "is not a host name"),
    ("ipc://", "path is missing"),
    ("ipc://*", "path is missing"),
    ("ipc:///", "is a directory"),
    ("ipc:///tmp/" + "x" * 103, "at most 10[37] bytes"),
    ("ipc:///tmp/" + "é" * 60, "at most 10[37] bytes"),
    ("ipc:///tmp/a\0b", "none of them zero"),
]


@pytest.mark.parametrize("text, wanted", BAD_ADDRESSES)
def test_bad_addresses(text, wanted):
    for parse in (addresses.parse_bind_address, addresses.parse_connect_address):
        with pytest.raises(addresses.AddressError, match=wanted) as caught:
            parse(text)
        complained = str(caught.value)
        assert complained.startswith(f"bad address {text!r}"[:80]) and "\n" not in complained and len(complained) < 200


OWN = f"/tmp/scaler-sockets-{os.getuid()}"


@pytest.mark.parametrize(
    "bound, monitor",
    [
        ("tcp://127.0.0.1:2345", f"ipc://{OWN}/127.0.0.1_2345_monitor"),
        ("tcp://0.0.0.0:1", f"ipc://{OWN}/0.0.0.0_1_monitor"),
        ("tcp://[::1]:2345", f"ipc://{OWN}/::1_2345_monitor"),
        ("ipc:///run/scaler", "ipc:///run/scaler_monitor"),
        ("ipc://@scaler", "ipc://@scaler_monitor"),
    ],
)
def test_default_monitor_address(bound, monitor):
    assert str(addresses.default_monitor_address(addresses.parse_bind_address(bound))) == monitor


@pytest.mark.parametrize(
    "directories, monitor",
    [
        ("/run/scaler", "ipc:///run/scaler/monitor"),
        ("/run/a:/run/b", "ipc:///run/a/monitor"),
        ("relative", f"ipc://{OWN}/h_1_monitor"),
    ],
)
def test_default_monitor_address_of_a_service(directories, monitor):
    bound = addresses.parse_bind_address("tcp://h:1")
    assert str(addresses.default_monitor_address(bound, directories)) == monitor


def test_default_monitor_address_that_would_be_too_long():
    bound = addresses.parse_bind_address("ipc:///tmp/" + "x" * 95)
    with pytest.raises(addresses.AddressError, match="at most"):
        addresses.default_monitor_address(bound)


@pytest.fixture
def parent(monkeypatch, tmp_path):
    """The folder in which users have their folders of sockets."""
    monkeypatch.setattr(addresses, "SOCKET_PARENT", str(tmp_path))
    return tmp_path


def test_the_folder_of_sockets_is_its_users_alone(parent):
    assert addresses.socket_directories() == []
    path = addresses.make_socket_directory()
    assert path == addresses.make_socket_directory() == f"{parent}/scaler-sockets-{os.getuid()}"
    assert os.stat(path).st_mode & 0o777 == 0o700 and addresses.socket_directories() == [path]


@pytest.mark.parametrize("taken_by", ["a link", "a file", "an open folder"])
def test_a_taken_name_does_not_keep_a_user_from_a_folder(parent, taken_by):
    """Another user may make the usual folder first, to read what goes over its sockets, or to keep them away."""
    usual = parent / f"scaler-sockets-{os.getuid()}"
    if taken_by == "a link":
        (parent / "another").mkdir(0o700)
        usual.symlink_to(parent / "another")
    elif taken_by == "a file":
        usual.touch()
    else:
        usual.mkdir()
        usual.chmod(0o777)
    path = addresses.make_socket_directory()
    assert path == addresses.make_socket_directory() and path.startswith(f"{usual}-")
    assert addresses.socket_directories() == [path]


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give a folder away")
def test_folders_of_other_users_are_for_root_only(parent, monkeypatch):
    own, others, false = (parent / f"scaler-sockets-{name}" for name in (0, 1234, 1235))
    for path in (own, others, false):
        path.mkdir(0o700)
    os.chown(others, 1234, 1234)
    os.chown(false, 1234, 1234)
    assert addresses.socket_directories() == [str(own), str(others)]
    monkeypatch.setattr(os, "getuid", lambda: 1234)
    assert addresses.socket_directories() == [str(others)]
    monkeypatch.setattr(os, "getuid", lambda: 1235)
    assert addresses.socket_directories() == [] and addresses.make_socket_directory().startswith(f"{false}-")
