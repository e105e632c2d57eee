"""What a client's program is called."""

from __future__ import annotations

import sys

import pytest

from scaler_client.commands.program_name import MAX_NAME_LENGTH, client_name, program_name


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        ("/srv/pricing/report.py", "report.py"),
        ("report.py", "report.py"),
        ("/usr/lib/pricing/__main__.py", "pricing"),
        ("/usr/lib/ipykernel_launcher.py", "notebook"),
        ("-c", "python"),
        ("-", "python"),
        ("", "python"),
        ("/srv/\udce9t\u00e9\x1b[31m.py", "?t\u00e9?[31m.py"),
        ("x" * 1000, "x" * MAX_NAME_LENGTH),
    ],
)
def test_programs(monkeypatch: pytest.MonkeyPatch, argument: str, name: str) -> None:
    monkeypatch.setattr(sys, "argv", [argument])
    assert program_name() == name
    assert client_name(47, "node-1") == f"{name}[47]@node-1"
    assert client_name(47, "node-1").encode()


def test_without_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [])
    assert program_name() == "python"
