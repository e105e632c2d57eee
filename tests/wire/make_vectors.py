"""Writes the golden messages of scheduler_daemon/protocol/vectors with pycapnp: `python tests/wire/make_vectors.py`.

Deterministic: the same bytes every time. Each case is the content of one message, its fields in the schema's order, so
that the layout is the one that straightforward writers choose.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import capnp

PROTOCOL = Path(__file__).resolve().parents[2] / "scheduler_daemon" / "protocol"
VECTORS = PROTOCOL / "vectors"

ONE_SEGMENT = 4096
MANY_SEGMENTS = 1
"""Words of a message's first segment: with so few nearly every pointer is a far pointer."""

CLIENT, WORKER, AGENT = 0x1111111111111111, 0x2222222222222222, 0x3333333333333333
"""Incarnations."""

HELLO = {
    "protocolVersion": 1,
    "role": "client",
    "incarnation": CLIENT,
    "agent": 0,
    "language": "python",
    "languageVersion": "3.11.7",
    "version": "1.0.0",
    "host": "laptop",
    "pid": 4711,
    "name": "Zoë",
}
BODY = bytes(range(40))

# Name, the union's member, its content (None: Void), the frames behind frame 0.

CASES: list[Any] = [
    # The way of three tasks, by the client with the number 1 and the worker with the number 2 of a fresh scheduler.
    ("hello-client", "hello", HELLO, []),
    ("hello-worker", "hello", {**HELLO, "role": "worker", "incarnation": WORKER, "agent": AGENT, "host": "node-7"}, []),
    ("welcome", "welcome", {
        "protocolVersion": 1, "version": "1.0.0", "incarnation": 0x4444444444444444, "peer": 2,
        "leaseMilliseconds": 60000,
    }, []),
    ("function-from-client", "function", {"number": 7, "name": "math.sqrt", "serializer": "cloudpickle"}, [BODY]),
    ("function-to-worker", "function", {"number": 1, "name": "math.sqrt", "serializer": "cloudpickle"}, [BODY]),
    ("submit", "submit", {"ids": [10, 11, 13], "functions": [7], "sizes": [2, 0, 3], "payload": b"aaccc"}, []),
    ("dispatch", "dispatch", {
        "clients": [1], "ids": [10, 11, 13], "attempts": [1], "functions": [1], "sizes": [2, 0, 3], "payload": b"aaccc",
    }, []),
    ("started-from-worker", "started", {"clients": [1], "ids": [10], "attempts": [1]}, []),
    ("started-to-client", "started", {"ids": [10]}, []),
    ("results", "results", {
        "clients": [1], "ids": [10, 11, 13], "attempts": [1], "outcomes": [0, 0, 1],
        "durations": [1000, 2500, 12345678], "sizes": [4, 0, 5], "payload": b"AAAAERROR",
    }, []),
    ("resolved", "resolved", {
        "ids": [10, 11, 13], "outcomes": [0, 0, 1], "sizes": [4, 0, 5], "payload": b"AAAAERROR",
    }, []),
    # Batches of other shapes.
    ("submit-one", "submit", {"ids": [0], "functions": [0], "sizes": [5], "payload": b"hello"}, []),
    ("submit-empty-payloads", "submit", {"ids": [1, 2], "functions": [7], "sizes": [0]}, []),
    ("submit-mixed-large", "submit", {
        "ids": [1, 2, 3, (1 << 63) - 1], "functions": [7, 8, 7, 4294967295], "sizes": [1, 0, 0, 2], "large": [1, 2],
        "payload": b"xyz",
    }, [b"B" * 100, b""]),
    ("submit-segments", "submit", {
        "ids": [10, 11, 13], "functions": [7, 7, 8], "sizes": [2, 0, 3], "payload": b"aaccc",
    }, []),
    ("dispatch-mixed-large", "dispatch", {
        "clients": [1, 3, 1], "ids": [4, 0, 5], "attempts": [1, 2, 1], "functions": [1, 2, 1], "sizes": [1, 0, 2],
        "large": [1], "payload": b"xyz",
    }, [b"B" * 100]),
    ("dispatch-segments", "dispatch", {
        "clients": [1], "ids": [10, 11, 13], "attempts": [1], "functions": [1], "sizes": [2, 0, 3], "payload": b"aaccc",
    }, []),
    ("results-mixed-large", "results", {
        "clients": [1, 3, 1], "ids": [4, 0, 5], "attempts": [1, 2, 1], "outcomes": [0, 2, 3],
        "durations": [0, 1 << 40, 77], "sizes": [0, 7, 0], "large": [2], "payload": b"failure",
    }, [b"R" * 100]),
    ("results-segments", "results", {
        "clients": [1], "ids": [10, 11], "attempts": [1], "outcomes": [0], "durations": [5, 6], "sizes": [1],
        "payload": b"ab",
    }, []),
    ("resolved-mixed-large", "resolved", {
        "ids": [4, 9, 2, 6], "outcomes": [0, 4, 5, 0], "sizes": [0, 15, 0, 1], "large": [0],
        "payload": b"the worker diedv",
    }, [b"R" * 100]),
    ("resolved-segments", "resolved", {"ids": [10, 11], "outcomes": [0], "sizes": [1], "payload": b"ab"}, []),
    # Everything else.
    ("hello-agent", "hello", {**HELLO, "role": "agent", "incarnation": AGENT, "host": "node-7", "name": ""}, []),
    ("hello-segments", "hello", HELLO, []),
    ("hello-other-version", "hello", {**HELLO, "protocolVersion": 99}, []),
    ("refused", "refused", {
        "reason": "protocolVersion", "text": "protocol version 99 is not 1", "protocolVersion": 1, "version": "1.0.0",
    }, []),
    ("hello-wanted", "helloWanted", None, []),
    ("goodbye", "goodbye", {"reason": "the client was closed"}, []),
    ("heartbeat", "heartbeat", {"sequence": 3, "residentBytes": 52428800, "cpuMilliseconds": 1500}, []),
    ("heartbeat-agent", "heartbeat", {
        "sequence": 1 << 40, "residentBytes": 1, "cpuMilliseconds": 2, "workers": [
            {"incarnation": WORKER, "residentBytes": 1 << 33, "cpuMilliseconds": 9},
            {"incarnation": WORKER + 1, "residentBytes": 0, "cpuMilliseconds": 0},
        ],
    }, []),
    ("heartbeat-echo", "heartbeatEcho", {"sequence": 3}, []),
    ("forget-functions", "forgetFunctions", {"numbers": [7, 0, 4294967295]}, []),
    ("cancel", "cancel", {"ids": [10, 11, (1 << 63) - 1]}, []),
    ("cancel-refused", "cancelRefused", {"ids": [11]}, []),
    ("worker-died", "workerDied", {
        "incarnation": WORKER, "pid": 815, "cause": "signal 9 (SIGKILL)", "peakBytes": 104857600, "client": 1, "id": 10,
        "attempt": 1,
    }, []),
    ("worker-died-idle", "workerDied", {"incarnation": WORKER, "pid": 815, "cause": "exit code 1"}, []),
    ("error", "error", {"text": "submit names function 7, which this client has not sent"}, []),
    ("snapshot", "snapshot", {
        "protocolVersion": 1, "version": "1.0.0", "incarnation": 0x4444444444444444, "uptimeMilliseconds": 86400000,
        "address": "tcp://127.0.0.1:2345", "waiting": 5, "dispatched": 2, "resolved": 1000000, "clients": 1,
        "workers": 10, "agents": 1,
        "received": [{"name": "submit", "count": 17}, {"name": "results", "count": 4}],
        "sent": [{"name": "dispatch", "count": 12}],
        "dropped": [{"name": "malformed", "count": 0}, {"name": "late", "count": 3}],
    }, []),
]  # fmt: skip


def load_schema() -> Any:
    capnp.remove_import_hook()
    return capnp.load(str(PROTOCOL / "scaler.capnp"))


def build(schema: Any, member: str, content: dict[str, Any] | None, words: int) -> bytes:
    """Frame 0 of a message."""
    root = schema.Message.new_message(num_first_segment_words=words)
    if content is None:
        setattr(root, member, None)
    else:
        struct = root.init(member)
        for field, value in content.items():
            setattr(struct, field, value)
    data: bytes = root.to_bytes()
    return data


def as_json(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def description(member: str, content: dict[str, Any] | None, frames: list[bytes]) -> str:
    """The message as JSON, a field a line."""
    fields = [f"  {json.dumps(field)}: {json.dumps(as_json(value))}" for field, value in (content or {}).items()]
    body = "{\n" + ",\n".join(fields) + "\n }" if fields else "{}"
    hexes = json.dumps([frame.hex() for frame in frames])
    return f'{{\n "message": "{member}",\n "fields": {body},\n "frames": {hexes}\n}}\n'


def make(schema: Any) -> dict[str, bytes]:
    """The content of every file, by its name."""
    files = {}
    for name, member, content, frames in CASES:
        words = MANY_SEGMENTS if name.endswith("-segments") else ONE_SEGMENT
        files[f"{name}.bin"] = build(schema, member, content, words)
        files[f"{name}.json"] = description(member, content, frames).encode()
        for number, frame in enumerate(frames, 1):
            files[f"{name}.{number}.bin"] = frame
    return files


def main() -> None:
    VECTORS.mkdir(exist_ok=True)
    for path in [*VECTORS.glob("*.bin"), *VECTORS.glob("*.json")]:
        path.unlink()
    for name, content in make(load_schema()).items():
        (VECTORS / name).write_bytes(content)


if __name__ == "__main__":
    main()
