"""What a web server says."""

from __future__ import annotations

import urllib.request


def page(address: str) -> str:
    """Empty while nobody answers, or not with a page."""
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""
