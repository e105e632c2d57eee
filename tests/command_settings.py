"""A clean surrounding for tests of a command's options: no variables, files or log handlers of the machine.

`config` and `cli` are the modules of the tested command. The scheduler's tests run without the libraries.
"""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def clean_settings(monkeypatch: pytest.MonkeyPatch, folder: Path, config: Any, cli: Any) -> Iterator[None]:
    """Remove SCALER_ variables, use a temporary default file, and restore the logging afterwards."""
    for variable in [name for name in os.environ if name.startswith("SCALER_")]:
        monkeypatch.delenv(variable)
    command = dataclasses.replace(config.COMMAND, default_file=str(folder / "default.toml"))
    monkeypatch.setattr(config, "COMMAND", command)
    monkeypatch.setattr(cli, "COMMAND", command)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []  # the set-up under test would close pytest's handlers
    yield
    for handler in root.handlers:
        handler.close()
    root.handlers = handlers
    root.setLevel(level)


def toml_writer(folder: Path, default_name: str) -> Callable[..., str]:
    """A function that writes a text into a file of the folder, and returns the file's path."""

    def write(text: str, name: str = default_name) -> str:
        path = folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def complaint_of(error: type[Exception], load: Callable[..., object], *argv: str, **environ: str) -> str:
    """The text of the error that wrong options raise. It must be one line."""
    with pytest.raises(error) as caught:
        load(*argv, **environ)
    text = str(caught.value)
    assert "\n" not in text
    return text
