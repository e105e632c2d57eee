"""Access to scaler_ui's page: tokens, cookies, hosts and origins."""

from __future__ import annotations

import pytest

from scaler_client.ui.access import MIN_TOKEN_LENGTH, Access, generate_token, is_loopback

TOKEN = "0123456789abcdef"


def test_without_a_token_only_this_machine_has_access() -> None:
    access = Access("")
    assert access.is_authorized("", "") and not access.is_token("")
    for host in ("localhost:8081", "LOCALHOST", "127.0.0.1:8081", "127.1.2.3", "[::1]:8081", "localhost.:1"):
        assert access.is_host_allowed(host), host
    for host in (
        "evil.example:8081",
        "127.0.0.1.evil.example",
        "192.168.0.7:8081",
        "",
        "localhost@evil.example",
        "[::1",
    ):
        assert not access.is_host_allowed(host), host


def test_with_a_token_only_its_owner_has_access() -> None:
    access = Access(TOKEN)
    assert access.is_host_allowed("cluster.example:8081")
    assert access.is_token(TOKEN) and not access.is_token(TOKEN + "x") and not access.is_token("\udcff")
    assert access.is_authorized(f"Bearer {TOKEN}", "") and access.is_authorized(f"bearer  {TOKEN}", "")
    assert access.is_authorized("", access.cookie_value)
    for authorization, cookie in (
        ("", ""),
        ("Bearer ", ""),
        ("Bearer x", access.cookie_value),
        ("", TOKEN),
        (TOKEN, ""),
    ):
        assert not access.is_authorized(authorization, cookie)


def test_cookie_hides_the_token_and_survives_a_restart() -> None:
    access, same, other = Access(TOKEN), Access(TOKEN), Access(TOKEN + "0")
    assert TOKEN not in access.cookie + access.cookie_value
    assert (access.cookie, access.cookie_value) == (same.cookie, same.cookie_value)
    assert access.cookie != other.cookie, "browsers share cookies among ports"


def test_websocket_needs_the_same_origin() -> None:
    access = Access("")
    assert access.is_origin_allowed(None, "127.0.0.1:8081"), "not a browser"
    assert access.is_origin_allowed("http://127.0.0.1:8081", "127.0.0.1:8081")
    assert access.is_origin_allowed("https://Proxy.example", "proxy.example"), "behind a TLS proxy"
    for origin in (
        "http://127.0.0.1:8082",
        "http://localhost:8081",
        "https://evil.example",
        "null",
        "",
        "file://",
        "http://[",
    ):
        assert not access.is_origin_allowed(origin, "127.0.0.1:8081"), origin


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False), ("node-7", False)],
)
def test_loopback_hosts(host: str, is_ours: bool) -> None:
    assert is_loopback(host) is is_ours


def test_generated_tokens_are_valid_options() -> None:
    assert generate_token() != generate_token() and len(generate_token()) > MIN_TOKEN_LENGTH
