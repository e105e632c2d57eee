"""Who may see the page, and from where: tokens, cookies, and what browsers say of the page that asks.

Without a socket: what a request says goes in, what is wrong with it comes out.

- On the loopback interface everybody on this machine may, unless there is a token. A browser there also runs foreign
  pages: they reach this address by its number, and can't read what comes (no CORS), but for WebSockets, whose Origin is
  looked at; or they reach it by a name of their own that they have pointed here, so that it must be asked for by the
  name of the loopback interface.
- Elsewhere nobody may without the token: in the address once (`?token=`), then as a cookie, or as
  `Authorization: Bearer`.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from urllib.parse import urlsplit

MIN_TOKEN_LENGTH = 16
"""Characters of a token: anybody may try."""
BEARER = "bearer "


def generate_token() -> str:
    return secrets.token_urlsafe(24)


def is_loopback(host: str) -> bool:
    """Whether only this machine gets at it; a name other than localhost is taken for one of elsewhere."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


class Access:
    """What is asked of requests.

    Args:
        token: what must be shown; empty: nothing, but the page must be asked for as this machine's own.
    """

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self.cookie = f"scaler_ui_{self._derive('name')[:8]}"
        """Its name: browsers keep one jar for all ports of a host."""
        self.cookie_value = self._derive("value")
        """Shows that somebody had the token, which it does not tell."""

    def _derive(self, what: str) -> str:
        return hmac.new(self._token, what.encode(), hashlib.sha256).hexdigest()

    def is_token(self, given: str) -> bool:
        return bool(self._token) and hmac.compare_digest(given.encode(errors="replace"), self._token)

    def is_authorized(self, authorization: str, cookie: str) -> bool:
        """Whether a request with these headers and this cookie may see something."""
        if not self._token:
            return True
        if authorization[: len(BEARER)].lower() == BEARER:
            return self.is_token(authorization[len(BEARER) :].strip())
        return hmac.compare_digest(cookie.encode(errors="replace"), self.cookie_value.encode())

    def is_host_allowed(self, host: str) -> bool:
        """Whether the page may be asked for by this Host header."""
        return bool(self._token) or is_loopback(_host_name(host))

    def is_origin_allowed(self, origin: str | None, host: str) -> bool:
        """Whether a page of this Origin may open a WebSocket. Programs that are no browsers have none."""
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
