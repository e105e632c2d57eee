"""Pages of a web server."""

from __future__ import annotations

import urllib.request


def page(address: str) -> str:
    """A page. Empty while no server answers, or if it answers with an error."""
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""
