"""Writes the golden messages of scheduler_daemon/protocol/vectors with pycapnp: `python tests/wire/make_vectors.py`.

Deterministic: the same bytes every time. Each case is the content of one message, its fields in the schema's order, so
that the layout is the one that straightforward writers choose.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import capnp

PROTOCOL = Path(__file__).resolve().parents[2] / "scheduler_daemon" / "protocol"
VECTORS = PROTOCOL / "vectors"

ONE_SEGMENT = 4096
MANY_SEGMENTS = 1
"""Words of a message's first segment. With so few, nearly every pointer is a far pointer."""

CLIENT, WORKER, AGENT = 0x1111111111111111, 0x2222222222222222, 0x3333333333333333
OTHER_CLIENT = 0x5555555555555555
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
POOLS = [
    {
        "name": "large",
        "wanted": 12,
        "booting": 3,
        "there": 8,
        "draining": 1,
        "failed": 5,
        "late": 2,
        "left": 1,
        "isResting": True,
        "problem": "hosts could not be started: no route to host",
        "problemSeconds": 90,
    },
    {
        "name": "local",
        "wanted": 0,
        "booting": 0,
        "there": 0,
        "draining": 0,
        "failed": 0,
        "late": 0,
        "left": 0,
        "isResting": False,
        "problem": "",
        "problemSeconds": 0,
    },
]
OPTIONS = {
    "priority": -5,
    "depth": 2,
    "retries": 3,
    "timeoutMilliseconds": 1500,
    "profiling": True,
    "name": "Wurzel",
    "capabilities": [{"name": "gpu", "amount": 1}, {"name": "linux", "amount": 1}],
}
MANIFEST = b'{"modules":[],"packages":null}'
LABEL = "node-7/815 sqrt#10"


def sha256(content: bytes) -> str:
    """The name of a content, or of the environment with this manifest."""
    return hashlib.sha256(content).hexdigest()


ENVIRONMENT = sha256(MANIFEST)


def counter(name: str, count: int, last_milliseconds: int = 0) -> dict[str, Any]:
    """A Counter with all of its fields."""
    return {"name": name, "count": count, "lastMilliseconds": last_milliseconds}


# Name, the union's member, its content (None: Void), the frames behind frame 0.

CASES: list[Any] = [
    # Three tasks, a client and a worker of a new scheduler.
    ("hello-client", "hello", HELLO, []),
    ("hello-worker", "hello", {**HELLO, "role": "worker", "incarnation": WORKER, "agent": AGENT, "host": "node-7"}, []),
    ("welcome", "welcome", {
        "protocolVersion": 1, "version": "1.0.0", "incarnation": 0x4444444444444444, "leaseMilliseconds": 60000,
    }, []),
    ("welcome-client", "welcome", {
        "protocolVersion": 1, "version": "1.0.0", "incarnation": 0x4444444444444444, "leaseMilliseconds": 60000,
        "credit": 1 << 25, "resultWindow": 1 << 24, "messageSizeLimit": 1 << 30, "workers": 10, "takesFiles": True,
    }, []),
    ("hello-worker-kinds", "hello", {
        **HELLO, "role": "worker", "incarnation": WORKER, "language": "c++", "languageVersion": "17",
        "kinds": ["named json price", "named raw Größe"],
    }, []),
    ("function-from-client", "function", {"number": 7, "name": "math.sqrt", "kind": "cloudpickle"}, [BODY]),
    ("function-to-worker", "function", {"number": 1, "name": "math.sqrt", "kind": "cloudpickle"}, [BODY]),
    ("function-named", "function", {"number": 8, "name": "price", "kind": "named json price"}, [b""]),
    ("submit", "submit", {"ids": [10, 11, 13], "functions": [7], "sizes": [2, 0, 3], "payload": b"aaccc"}, []),
    ("dispatch", "dispatch", {
        "clients": [CLIENT], "ids": [10, 11, 13], "attempts": [1], "functions": [1], "sizes": [2, 0, 3],
        "payload": b"aaccc",
    }, []),
    ("started-from-worker", "started", {"clients": [CLIENT], "ids": [10], "attempts": [1]}, []),
    ("started-to-client", "started", {"ids": [10]}, []),
    ("results", "results", {
        "clients": [CLIENT], "ids": [10, 11, 13], "attempts": [1], "outcomes": [0, 0, 1],
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
        "clients": [CLIENT, OTHER_CLIENT, CLIENT], "ids": [4, 0, 5], "attempts": [1, 2, 1], "functions": [1, 2, 1],
        "sizes": [1, 0, 2], "large": [1], "payload": b"xyz",
    }, [b"B" * 100]),
    ("dispatch-segments", "dispatch", {
        "clients": [CLIENT], "ids": [10, 11, 13], "attempts": [1], "functions": [1], "sizes": [2, 0, 3],
        "payload": b"aaccc",
    }, []),
    ("results-mixed-large", "results", {
        "clients": [CLIENT, OTHER_CLIENT, CLIENT], "ids": [4, 0, 5], "attempts": [1, 2, 1], "outcomes": [0, 2, 3],
        "durations": [0, 1 << 40, 77], "sizes": [0, 7, 0], "large": [2], "payload": b"failure",
    }, [b"R" * 100]),
    ("results-segments", "results", {
        "clients": [CLIENT], "ids": [10, 11], "attempts": [1], "outcomes": [0], "durations": [5, 6], "sizes": [1],
        "payload": b"ab",
    }, []),
    ("resolved-mixed-large", "resolved", {
        "ids": [4, 9, 2, 6, 7], "outcomes": [0, 5, 6, 0, 7], "sizes": [0, 15, 0, 1, 5], "large": [0],
        "payload": b"the worker diedvlimit",
    }, [b"R" * 100]),
    ("resolved-segments", "resolved", {"ids": [10, 11], "outcomes": [0], "sizes": [1], "payload": b"ab"}, []),
    # Rows with options.
    ("submit-options", "submit", {
        "ids": [20, 21], "functions": [7], "sizes": [1, 0], "payload": b"x", "options": OPTIONS,
    }, []),
    ("submit-options-large", "submit", {
        "ids": [22], "functions": [7], "sizes": [0], "large": [0], "options": {"retries": 0},
    }, [b"B" * 100]),
    ("submit-options-segments", "submit", {
        "ids": [20, 21], "functions": [7], "sizes": [1, 0], "payload": b"x", "options": OPTIONS,
    }, []),
    ("dispatch-special", "dispatch", {
        "clients": [CLIENT], "ids": [20, 21, 4], "attempts": [1], "functions": [1], "sizes": [1, 0, 1],
        "payload": b"xy", "flags": [3, 3, 0], "depths": [2, 2, 0], "priorities": [0xFFFFFFFB, 0xFFFFFFFB, 0],
    }, []),
    ("dispatch-special-constant", "dispatch", {
        "clients": [CLIENT], "ids": [20, 21], "attempts": [1], "functions": [1], "sizes": [1, 0], "payload": b"x",
        "flags": [0], "depths": [1], "priorities": [0x7FFFFFFF],
    }, []),
    ("results-retryable", "results", {
        "clients": [CLIENT], "ids": [20], "attempts": [1], "outcomes": [4], "durations": [1000], "sizes": [5],
        "payload": b"ERROR",
    }, []),
    ("results-errors", "results", {
        "clients": [CLIENT], "ids": [20, 4], "attempts": [1], "outcomes": [1, 0], "durations": [1000, 2500],
        "sizes": [5, 1], "payload": b"ERRORa", "errors": "ValueError: Größe".encode(), "errorSizes": [19, 0],
    }, []),
    ("results-tracebacks", "results", {
        "clients": [CLIENT], "ids": [20, 4], "attempts": [1], "outcomes": [1, 0], "durations": [1000, 2500],
        "sizes": [5, 1], "payload": b"ERRORa", "errors": b"KeyError: 1", "errorSizes": [11, 0],
        "tracebacks": "Traceback:\n  Zoë\nKeyError: 1".encode(), "tracebackSizes": [29, 0],
    }, []),
    ("results-profiled", "results", {
        "clients": [CLIENT], "ids": [20, 4], "attempts": [2, 1], "outcomes": [0], "durations": [1000, 2500],
        "sizes": [1], "payload": b"ab", "cpuTimes": [900, 0], "peaks": [1 << 33, 0],
    }, []),
    ("resolved-profiled", "resolved", {
        "ids": [20, 4], "outcomes": [0], "sizes": [1], "payload": b"ab", "durations": [1000, 0], "cpuTimes": [900, 0],
        "peaks": [1 << 33, 0],
    }, []),
    # Rows that stand for several calls.
    ("submit-calls", "submit", {
        "ids": [30, 31], "functions": [7], "sizes": [1, 2], "payload": b"xyz",
        "options": {"retries": -1, "calls": 1000},
    }, []),
    ("dispatch-calls", "dispatch", {
        "clients": [CLIENT], "ids": [30, 31, 32], "attempts": [1], "functions": [1], "sizes": [1, 2, 1],
        "payload": b"xyzp", "flags": [16, 16, 0], "depths": [0], "priorities": [0],
    }, []),
    ("results-calls", "results", {
        "clients": [CLIENT], "ids": [30, 31, 32], "attempts": [1], "outcomes": [0, 1, 0], "durations": [1000, 2500, 5],
        "sizes": [3, 5, 1], "payload": b"AAAERRORp", "calls": [1000, 17, 0],
    }, []),
    ("results-calls-constant", "results", {
        "clients": [CLIENT], "ids": [30, 31], "attempts": [1], "outcomes": [0], "durations": [1000, 2500],
        "sizes": [1], "payload": b"ab", "calls": [1000],
    }, []),
    # Objects, rows that read them, and results that are kept.
    ("object-from-client", "object", {"client": 0, "id": 30, "name": "table"}, [BODY, b"", b"buffer"]),
    ("object-file-from-client", "object", {
        "client": 0, "id": 32, "name": "table", "fileBytes": 1_000_000,
        "data": {"address": "tcp://10.0.0.3:40123", "key": "ab" * 32, "ticket": "cd" * 16},
    }, []),
    ("object-file-of-this-host", "object", {"client": 0, "id": 32, "name": "table", "fileBytes": 1_000_000}, []),
    ("object-to-worker", "object", {"client": CLIENT, "id": 30, "name": "table"}, [BODY, b"", b"buffer"]),
    ("object-segments", "object", {"client": CLIENT, "id": (1 << 63) - 1, "name": "one frame"}, [BODY]),
    ("submit-inputs", "submit", {
        "ids": [31, 32, 33], "functions": [7], "sizes": [2, 0, 3], "payload": b"aaccc", "inputs": [30, 31, 30],
        "inputCounts": [1, 0, 2], "keep": [1, 0, 2],
    }, []),
    ("submit-inputs-constant", "submit", {
        "ids": [34, 35], "functions": [7], "sizes": [1], "payload": b"ab", "options": {"retries": 0},
        "inputs": [(1 << 63) - 1, 30], "inputCounts": [1], "keep": [1],
    }, []),
    ("submit-inputs-large", "submit", {
        "ids": [36, 37], "functions": [7], "sizes": [0], "large": [1], "inputs": [30], "inputCounts": [0, 1],
    }, [b"B" * 100]),
    ("submit-inputs-segments", "submit", {
        "ids": [31, 32, 33], "functions": [7], "sizes": [2, 0, 3], "payload": b"aaccc", "options": OPTIONS,
        "inputs": [30, 31, 30], "inputCounts": [1, 0, 2], "keep": [1, 0, 2],
    }, []),
    ("submit-keep-earlier", "submit", {
        "ids": [39, 40], "functions": [7], "sizes": [1], "payload": b"xy", "inputs": [30, 31], "inputCounts": [2, 0],
        "keepEarlier": [30, 31],
    }, []),
    ("submit-keep", "submit", {"ids": [38], "functions": [7], "sizes": [1], "payload": b"x", "keep": [2]}, []),
    ("dispatch-inputs", "dispatch", {
        "clients": [CLIENT], "ids": [31, 32, 33], "attempts": [1], "functions": [1], "sizes": [2, 0, 3],
        "payload": b"aaccc", "inputs": [30, 31, 30], "inputCounts": [1, 0, 2], "inputSources": [1, 0, 1],
    }, []),
    ("dispatch-inputs-constant", "dispatch", {
        "clients": [CLIENT, OTHER_CLIENT], "ids": [34, 35], "attempts": [1], "functions": [1], "sizes": [1],
        "payload": b"ab", "flags": [1, 0], "depths": [0], "priorities": [0], "inputs": [(1 << 63) - 1, 30],
        "inputCounts": [1], "inputSources": [0],
    }, []),
    ("dispatch-inputs-one", "dispatch", {
        "clients": [CLIENT], "ids": [39], "attempts": [1], "functions": [1], "sizes": [1], "payload": b"x",
        "inputs": [30, 31], "inputCounts": [2], "inputSources": [1],
    }, []),
    ("dispatch-inputs-inlined", "dispatch", {
        "clients": [CLIENT], "ids": [31, 32, 33], "attempts": [1], "functions": [1], "sizes": [5, 0, 3],
        "payload": b"aabcdccc", "inputs": [30, 31, 30, 32], "inputCounts": [2, 0, 2], "inputSources": [0],
        "inlineSizes": [4, 0, 0, 1],
    }, []),
    ("dispatch-inputs-segments", "dispatch", {
        "clients": [CLIENT], "ids": [31, 32, 33], "attempts": [1], "functions": [1], "sizes": [2, 0, 3],
        "payload": b"aaccc", "inputs": [30, 31, 30], "inputCounts": [1, 0, 2], "inputSources": [1, 0, 1],
    }, []),
    # Rows that read results of rows before them.
    ("hello-worker-followers", "hello", {
        **HELLO, "role": "worker", "incarnation": WORKER, "agent": AGENT, "host": "node-7", "takesFollowers": True,
    }, []),
    ("submit-limits", "submit", {
        "ids": [41], "functions": [7], "sizes": [1], "payload": b"x", "options": {**OPTIONS, "limits": ["api", "db"]},
    }, []),
    ("hello-client-account", "hello", {**HELLO, "role": "client", "account": "ada"}, []),
    ("dispatch-followers", "dispatch", {
        "clients": [CLIENT], "ids": [31, 32], "attempts": [1], "functions": [1], "sizes": [2, 1], "payload": b"aab",
        "inputs": [30, 31, 30], "inputCounts": [1, 2], "inputSources": [0, 3, 0],
    }, []),
    ("resolved-kept", "resolved", {
        "ids": [31, 33, 34], "outcomes": [8, 0, 9], "sizes": [0, 1, 4], "payload": b"vlost",
    }, []),
    ("forget-objects-from-client", "forgetObjects", {"ids": [30, 31, (1 << 63) - 1]}, []),
    ("forget-objects-to-worker", "forgetObjects", {"clients": [CLIENT, OTHER_CLIENT], "ids": [30, 30]}, []),
    ("held-results", "heldResults", {"ids": [30, (3 << 48) + 31], "bytes": [70_000, 1 << 33]}, []),
    ("held-results-none", "heldResults", {"ids": [], "bytes": []}, []),
    ("forget-objects-segments", "forgetObjects", {"clients": [CLIENT], "ids": [30, 31]}, []),
    # Output of tasks.
    ("submit-stream-output", "submit", {
        "ids": [40], "functions": [7], "sizes": [1], "payload": b"x",
        "options": {"retries": -1, "streamOutput": True, "graph": 41, "keys": "summary"},
    }, []),
    ("dispatch-stream-output", "dispatch", {
        "clients": [CLIENT], "ids": [40], "attempts": [1], "functions": [1], "sizes": [1], "payload": b"x",
        "flags": [4], "depths": [0], "priorities": [0],
    }, []),
    ("dispatch-names", "dispatch", {
        "clients": [CLIENT], "ids": [40, 41, 42], "attempts": [1], "functions": [1], "sizes": [1], "payload": b"xyz",
        "names": "Zoëfit".encode(), "nameSizes": [4, 0, 3],
    }, []),
    ("dispatch-bookings", "dispatch", {
        "clients": [CLIENT], "ids": [1, 2, 3], "attempts": [1], "functions": [4], "sizes": [1], "payload": b"abc",
        "bookings": b"17 cpus=4 gpu=1.5:0+2\n18 license=0.001", "rowBookings": [1, 0, 2],
    }, []),
    ("dispatch-bookings-constant", "dispatch", {
        "clients": [CLIENT], "ids": [1, 2], "attempts": [1], "functions": [4], "sizes": [1], "payload": b"ab",
        "bookings": b"17 gpu=1:0", "rowBookings": [1],
    }, []),
    ("submit-resources", "submit", {
        "ids": [41], "functions": [7], "sizes": [1], "payload": b"x",
        "options": {**OPTIONS, "resources": [
            {"name": "cpus", "amount": 4000}, {"name": "gpu", "amount": 250}, {"name": "memory", "amount": 1 << 42},
        ], "releaseResources": True},
    }, []),
    ("hello-agent-resources", "hello", {
        **HELLO, "role": "agent", "incarnation": AGENT,
        "resources": [
            {"name": "gpu", "amount": 4000, "hasIds": True}, {"name": "license", "amount": 2000, "hasIds": False},
        ],
        "slots": 8,
    }, []),
    ("hello-worker-bookings", "hello", {
        **HELLO, "role": "worker", "incarnation": WORKER, "agent": AGENT,
        "running": {"clients": [CLIENT, CLIENT], "ids": [3, 7], "attempts": [1, 2]},
        "bookings": ["", "17 cpus=4 gpu=1.5:0+2"], "finished": 1,
    }, []),
    ("dispatch-names-constant", "dispatch", {
        "clients": [CLIENT], "ids": [40, 41], "attempts": [1], "functions": [1], "sizes": [1], "payload": b"xy",
        "flags": [1], "depths": [0], "priorities": [0], "names": b"fitfit", "nameSizes": [3],
    }, []),
    ("dispatch-names-segments", "dispatch", {
        "clients": [CLIENT], "ids": [40], "attempts": [1], "functions": [1], "sizes": [1], "payload": b"x",
        "names": b"fit", "nameSizes": [3],
    }, []),
    ("output-from-worker", "output", {
        "clients": [CLIENT, OTHER_CLIENT], "ids": [10, 4], "streams": [0, 1], "labels": [18], "sizes": [25, 18],
        "text": f"{LABEL}Zoë\nte{LABEL}".encode(),
    }, []),
    ("output-to-client", "output", {
        "ids": [10, 10], "streams": [0], "labels": [18], "sizes": [21], "text": f"{LABEL}oneupo{LABEL[3:]}two".encode(),
        "dropped": [1 << 40],
    }, []),
    ("output-nothing-but-dropped", "output", {"dropped": [4096]}, []),
    ("output-from-worker-segments", "output", {
        "clients": [CLIENT], "ids": [10], "streams": [1], "labels": [0], "sizes": [4], "text": b"line",
    }, []),
    # Results that stay on their host.
    ("dispatch-may-store", "dispatch", {
        "clients": [CLIENT], "ids": [31, 32], "attempts": [1], "functions": [1], "sizes": [2, 0], "payload": b"aa",
        "flags": [8, 0], "depths": [0], "priorities": [0], "inputs": [30, 30, 29], "inputCounts": [1, 2],
        "inputSources": [2, 0, 1],
    }, []),
    ("results-stored", "results", {
        "clients": [CLIENT], "ids": [31, 32], "attempts": [1], "outcomes": [10, 0], "durations": [1000, 2500],
        "sizes": [8, 1], "payload": (50 << 20).to_bytes(8, "little") + b"v",
    }, []),
    ("fetch-objects", "fetchObjects", {"clients": [CLIENT, OTHER_CLIENT], "ids": [30, (1 << 63) - 1]}, []),
    ("fetch-objects-from-client", "fetchObjects", {"ids": [30, 31, (1 << 63) - 1]}, []),
    ("forget-objects-to-client", "forgetObjects", {"clients": [CLIENT], "ids": [31]}, []),
    ("object-to-client", "object", {"client": CLIENT, "id": 31, "name": ""}, [BODY, b"buffer"]),
    ("resolved-kept-on-host", "resolved", {
        "ids": [31, 32], "outcomes": [8], "sizes": [14, 8],
        "payload": (50 << 20).to_bytes(8, "little") + b"node-7" + (3).to_bytes(8, "little"),
    }, []),
    ("fetch-objects-segments", "fetchObjects", {"clients": [CLIENT], "ids": [30, 31]}, []),
    # Files that go from host to host.
    ("hello-agent-data", "hello", {
        **HELLO, "role": "agent", "incarnation": AGENT, "host": "node-7",
        "data": {"address": "tcp://10.0.0.7:40123", "key": "0123456789abcdef" * 4, "ticket": "fedcba9876543210" * 2},
    }, []),
    ("transfer-objects", "transferObjects", {
        "source": AGENT,
        "data": {"address": "tcp://[fe80::1]:40123", "key": "0123456789abcdef" * 4, "ticket": "fedcba9876543210" * 2},
        "clients": [CLIENT], "ids": [30], "bytes": [50 << 20],
    }, []),
    ("transfer-objects-many", "transferObjects", {
        "source": AGENT,
        "data": {"address": "tcp://10.0.0.7:40123", "key": "", "ticket": "fedcba9876543210" * 2},
        "clients": [CLIENT, OTHER_CLIENT], "ids": [30, 30], "bytes": [70000, 1 << 40],
    }, []),
    ("transfer-objects-constant", "transferObjects", {
        "source": AGENT,
        "data": {"address": "tcp://10.0.0.7:40123", "key": "", "ticket": "fedcba9876543210" * 2},
        "clients": [CLIENT], "ids": [30, 31, 32], "bytes": [70000],
    }, []),
    # Gangs.
    ("submit-gang", "submit", {
        "ids": [41, 45], "functions": [7], "sizes": [1], "payload": b"xy", "options": {**OPTIONS, "gangSize": 4},
    }, []),
    ("gang-member", "gangMember", {
        "client": CLIENT, "id": 42, "attempt": 2, "rank": 1, "hosts": ["node-7", "node-7", "node-8", "knoten-\u00e4"],
    }, []),
    ("exchange-from-worker", "exchange", {
        "client": CLIENT, "id": 42, "attempt": 2, "round": 3, "sizes": [5], "payload": b"value",
    }, []),
    ("exchange-to-worker", "exchange", {
        "client": CLIENT, "id": 42, "attempt": 2, "round": 3, "sizes": [5, 0, 2], "payload": b"valueab",
    }, []),
    ("exchange-without-an-ended-member", "exchange", {
        "client": CLIENT, "id": 42, "attempt": 2, "round": 3, "sizes": [], "payload": b"", "ended": 3,
    }, []),
    ("transferred", "transferred", {"source": AGENT, "clients": [CLIENT], "ids": [30]}, []),
    ("transferred-constant", "transferred", {"source": AGENT, "clients": [CLIENT], "ids": [30, 31]}, []),
    ("transferred-not", "transferred", {
        "source": AGENT, "clients": [CLIENT, OTHER_CLIENT], "ids": [30, 30], "error": "no connection within 5 s",
        "isUnreachable": True,
    }, []),
    ("read-object", "readObject", {
        "ticket": "fedcba9876543210" * 2, "client": CLIENT, "id": 30, "offset": 3 << 20, "bytes": 1 << 20,
    }, []),
    ("object-chunk", "objectChunk", {
        "client": CLIENT, "id": 30, "offset": 3 << 20, "fileBytes": (3 << 20) + 6,
    }, [b"buffer"]),
    ("no-object", "noObject", {"client": CLIENT, "id": 30, "reason": "there is no such file"}, []),
    ("object-from-agent", "object", {"client": CLIENT, "id": 31, "name": ""}, [BODY, b"buffer"]),
    ("objects", "objects", {
        "ids": [30, 31, (1 << 63) - 1], "sizes": [2, 0, 1], "payload": b"aab",
    }, []),
    ("forget-objects-from-agent", "forgetObjects", {"clients": [CLIENT], "ids": [30, 31]}, []),
    # Retract, stop, suspend.
    ("retract", "retract", {"clients": [CLIENT, OTHER_CLIENT], "ids": [10, 10], "attempts": [1, 4]}, []),
    ("retract-segments", "retract", {"clients": [CLIENT], "ids": [10, 11], "attempts": [1]}, []),
    ("retracted", "retracted", {
        "clients": [CLIENT, OTHER_CLIENT], "ids": [10, 10], "attempts": [1, 4], "returned": [1, 0],
    }, []),
    ("stop", "stop", {"clients": [CLIENT], "ids": [10, 11], "attempts": [1]}, []),
    ("end-worker", "endWorker", {
        "incarnation": WORKER, "client": CLIENT, "id": 10, "attempt": 1, "reason": "time limit of 2 s",
    }, []),
    ("suspended", "suspended", {"clients": [CLIENT], "ids": [10], "attempts": [1]}, []),
    ("resumed", "resumed", {"clients": [CLIENT], "ids": [10], "attempts": [1]}, []),
    ("credit", "credit", {"bytes": 1 << 26}, []),
    ("received", "received", {"bytes": 4096}, []),
    ("cancel-force", "cancel", {"ids": [10], "force": [1]}, []),
    # Hellos of reconnecting peers and others.
    ("hello-worker-again", "hello", {
        **HELLO, "role": "worker", "incarnation": WORKER, "agent": AGENT, "host": "node-7",
        "capabilities": [{"name": "gpu", "amount": 2}, {"name": "linux", "amount": 1}],
        "running": {"clients": [CLIENT, OTHER_CLIENT], "ids": [10, 4], "attempts": [1, 2]},
        "scheduler": 0x4444444444444444,
    }, []),
    ("hello-nested-client", "hello", {**HELLO, "incarnation": OTHER_CLIENT, "worker": WORKER}, []),
    # Everything else.
    ("hello-agent", "hello", {**HELLO, "role": "agent", "incarnation": AGENT, "host": "node-7", "name": ""}, []),
    ("hello-segments", "hello", HELLO, []),
    ("hello-agent-packages", "hello", {
        **HELLO, "role": "agent", "incarnation": AGENT, "host": "node-7", "packages": "numpy 2.1.0\npandas 2.2.0\n",
    }, []),
    ("hello-other-version", "hello", {**HELLO, "protocolVersion": 99}, []),
    ("refused", "refused", {
        "reason": "protocolVersion", "text": "protocol version 99 is not 1", "protocolVersion": 1, "version": "1.0.0",
    }, []),
    ("hello-wanted", "helloWanted", None, []),
    ("goodbye", "goodbye", {"reason": "the client was closed"}, []),
    ("heartbeat", "heartbeat", {"sequence": 3, "residentBytes": 52428800, "cpuMilliseconds": 1500}, []),
    ("heartbeat-client-hosts", "heartbeat", {
        "sequence": 4, "residentBytes": 0, "cpuMilliseconds": 0, "wantsHosts": True,
    }, []),
    ("heartbeat-agent", "heartbeat", {
        "sequence": 1 << 40, "residentBytes": 1, "cpuMilliseconds": 2, "workers": [
            {"incarnation": WORKER, "residentBytes": 1 << 33, "cpuMilliseconds": 9},
            {"incarnation": WORKER + 1, "residentBytes": 0, "cpuMilliseconds": 0},
        ],
        "lagMicroseconds": 350, "isRetiring": True,
        "memoryBytes": 1 << 34, "diskBytes": 1 << 41, "movedBytes": 1 << 42, "unixMilliseconds": 1_700_000_000_123,
        "memoryLimitBytes": 1 << 35, "diskLimitBytes": 1 << 43,
    }, []),
    ("heartbeat-pools", "heartbeat", {
        "sequence": 4, "residentBytes": 1, "cpuMilliseconds": 2, "pools": POOLS,
    }, []),
    ("shutdown", "shutdown", None, []),
    ("heartbeat-echo", "heartbeatEcho", {"sequence": 3}, []),
    ("heartbeat-echo-drained", "heartbeatEcho", {"sequence": 4, "isDrained": True}, []),
    ("heartbeat-echo-workers", "heartbeatEcho", {"sequence": 5, "workers": 1000}, []),
    ("heartbeat-echo-ticket", "heartbeatEcho", {"sequence": 0, "workers": 3, "ticket": "fedcba9876543210" * 2}, []),
    ("heartbeat-echo-hosts", "heartbeatEcho", {
        "sequence": 6, "workers": 9,
        "hosts": [
            {"name": "node-7", "language": "python 3.11.7", "version": "1.0.0", "packages": 2,
             "unixMilliseconds": 1_700_000_000_123},
            {"name": "node-8", "language": "C++ 20", "version": "", "packages": 0, "unixMilliseconds": 0},
        ],
        "packages": ["numpy 1.26.4\n", "numpy 2.1.0\npandas 2.2.0\n"], "unixMilliseconds": 1_700_000_000_456,
    }, []),
    ("forget-functions", "forgetFunctions", {"numbers": [7, 0, 4294967295]}, []),
    ("cancel", "cancel", {"ids": [10, 11, (1 << 63) - 1]}, []),
    ("cancel-refused", "cancelRefused", {"ids": [11]}, []),
    ("worker-died", "workerDied", {
        "incarnation": WORKER, "pid": 815, "cause": "signal 9 (SIGKILL)", "peakBytes": 104857600, "client": CLIENT,
        "id": 10, "attempt": 1,
    }, []),
    ("worker-died-idle", "workerDied", {"incarnation": WORKER, "pid": 815, "cause": "exit code 1"}, []),
    ("error", "error", {"text": "submit names function 7, which this client has not sent"}, []),
    ("error-tasks", "error", {
        "text": "function 3 is not taken: a client may have 2 functions (--client-function-limit)",
        "tasks": [10, 1 << 40],
    }, []),
    ("notice", "notice", {"text": "3 task(s) wait for a worker with gpu=1: there is none"}, []),
    ("snapshot", "snapshot", {
        "protocolVersion": 1, "version": "1.0.0", "incarnation": 0x4444444444444444, "uptimeMilliseconds": 86400000,
        "address": "tcp://127.0.0.1:2345", "waiting": 5, "dispatched": 2, "resolved": 1000000, "clients": 1,
        "workers": 10, "agents": 1,
        "received": [counter("submit", 17), counter("results", 4)],
        "sent": [counter("dispatch", 12)],
        "dropped": [counter("malformed", 0), counter("late", 3, 1699999999000)],
        "sequence": 86400, "unixMilliseconds": 1700000000000, "blocked": 1, "running": 1, "suspended": 0,
        "outcomes": [999990, 4, 0, 0, 0, 1, 3, 2, 0, 0, 0], "functions": 2, "objects": 1,
        "process": {
            "interpreter": "PyPy 7.3.11 (Python 3.9.16)", "host": "head", "pid": 4712, "residentBytes": 130 << 20,
            "cpuMilliseconds": 90000, "loopTurns": 500000, "loopMicroseconds": 60000000,
            "loopDurations": [0, 0, 0, 0, 0, 0, 0, 500000], "monitorMicroseconds": 3000000,
        },
        "texts": {"text": "node-7node-7|0Zoëpython 3.11.71.0.0gpu=2math.sqrtfit5c1f".encode(),
                  "sizes": [6, 8, 4, 13, 5, 0, 5, 9, 3, 4]},
        "workerColumns": {
            "incarnations": [WORKER, WORKER + 1], "agents": [AGENT, 0], "names": [1, 2], "hosts": [0],
            "pids": [815, 816], "languages": [3], "versions": [4], "capabilities": [6, 5], "states": [7, 0],
            "residentBytes": [1 << 33, 0], "cpuMilliseconds": [9, 0], "free": [998, 1000], "held": [2, 0],
            "running": [1, 0], "suspended": [0], "sent": [1000, 0], "done": [998, 0], "clients": [CLIENT, 0],
            "ids": [10, 0], "attempts": [1, 0], "tasks": [8, 5], "runMilliseconds": [1500, 0],
            "functions": [2, 0], "environments": [9, 5],
        },
        "agentColumns": {
            "incarnations": [AGENT], "names": [0], "hosts": [0], "pids": [814], "languages": [3], "versions": [4],
            "residentBytes": [50 << 20], "cpuMilliseconds": [1500], "lagMicroseconds": [350],
            "lastHeartbeatMilliseconds": [86399000],
            "memoryBytes": [1 << 34], "diskBytes": [1 << 41], "movedBytes": [1 << 42],
            "receivedBytes": [1 << 43], "sentBytes": [1 << 44], "comingBytes": [1 << 30],
            "roomBytes": [1 << 62],
        },
        "clientColumns": {
            "incarnations": [CLIENT], "names": [2], "workers": [0], "waiting": [5], "notWaiting": [3], "objects": [1],
            "objectBytes": [4096], "done": [1000000], "shares": [2],
        },
        "functionColumns": {
            "numbers": [1, 2], "names": [7, 5], "tasks": [8, 0], "done": [999994, 0], "failed": [10, 0],
            "runNanoseconds": [1 << 40, 0], "bytes": [512], "clients": [1, 0], "taskNames": [8, 5],
        },
        "objectColumns": {"clients": [CLIENT], "ids": [30], "names": [5], "bytes": [4096], "tasks": [1], "states": [1]},
        "deaths": [counter("signal 9", 2, 1699999998000), counter("lease", 1)], "retries": 3,
        "dispatchLatencies": [0, 0, 0, 1000002], "dispatchLatencyMicroseconds": 6000000, "waitingBytes": 320,
        "objectBytes": 4096, "memoryLimitBytes": 4 << 30, "unschedulable": 2,
        "unreachableHosts": [counter("node-8 from node-7", 1)],
        "shares": [
            {"name": "ada", "weight": 2.5, "clients": 3, "waiting": 5, "running": 8, "usedMilliseconds": 1 << 40,
             "maxRunning": 100, "maxWaiting": 1000000},
            {"name": "bob@node-7", "weight": 1.0, "clients": 1, "waiting": 0, "running": 0, "usedMilliseconds": 0,
             "maxRunning": 0, "maxWaiting": 0},
        ],
        "limits": [
            {"name": "db", "most": 10, "perSecond": 0.0, "running": 10, "waiting": 5},
            {"name": "api", "most": 0, "perSecond": 0.5, "running": 0, "waiting": 0},
        ],
        "resources": [
            {"host": "node-7", "name": "gpu", "total": 4000, "booked": 1500, "reserved": 1000, "free": 2500,
             "agent": AGENT},
            {"host": "node-7", "name": "cpus", "total": 8000, "booked": 2000, "reserved": 0, "free": 3000,
             "agent": AGENT},
        ],
        "resourcesWaiting": 3, "reservationMilliseconds": 1500,
        "needs": [
            {"capabilities": "gpu=2", "kind": "cloudpickle 3.11", "limits": ["db"], "waiting": 4, "unknown": 1,
             "milliseconds": 90000, "resources": [{"name": "gpu", "amount": 1500}], "held": 3},
            {"capabilities": "", "kind": "", "limits": [], "waiting": 1, "unknown": 0, "milliseconds": 0,
             "resources": [], "held": 0},
        ],
        "pools": POOLS,
    }, []),
    ("history", "history", {
        "incarnation": [0x4444444444444444], "first": [1000], "kinds": [0, 1, 2, 3, 4], "times": [1, 2, 3, 4, 1 << 40],
        "clients": [CLIENT], "ids": [10, 10, 10, 10, 11], "attempts": [0, 1, 1, 1, 1],
        "workers": [0, WORKER, WORKER, WORKER, 0], "names": [0, 0, 0, 0, 1], "outcomes": [0, 0, 0, 1, 0],
        "durations": [0, 0, 0, 12345678, 0], "text": "math.sqrtZoë".encode(), "sizes": [9, 4],
    }, []),
    ("history-names", "history", {
        "incarnation": [0x4444444444444444], "first": [1007], "kinds": [5, 4], "times": [6, 7], "clients": [CLIENT],
        "ids": [12, 12], "attempts": [1], "workers": [WORKER], "names": [1], "outcomes": [0, 4], "durations": [0, 2000],
        "text": "math.sqrtZoëOSError: [Errno 5]".encode(), "sizes": [9, 4, 0, 18], "errors": [2, 3], "functions": [0],
    }, []),
    ("history-errors", "history", {
        "incarnation": [0x4444444444444444], "first": [1005], "kinds": [3], "times": [5], "clients": [CLIENT],
        "ids": [11, 12], "attempts": [1], "workers": [WORKER], "names": [0], "outcomes": [1, 0], "durations": [5, 6],
        "text": b"math.sqrtValueError: math domain error", "sizes": [9, 0, 29], "errors": [2, 1],
    }, []),
    ("history-tracebacks", "history", {
        "incarnation": [0x4444444444444444], "first": [0], "kinds": [0, 3], "times": [5, 6], "clients": [CLIENT],
        "ids": [11, 11], "attempts": [0, 1], "workers": [0, WORKER], "names": [0], "outcomes": [0, 1],
        "durations": [0, 6], "text": b"fKeyError: 1Traceback:\nKeyError: 1", "sizes": [1, 0, 11, 22], "errors": [1, 2],
        "tracebacks": [1, 3],
    }, []),
    ("history-reasons", "history", {
        "incarnation": [0x4444444444444444], "first": [0], "kinds": [0, 1], "times": [5, 6], "clients": [CLIENT],
        "ids": [11, 11], "attempts": [0, 1], "workers": [0, WORKER], "names": [0], "outcomes": [0], "durations": [0],
        "text": b"fsince: it waits for 1.0 s\nhost: a could serve it: 1 busy", "sizes": [1, 0, 56],
        "waitReasons": [1, 2],
    }, []),
    ("history-nothing", "history", {"incarnation": [0x4444444444444444], "first": [0]}, []),
    ("history-segments", "history", {
        "incarnation": [5], "first": [0], "kinds": [3], "times": [7], "clients": [CLIENT], "ids": [10, 11],
        "attempts": [1], "workers": [WORKER], "names": [0], "outcomes": [0], "durations": [5, 6], "text": b"f",
        "sizes": [1],
    }, []),
    ("graphs", "graphs", {
        "incarnation": [0x4444444444444444], "total": [12000], "clients": [CLIENT], "ids": [40, 41, 42, 43, 44],
        "names": [0, 0, 1, 0, 0], "states": [3, 2, 0, 1, 4], "inputs": [40, 40, 41, 40], "inputCounts": [0, 1, 2, 1, 0],
        "text": "math.sqrtZoë".encode(), "sizes": [9, 4],
    }, []),
    ("graphs-named", "graphs", {
        "incarnation": [0x4444444444444444], "total": [3], "clients": [CLIENT], "ids": [40, 41, 50],
        "names": [0], "states": [3, 2, 0], "inputs": [40], "inputCounts": [0, 1, 0], "text": b"fsummary, chart",
        "sizes": [1, 14, 0], "graphs": [41, 41, 0], "keys": [1, 1, 2], "submitMilliseconds": [61000, 61000, 0],
    }, []),
    ("graphs-segments", "graphs", {
        "incarnation": [5], "total": [2], "clients": [CLIENT], "ids": [40, 41], "names": [0], "states": [1],
        "text": b"f", "sizes": [1],
    }, []),
    # Environments.
    ("hello-worker-environment", "hello", {
        **HELLO, "role": "worker", "incarnation": WORKER, "kinds": ["cloudpickle 3.11"], "environment": ENVIRONMENT,
    }, []),
    ("hello-agent-environments", "hello", {
        **HELLO, "role": "agent", "incarnation": AGENT, "environments": 3, "platform": "linux-x86_64-cp311",
    }, []),
    ("function-environment", "function", {
        "number": 7, "name": "math.sqrt", "kind": "cloudpickle", "environment": ENVIRONMENT,
    }, [BODY]),
    ("environment", "environment", {
        "name": ENVIRONMENT, "contents": [sha256(BODY), sha256(b"")], "bytes": 40, "level": 1,
        "platform": "linux-x86_64-cp311",
    }, [MANIFEST]),
    ("contents-wanted", "contentsWanted", {"names": [sha256(BODY), sha256(b"")]}, []),
    ("contents", "contents", {"count": 2}, [BODY, b""]),
    ("environment-ready", "environmentReady", {"name": ENVIRONMENT, "error": "no space left on the device"}, []),
    ("change-worker", "changeWorker", {"worker": WORKER, "environment": ENVIRONMENT, "mode": 1}, []),
    ("snapshot-other-version", "snapshot", {"protocolVersion": 99, "version": "9.0.0", "incarnation": 1}, []),
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
    if isinstance(value, dict):
        return {name: as_json(inner) for name, inner in value.items()}
    return value.hex() if isinstance(value, bytes) else value


def description(member: str, content: dict[str, Any] | None, frames: list[bytes]) -> str:
    """The message as JSON, a field a line."""
    fields = [f"  {json.dumps(field)}: {json.dumps(as_json(value))}" for field, value in (content or {}).items()]
    body = "{\n" + ",\n".join(fields) + "\n }" if fields else "{}"
    hexes = json.dumps([frame.hex() for frame in frames])
    return f'{{\n "message": "{member}",\n "fields": {body},\n "frames": {hexes}\n}}\n'


def make(schema: Any) -> dict[str, bytes]:
    """The content of every file by its name."""
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
