"""`scaler_client dump`: everything that a scheduler publishes, for a bug report."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import re
import sys
import time
from collections.abc import Mapping
from typing import Any

import zmq

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from .. import __version__
from ..commands.options import OptionError, interpreter
from ..monitor.problems import problems
from ..protocol.messages import PROTOCOL_VERSION
from ..protocol.snapshot_decoder import GRAPHS_TOPIC, HISTORY_TOPIC
from ..protocol.snapshots import History
from .subscription import Subscription

FORMAT = 1
MAX_HISTORY_ROWS = 200_000
CONFIGURATIONS = tuple(f"/etc/scaler/{name}.toml" for name in ("scheduler", "cluster", "ui", "exporter", "top"))
SECRET_NAME = re.compile("key|secret|token|passw|credential|certificate|private", re.IGNORECASE)
REDACTED = "(hidden)"
_SNAPSHOTS = 2
"""The number of further snapshots to wait for, so that rates, history and graphs are known."""
_IDENTITIES = {"incarnations", "agents", "clients", "workers", "ids", "inputs"}
"""Columns whose numbers do not fit a floating-point number."""


def check_file(path: str, is_forced: bool) -> None:
    """Check that a dump can be written to a path. Raises OptionError."""
    if path == "-":
        return
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise OptionError(f"{path} is a folder")
    if os.path.lexists(path) and not is_forced:
        raise OptionError(f"{path} exists already: --force overwrites it")
    if not os.path.isdir(folder):
        raise OptionError(f"the folder {folder} does not exist")


def write_dump(path: str, is_forced: bool, dump: dict[str, Any]) -> None:
    """Write the dump to a file that only the user can read, or to standard output. Raises OptionError if that fails."""
    text = _format_json(dump) + "\n"
    if path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if is_forced else os.O_EXCL)
    try:
        descriptor = os.open(path, flags, 0o600)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
        except BaseException:
            if not is_forced:  # with --force the file existed before, and may be a device
                os.unlink(path)
            raise
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror}") from None


def _format_json(value: Any, depth: int = 1) -> str:
    """JSON with a line for each key. A column stays on one line."""
    if isinstance(value, dict) and value:
        parts, ends = [f"{json.dumps(str(key))}: {_format_json(each, depth + 1)}" for key, each in value.items()], "{}"
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        parts, ends = [_format_json(each, depth + 1) for each in value], "[]"
    else:
        return json.dumps(value)
    lines = ",\n".join(" " * depth + part for part in parts)
    return f"{ends[0]}\n{lines}\n{' ' * (depth - 1)}{ends[1]}"


def dump_json(subscription: Subscription, environ: Mapping[str, str]) -> dict[str, Any]:
    """The whole dump. The keys of the first level are stable; all others depend on the version.

    Raises:
        NoAnswerError: the scheduler has not answered.
    """
    subscription.subscribe(HISTORY_TOPIC)
    subscription.subscribe(GRAPHS_TOPIC)
    sequence = subscription.view().snapshot.sequence
    reader = subscription.reader
    subscription.wait_until(
        lambda: reader.view is not None and reader.view.snapshot.sequence >= sequence + _SNAPSHOTS,
        _SNAPSHOTS + 1.0,
    )
    view = subscription.view(has_rates=False)
    return {
        "format": FORMAT,
        "made_unix_seconds": time.time(),
        "versions": {
            "scaler_client": __version__,
            "scaler_scheduler": view.snapshot.version,
            "scheduler_interpreter": view.snapshot.process.interpreter,
            "protocol": PROTOCOL_VERSION,
            "interpreter": interpreter(),
            "zeromq": zmq.zmq_version(),
            "system": platform.platform(),
        },
        "configuration": _configuration(str(subscription.address), environ),
        "reader": {
            "presence": reader.presence.value,
            "missed_snapshots": reader.missed_snapshots,
            "missed_history": reader.missed_history,
            "malformed": reader.malformed,
        },
        "problems": problems(view),
        "snapshot": _with_string_ids(dataclasses.asdict(view.snapshot)),
        "rates": {
            "seconds": view.seconds,
            "ended": view.resolved_rate,
            "received": view.received_rates,
            "sent": view.sent_rates,
            "cpu_percent": view.cpu_percent,
            "loop_percent": view.loop_percent,
        },
        "history": [_with_string_ids(dataclasses.asdict(history)) for history in _newest(reader.drain_history())],
        "graphs": None if reader.graphs is None else _with_string_ids(dataclasses.asdict(reader.graphs)),
    }


def _newest(history: list[History]) -> list[History]:
    """The newest rows in order, MAX_HISTORY_ROWS at most. Old rows may arrive after new ones, so rows are sorted."""

    history = sorted(history, key=lambda each: each.first)
    rows = 0
    for at in range(len(history) - 1, -1, -1):
        rows += len(history[at].ids)
        if rows > MAX_HISTORY_ROWS and at < len(history) - 1:
            return history[at + 1 :]
    return history


def _with_string_ids(value: Any, name: str = "") -> Any:
    """The value with identities as strings, at any depth."""
    if isinstance(value, dict):
        return {key: _with_string_ids(each, key) for key, each in value.items()}
    if isinstance(value, list) and name in _IDENTITIES:
        return [list(map(str, each)) if isinstance(each, list) else str(each) for each in value]
    if isinstance(value, list):
        return [_with_string_ids(each, name) if isinstance(each, (dict, list)) else each for each in value]
    return str(value) if name == "incarnation" else value


def _configuration(address: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """The settings of this machine, without secrets."""
    variables = {name: environ[name] for name in sorted(environ) if name.startswith("SCALER_")}
    shown = {name: REDACTED if SECRET_NAME.search(name) else value for name, value in variables.items()}
    files = {path: content for path in CONFIGURATIONS if (content := _read_configuration(path)) is not None}
    return {"monitor_address": address, "environment": shown, "files": files}


def _read_configuration(path: str) -> dict[str, Any] | str | None:
    """The content of a TOML file without its secrets; None if it is absent or may not be read."""
    try:
        with open(path, "rb") as file:
            return without_secrets(tomllib.load(file))
    except OSError:
        return None
    except ValueError:
        return "(it is not TOML)"


def without_secrets(table: dict[str, Any]) -> dict[str, Any]:
    """The table with its secrets replaced by REDACTED, at any depth."""
    return {
        key: REDACTED if SECRET_NAME.search(key) else without_secrets(value) if isinstance(value, dict) else value
        for key, value in table.items()
    }
