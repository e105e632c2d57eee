"""Who may see the page: checks of tokens, cookies, host names and origins. It has no socket.

- On the loopback interface every user of this machine may see the page, unless there is a token. Local clusters make
  one. But a browser on this machine also runs pages of other sites. Such a page may request this
  address by its number. It cannot read the answer (no CORS), except through a WebSocket. So the WebSocket's Origin is
  checked. Or it may point a host name of its own to this address (DNS rebinding), so the Host header must name the
  loopback interface.
- On other interfaces the token is required: once in the address (`?token=`), then as a cookie, or as `Authorization:
  Bearer`.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from urllib.parse import urlsplit

MIN_TOKEN_LENGTH = 16
"""The minimum length of a token, in characters, against guessing."""
BEARER = "bearer "


def generate_token() -> str:
    return secrets.token_urlsafe(24)


def is_loopback(host: str) -> bool:
    """Whether an interface can be reached only from this machine. Of names, only localhost counts."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


class Access:
    """The checks of requests.

    Args:
        token: the token that requests must show. Empty requires no token, but a Host header of the loopback interface.
    """

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self.cookie = f"scaler_ui_{self._derive('name')[:8]}"
        """The cookie's name. It differs by token, because browsers share cookies among all ports of a host."""
        self.cookie_value = self._derive("value")
        """Proves that the browser had the token, without revealing it."""

    def _derive(self, what: str) -> str:
        return hmac.new(self._token, what.encode(), hashlib.sha256).hexdigest()

    def is_token(self, given: str) -> bool:
        return bool(self._token) and hmac.compare_digest(given.encode(errors="replace"), self._token)

    def is_authorized(self, authorization: str, cookie: str) -> bool:
        """Whether a request with this Authorization header and this cookie may see the page."""
        if not self._token:
            return True
        if authorization[: len(BEARER)].lower() == BEARER:
            return self.is_token(authorization[len(BEARER) :].strip())
        return hmac.compare_digest(cookie.encode(errors="replace"), self.cookie_value.encode())

    def is_host_allowed(self, host: str) -> bool:
        """Whether the Host header of a request is allowed."""
        return bool(self._token) or is_loopback(_host_name(host))

    def is_origin_allowed(self, origin: str | None, host: str) -> bool:
        """Whether a page of this Origin may open a WebSocket. Programs other than browsers send no Origin."""
        if origin is None:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
