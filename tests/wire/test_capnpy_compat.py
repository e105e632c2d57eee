"""Decoding of published messages by capnpy, which is used without pycapnp. Runs under PyPy and CPython."""

from __future__ import annotations

import dataclasses
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.wire.hostile import (
    BY_HAND,
    assert_mutations_are_refused,
    assert_refused_in_little_memory,
    is_refused_by,
    truncated,
)
from tests.wire.vectors import ALL, FOLDER, Vector, is_for_peers

LIBRARY = Path(__file__).resolve().parents[2] / "client_lib"
if importlib.util.find_spec("scaler_client") is None:  # PyPy's environment may have only the scheduler
    sys.path.append(str(LIBRARY))

from scaler_client.protocol import capnpy_compat, decode, schema  # noqa: E402
from scaler_client.protocol.snapshots import Snapshot  # noqa: E402

FOR_PEERS = [vector for vector in ALL if is_for_peers(vector)]


SPELLED_OTHERWISE = {"refused"}
"""Messages with an enumeration. Published messages have none."""
SHORTENED = {"a reason of half a billion characters"}
"""capnpy truncates a text that reaches beyond its message."""


@pytest.fixture
def by_capnpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "SCHEMA", capnpy_compat.SCHEMA)
    monkeypatch.setattr(decode, "MALFORMED", capnpy_compat.MALFORMED)


@pytest.mark.skipif(schema.SCHEMA is capnpy_compat.SCHEMA, reason="there is no pycapnp to compare it to")
@pytest.mark.parametrize(
    "vector", [v for v in FOR_PEERS if v.name not in SPELLED_OTHERWISE], ids=lambda vector: vector.name
)
def test_capnpy_reads_messages_like_pycapnp(vector: Vector, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = plain(decode.decode(vector.frames))
    monkeypatch.setattr(decode, "SCHEMA", capnpy_compat.SCHEMA)
    monkeypatch.setattr(decode, "MALFORMED", capnpy_compat.MALFORMED)
    assert plain(decode.decode(vector.frames)) == expected


def plain(message: Any) -> Any:
    return message.__class__, dataclasses.asdict(message)


@pytest.mark.usefixtures("by_capnpy")
def test_capnpy_reads_all_fields_of_a_snapshot() -> None:
    [vector] = [vector for vector in ALL if vector.name == "snapshot"]
    snapshot = decode.decode(vector.frames)
    assert isinstance(snapshot, Snapshot)
    assert (snapshot.version, snapshot.waiting) == (vector.fields["version"], vector.fields["waiting"])
    assert len(snapshot.worker_columns.names) == len(vector.fields["workerColumns"]["incarnations"]) > 0
    assert all(snapshot.worker_columns.names)


def is_refused(frames: list[bytes]) -> bool:
    return is_refused_by(decode.decode, decode.WireError, frames, 500)


@pytest.mark.usefixtures("by_capnpy")
@pytest.mark.parametrize("vector", FOR_PEERS, ids=lambda vector: vector.name)
def test_truncated(vector: Vector) -> None:
    for frames in truncated(vector):
        assert is_refused(frames), f"accepted when cut to {[len(frame) for frame in frames]} bytes"


@pytest.mark.usefixtures("by_capnpy")
@pytest.mark.parametrize("seed", range(3))
def test_mutated(seed: int) -> None:
    assert_mutations_are_refused(seed, is_refused)


@pytest.mark.usefixtures("by_capnpy")
@pytest.mark.parametrize("name", sorted(set(BY_HAND) - SHORTENED))
def test_handmade_message(name: str) -> None:
    assert_refused_in_little_memory(BY_HAND[name], is_refused)


def test_monitors_need_neither_pycapnp_nor_cloudpickle() -> None:
    """pycapnp has no wheels for PyPy."""
    program = (
        "import sys; sys.modules['capnp'] = sys.modules['cloudpickle'] = None\n"
        "import scaler_client.monitor.socket, scaler_client.monitor.options, scaler_client.top.cli\n"
        "from scaler_client.monitor.reader import MonitorReader\n"
        "from pathlib import Path\n"
        "reader = MonitorReader(0.0)\n"
        "assert reader.feed(b'snapshot' + Path(sys.argv[1]).read_bytes(), 1.0)\n"
        "print(len(reader.view.workers))"
    )
    [vector] = [vector for vector in ALL if vector.name == "snapshot"]
    environment = {"PYTHONPATH": str(LIBRARY)}
    done = subprocess.run(
        [sys.executable, "-c", program, str(FOLDER / "snapshot.bin")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(vector.fields["workerColumns"]["incarnations"])
