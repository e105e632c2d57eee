"""What goes over the page's WebSocket: the contract between this server and static/.

static/index.html is `/`, everything else of static/ is `/static/...`, at any depth. The page connects to `/live`.
Every message is one JSON object as text, with a `type`. Times are seconds of unix time by the scheduler's clock
(`now` says what that clock shows), durations are seconds unless a column says microseconds, sizes bytes, rates a
second's, processor shares percent of one core. What is long travels by column: `columns` has lists of one length,
row i of each is about the same thing. Identities (of workers, agents, clients, tasks, objects, and a scheduler's
incarnation) are strings of decimal digits, as they don't fit a JavaScript number. Names are whatever users called
things: show them as text. Readers pass over types and columns that they don't know.

What the server sends
---------------------
In this order at first: `hello`, `presence`, `snapshot` (where there is one), and then what the page watches.

`hello`: `contract` (1), `version` (of scaler_ui), `address` (the monitor's), `topics` (what can be watched), `limits`:
    `tasks` (executions the server keeps at most), `window` (seconds it keeps them at most), `interval` (seconds, the
    least that makes a difference); `defaults`: `interval`, `window` (seconds); `outcomes`: [[number, name, kind],
    ...], what an execution's outcome may be, kind one of "good", "neutral" and "failed" (a number that is not there:
    neutral, unknown).

`presence`: `presence`: "unheard" (nothing came from that address yet), "there", "gone" or "other version"; `since`:
    when that began; `problem`: text, why nothing can be shown, "" where no
    reason is known; `schedulers`: how many were there one after the
    other; `missed_snapshots`, `missed_history` (rows), `malformed` (messages). Sent whenever one of these changes,
    to paused pages too. When the scheduler is gone everything else stays as it was last.

`snapshot`: sent every interval.
    `now`, `uptime`, `started` (unix time), `version`, `incarnation`, `address` (where the scheduler is bound), `host`,
    `pid`, `interpreter`;
    `process`: `cpu`, `rss`, `loop` (percent of the time that its loop was busy), `loop_mean` (seconds a turn),
        `loop_durations` (number k: turns that took less than 2^k microseconds and no less than 2^(k-1), since the
        start);
    `tasks`: now `waiting`, `blocked`, `queued` (at workers), `running`, `suspended`; since the start `resolved`; and
        `resolved_rate`;
    `outcomes`: since the start, [[name, total], ...], names as in hello's;
    `peers`: `clients`, `workers`, `agents`; `functions`, `objects`: how many there are;
    `left_out`: [[table, number], ...], rows that the scheduler's tables don't have as they are too long;
    `memory`: `limit`, `tasks`, `objects` (what of it the payload of open tasks takes, and objects);
    `deaths`: of workers since the start, [[cause, total], ...]; `retries`: tasks given out again since the start;
    `dispatch_latencies`: as `loop_durations`, of the time that tasks waited for a worker once they could have had one;
    `problems`: texts, a line for each thing that looks wrong, the worst first, as `scaler_client status` has them;
    `messages`: `received`, `sent`: [[name, total, rate], ...] by name; `dropped`: [[name, total], ...].

Topics that are sent only to pages that watch them; each message has the topic as its type:

`series`: `first` (the number of its first point) and `columns`: `time`, `throughput` and `failed` (tasks a second),
    `waiting`, `blocked`, `queued`, `running`, `suspended`, `workers`, `clients`, `memory` (the scheduler's),
    `worker_memory` (all workers' together), `cpu`, `loop` (percent). When one begins to watch it comes with all
    points of the window, later with those that are new. A point whose `time` is set and whose other columns are null
    is a gap: the scheduler was gone. Every second has a point, whatever the interval.

`tasks`: executions that are over; an execution is one attempt of a task. They come in chunks in the order of their
    ends, at first those of the window and later new ones. Each chunk is complete in itself: `chunk` (its number),
    `base` (unix time in whole seconds), `missed` (rows of history that were lost to this server before this chunk,
    since the chunk before), dictionaries `names`, `errors`, `clients` (identities), `client_names`, `workers`
    (identities), `worker_names`, and `columns`:
        `id` (string), `client` (index into clients and client_names), `attempt`, `worker` (index, -1: none had to do
        with it), `function` (index into names), `name` (index into names: the task's own name, or the function's
        again), `submitted` (microseconds since base, may be below zero; null: not known), `start` (microseconds
        since base; null: it never ran), `end` (the same, never null), `outcome` (a number of hello's `outcomes`),
        `error` (index into errors, -1: none).
    Starts are the end less the duration that the worker has measured; ends are when the scheduler heard of it, and
    results of one message are laid one before the other, so that on a worker they don't overlap.

`running`: `now` and `columns`: `client`, `client_name`, `id` (strings), `attempt`, `worker` (identity), `worker_name`,
    `name`, `start` (unix time). Each message has all tasks that are known to run, one a worker at most.

`workers`: `now` and `columns`: `id`, `name`, `host`, `pid`, `language`, `version`, `capabilities`, `agent`
    (identity), `flags` (bits: 1 its agent is here, 2 it holds a task, 4 that runs long, 8 it does not answer),
    `agent_cpu`, `agent_rss`, `lag` (seconds), `cpu`, `rss`, `free` (slots), `held`, `queued`, `running`, `suspended`
    (tasks it has now), `sent`, `sent_rate`, `done`, `done_rate`, `task` (the name of what it runs, "" for nothing),
    `task_client`, `task_id` (strings, "" for nothing), `task_seconds` (how long it has run).

`agents`: `now` and `columns`: `id`, `name`, `host`, `pid`, `language`, `version`, `cpu`, `rss`, `lag`, `silent`
    (seconds since its last heartbeat), `workers`.

`clients`: `now` and `columns`: `id`, `name`, `worker` (the identity of the worker that a nested client lives in, ""
    for others), `waiting`, `others` (open tasks that don't wait), `objects`, `object_bytes`, `done`, `done_rate`
    (tasks that it was sent an answer to).

`functions`: `now` and `columns`: `name`, `open` (tasks now), `done`, `failed`, `rate` (done a second), `mean`
    (seconds), `clients`, `bytes`, all since the scheduler's start; `given` (names that tasks of it were given lately,
    with commas between them, "" for none); and of the executions that the server keeps, by
    name: `recent`, `recent_failed`, `p50`, `p99`, `longest` (seconds; null: none). Percentiles are of buckets an
    eighth of a power of two wide, so they are right to within 4.5 percent.

`objects`: `now` and `columns`: `client`, `id`, `name`, `bytes`, `tasks` (that will read it), `state` ("to come",
    "here", "on a host").

`graphs`: `now`, `total` (nodes of all open graphs) and `columns` of those that are shown: `client`, `id`, `name`,
    `state` ("blocked", "waiting", "running", "done", "failed"), `graph` (the client's number of the graph, "" for a
    node that belongs to none), `keys` (text, the keys that the graph was asked for), `begun` (when the node was
    submitted, unix time, null: not known); `edges`: two lists `from` and `to` of row numbers: `to` reads what `from`
    gives. Nodes of one client with the same `graph` are one graph; of others the page finds connected parts. It finds
    layers itself. Sent when it has changed. Nodes stay for half a minute after their end, and as long as their graph
    is there.

`story`: the answer to a page that has asked for it: `client`, `id`, and `columns`, a row for each thing that is
    known to have happened to the task: `kind` ("submitted", "dispatched", "started", "ended", "returned",
    "reattached"), `time`, `attempt`, `worker` (identity, "" for none), `worker_name`, `name`, `outcome` (a number of
    hello's `outcomes`; null but for "ended", and "returned" where the attempt has failed), `duration` (seconds, 0: not
    known), `error`, `traceback` (text of several lines, of an attempt that has failed, "" where none is known). No
    rows: the scheduler knows nothing of it any more.

`reset`: `topic` ("series" or "tasks"): forget what came of it; all that is to be shown comes anew. Sent before the
    first message of a topic, when a larger window is asked for, and when a page was paused or slow for so long that
    something was dropped meanwhile.

`refused`: `problem`: what the page has sent was wrong. The connection stays.

What the page sends
-------------------
`{"type": "watch", "topics": ["workers", "series"]}`: exactly these from now on. Nothing is watched at first. A topic
    that is watched comes at once.
`{"type": "settings", "interval": 2, "window": 300}`: seconds between pictures (1 to 60) and of series and tasks at
    first (10 to what `hello` says); each may be left out. The server need not be told to forget: the page drops what
    leaves its window.
`{"type": "story", "client": "77", "id": "5"}`: what has happened to that task. A page can ask for one at a time.
`{"type": "pause"}`, `{"type": "resume"}`: while paused only `presence` is sent.

A browser that reads slowly gets fewer pictures, always the newest; what is incremental (`series`, `tasks`) it gets
whole.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from ..monitor.reader import Presence

CONTRACT = 1
LIVE_PATH = "/live"
MAX_MESSAGE_BYTES = 4096  # bytes that the page may send at once
MIN_INTERVAL_SECONDS = 1.0
MAX_INTERVAL_SECONDS = 60.0
MIN_WINDOW_SECONDS = 10.0

TOPICS = ("series", "tasks", "running", "workers", "agents", "clients", "functions", "objects", "graphs")

OUTCOMES = (
    "value", "exception", "function failed", "result failed", "exception, retryable", "worker died", "cancelled",
    "timed out", "kept", "input lost", "stored",
)  # fmt: skip
"""By the schema's ordinals."""
RETURNED = 255
"""Stands for an execution without an end: its worker was lost, or it was taken back. The task is given out again."""
GOOD_OUTCOMES = frozenset((0, 8, 10))
NEUTRAL_OUTCOMES = frozenset((6, RETURNED))

PRESENCES = {
    Presence.UNHEARD: "unheard",
    Presence.THERE: "there",
    Presence.GONE: "gone",
    Presence.OTHER_VERSION: "other version",
}


class RequestError(ValueError):
    """What a page has sent is wrong; the text says what."""


@dataclass(frozen=True)
class WatchRequest:
    topics: frozenset[str]


@dataclass(frozen=True)
class SettingsRequest:
    """None: as it was."""

    interval: float | None
    window: float | None


@dataclass(frozen=True)
class PauseRequest:
    is_on: bool


@dataclass(frozen=True)
class StoryRequest:
    client: int
    id: int


PageRequest = WatchRequest | SettingsRequest | PauseRequest | StoryRequest


def outcome_kind(outcome: int) -> str:
    if outcome in GOOD_OUTCOMES:
        return "good"
    return "failed" if outcome < len(OUTCOMES) and outcome not in NEUTRAL_OUTCOMES else "neutral"


def encode(message: dict[str, Any]) -> str:
    return json.dumps(message, separators=(",", ":"), allow_nan=False)


def parse_request(text: str, longest_window: float) -> PageRequest:
    """What a page has sent.

    Raises:
        RequestError: it is none of the above.
    """
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise RequestError("that is no JSON") from None
    if not isinstance(message, dict):
        raise RequestError("that is no object")
    kind = message.get("type")
    if kind == "watch":
        topics = message.get("topics")
        if not isinstance(topics, list) or any(topic not in TOPICS for topic in topics):
            raise RequestError(f"topics is not a list of {', '.join(TOPICS)}")
        return WatchRequest(frozenset(topics))
    if kind == "settings":
        return SettingsRequest(
            _seconds(message, "interval", MIN_INTERVAL_SECONDS, MAX_INTERVAL_SECONDS),
            _seconds(message, "window", MIN_WINDOW_SECONDS, longest_window),
        )
    if kind in ("pause", "resume"):
        return PauseRequest(kind == "pause")
    if kind == "story":
        return StoryRequest(_identity(message, "client"), _identity(message, "id"))
    raise RequestError("its type is not one of watch, settings, story, pause, resume")


def _identity(message: dict[str, Any], name: str) -> int:
    value = message.get(name)
    if not isinstance(value, str) or not re.fullmatch("[0-9]{1,20}", value) or int(value) >= 1 << 64:
        raise RequestError(f"{name} is not an identity in a string")
    return int(value)


def _seconds(message: dict[str, Any], name: str, least: float, most: float) -> float | None:
    value = message.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise RequestError(f"{name} is not a number from {least:g} to {most:g}")
    return float(value)
