"""The messages between this server and the page (static/) over the WebSocket.

`/` is static/index.html, and `/static/...` has everything else in static/, at any depth. The page connects to `/live`.
Every message is one JSON object as text, with a `type`.

- Times are unix times in seconds by the scheduler's clock, and `now` is the present time of that clock.
- Durations are in seconds unless a column says microseconds. Sizes are in bytes, rates per second, and processor use in
  percent of one core.
- Tables travel by column: the lists in `columns` have one length, and row i of each belongs to the same thing.
- Identities (of workers, agents, clients, tasks, objects, and a scheduler's incarnation) are strings of decimal digits,
  because they do not fit a JavaScript number.
- Names come from users: show them as text.
- Both sides ignore types and columns that they do not know.

What the server sends
---------------------
First `hello`, `presence` and `snapshot` (if there is one), in this order. Then the topics that the page watches.

`hello`: `contract` (1), `version` (of scaler_ui), `address` (of the monitor), `topics` (that can be watched); `limits`:
    `tasks` (the most executions that the server keeps), `window` (the most seconds that it keeps them), `interval` (the
    shortest useful interval, in seconds); `defaults`: `interval`, `window` (seconds); `outcomes`: [[number, name,
    kind], ...], the outcomes of executions. A kind is "good", "neutral" or "failed". A number that is not listed is
    unknown and neutral.

`presence`: `presence`: "unknown" (nothing came from the address yet), "up", "down" or "incompatible"; `since`: when
    that began; `problem`: why nothing can be shown, "" if no reason is known; `schedulers`: how many schedulers have
    published there; `missed_snapshots`, `missed_history` (rows), `malformed` (messages). Sent whenever one of these
    changes, also to paused pages. While the scheduler is down, all other data stay as they were.

`snapshot`: sent at every interval.
    `now`, `uptime`, `started` (unix time), `version`, `incarnation`, `address` (where the scheduler is bound), `host`,
    `pid`, `interpreter`;
    `process`: `cpu`, `rss`, `loop` (percent of the time in which its loop was busy), `loop_mean` (seconds a turn),
        `loop_durations` (entry k: turns since the start that took less than 2^k and at least 2^(k-1) microseconds);
    `tasks`: now `waiting`, `blocked`, `queued` (at workers), `running`, `suspended`; since the start `resolved`; and
        `resolved_rate`;
    `outcomes`: since the start, [[name, total], ...], with the names of `hello`;
    `peers`: `clients`, `workers`, `agents`; `functions`, `objects`: their numbers;
    `left_out`: [[table, number], ...], rows that the scheduler's tables lack because they are too long;
    `memory`: `limit`, `tasks` (the payload of open tasks), `objects`;
    `values`: bytes of objects and large results on all hosts: `memory`, `disk`, `moved` (to and from disk), `received`
        (from other hosts and clients), `coming` (on their way now);
    `deaths`: of workers since the start, [[cause, total], ...]; `retries`: tasks dispatched again since the start;
    `dispatch_latencies`: like `loop_durations`, for the time that tasks waited for a worker once they were ready;
    `pools`: of autoscalers, [[name, wanted, booting, there, draining, failed, is_resting, problem,
        problem_seconds], ...]: numbers of hosts; why hosts or calls of the pool fail, and for how long;
    `shares`: [[name, weight, running, waiting, used_seconds, max_running], ...], those with the most open tasks;
    `limits`: of tasks, [[name, most, per_second, running, waiting], ...]; in both 0 is no limit;
    `problems`: one line for each thing that looks wrong, the worst first, as in `scaler_client status`;
    `messages`: `received`, `sent`: [[name, total, rate], ...] by name; `dropped`: [[name, total], ...].

The topics are sent only to pages that watch them. A message's type is its topic.

`series`: `first` (the number of its first point) and `columns`: `time`, `throughput` and `failed` (tasks per second),
    `waiting`, `blocked`, `queued`, `running`, `suspended`, `workers`, `clients`, `memory` (of the scheduler),
    `worker_memory` (of all workers together), `cpu`, `loop` (percent). The first message has all points of the window,
    later messages have the new ones. A point with a `time` and null in all other columns is a gap: the scheduler was
    down. Every second has a point, whatever the interval.

`tasks`: ended executions. An execution is one attempt of a task. They come in chunks in the order of their ends: first
    those of the window, later new ones. Each chunk is self-contained: `chunk` (its number), `base` (unix time in whole
    seconds), `missed` (rows of history that this server lost since the previous chunk), dictionaries `names`, `errors`,
    `clients` (identities), `client_names`, `workers` (identities), `worker_names`, and `columns`:
        `id` (string), `client` (index into clients and client_names), `attempt`, `worker` (index; -1: no worker),
        `function` (index into names), `name` (index into names: the task's own name, or the function's), `submitted`
        (microseconds since base, may be negative; null: not known), `start` (microseconds since base; null: it never
        ran), `end` (microseconds since base, never null), `outcome` (a number of `hello`'s `outcomes`), `error` (index
        into errors; -1: none).
    The end is when the scheduler heard of it, and the start is the end minus the duration that the worker measured.
    Results that arrive in one message are placed one before the other, so that they do not overlap on a worker.

`running`: `now` and `columns`: `client`, `client_name`, `id` (strings), `attempt`, `worker` (identity), `worker_name`,
    `name`, `start` (unix time). Each message has all tasks that are known to run, at most one for each worker.

`workers`: `now` and `columns`: `id`, `name`, `host`, `pid`, `language`, `version`, `capabilities`, `environment`
    (the first digits of its name, "" for none), `resources` (of its host, as text), `agent` (identity), `flags`
    (bits: 1 its agent is connected, 2 it holds a task, 4 its task runs long, 8 it does not answer, 16 it retires),
    `agent_cpu`, `agent_rss`, `lag` (seconds), `cpu`, `rss`, `free` (slots), `held`, `queued`, `running`,
    `suspended` (tasks now), `sent`, `sent_rate`, `done`, `done_rate`, `task` (the name of the running task, "" for
    none), `task_client`, `task_id` (strings, "" for none), `task_seconds` (how long it has run).

`agents`: `now` and `columns`: `id`, `name`, `host`, `pid`, `language`, `version`, `cpu`, `rss`, `lag`, `silent`
    (seconds since its last heartbeat), `workers`; bytes of its host's values: `memory`, `disk`, `moved`,
    `received` (from other hosts and clients), `sent` (to other hosts), `coming` (on their way to it).

`clients`: `now` and `columns`: `id`, `name`, `share` (the name of its key, or user@host), `worker` (the identity of the
    worker that a nested client lives in, "" for other clients), `waiting`, `not_waiting` (open tasks that a worker
    holds, or that are blocked), `objects`, `object_bytes`, `done`, `done_rate` (tasks whose answer was sent to it).

`functions`: `now` and `columns`, since the scheduler's start: `name`, `open` (tasks now), `done`, `failed`, `rate`
    (done per second), `mean` (seconds), `clients`, `bytes`; `task_names` (names of its recent tasks, separated by
    commas); and of the executions that the server keeps, by name: `recent`, `recent_failed`, `p50`, `p99`, `longest`
    (seconds; null: none). Percentiles come from buckets an eighth of a power of two wide, so they are accurate to 4.5
    percent.

`objects`: `now` and `columns`: `client`, `id`, `name`, `bytes`, `tasks` (that will read it), `state` ("pending",
    "in memory", "on a host").

`graphs`: `now`, `total` (nodes of all open graphs) and `columns` of the nodes that are shown: `client`, `id`, `name`,
    `state` ("blocked", "waiting", "running", "done", "failed"), `graph` (the client's number of the graph, "" for a
    node without a graph), `keys` (the keys that the graph was asked for), `begun` (when the node was submitted, unix
    time; null: not known); `edges`: two lists of row numbers, `from` and `to`: the node `to` reads the result of
    `from`. Nodes of one client with the same `graph` are one graph. The page finds connected parts among the other
    nodes, and computes the layout. Sent when it has changed. A node stays for half a minute after its end, and as long
    as its graph.

`story`: the answer to a page's `story`: `client`, `id`, and `columns` with a row for each known event of the task:
    `kind` ("submitted", "dispatched", "started", "ended", "returned", "reattached"), `time`, `attempt`, `worker`
    (identity, "" for none), `worker_name`, `name`, `outcome` (a number of `hello`'s `outcomes`; null except for "ended"
    and for a "returned" whose attempt failed), `duration` (seconds, 0: not known), `error`, `traceback` (of a failed
    attempt, several lines, "" if none is known). No rows: the scheduler no longer knows the task.

`reset`: `topic` ("series" or "tasks"): drop all that came of this topic; everything to show comes again. Sent before
    the first message of a topic, when a larger window is requested, and when a page was paused or slow for so long that
    data was dropped.

`refused`: `problem`: what was wrong with the page's message. The connection stays open.

What the page sends
-------------------
`{"type": "watch", "topics": ["workers", "series"]}`: watch exactly these topics from now on. At first none is watched.
    A newly watched topic is sent at once.
`{"type": "settings", "interval": 2, "window": 300}`: seconds between snapshots (1 to 60), and seconds of `series` and
    `tasks` that are sent first (10 to the limit in `hello`). Each may be left out. The page itself drops what leaves
    its window.
`{"type": "story", "client": "77", "id": "5"}`: ask for the events of a task. A page can ask for one at a time.
`{"type": "pause"}`, `{"type": "resume"}`: while paused, the page receives only `presence`.

A browser that reads slowly receives fewer snapshots, always the newest one. It receives all of `series` and `tasks`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from ..monitor.reader import Presence

CONTRACT = 1
LIVE_PATH = "/live"
MAX_MESSAGE_BYTES = 4096  # bytes of one message from the page
MIN_INTERVAL_SECONDS = 1.0
MAX_INTERVAL_SECONDS = 60.0
MIN_WINDOW_SECONDS = 10.0

TOPICS = ("series", "tasks", "running", "workers", "agents", "clients", "functions", "objects", "graphs")

OUTCOMES = (
    "value", "exception", "function failed", "result failed", "exception, retryable", "worker died", "cancelled",
    "timed out", "kept", "input lost", "stored", "environment failed", "no room", "file",
)  # fmt: skip
"""Outcome names, by their number in the schema."""
RETURNED = 255
"""The outcome of an execution without an end: its worker was lost, or the task was taken back and dispatched again."""
GOOD_OUTCOMES = frozenset((0, 8, 10, 13))
NEUTRAL_OUTCOMES = frozenset((6, RETURNED))

PRESENCES = {
    Presence.UNKNOWN: "unknown",
    Presence.UP: "up",
    Presence.DOWN: "down",
    Presence.INCOMPATIBLE: "incompatible",
}


class RequestError(ValueError):
    """A message from a page is wrong; the text says what."""


@dataclass(frozen=True)
class WatchRequest:
    topics: frozenset[str]


@dataclass(frozen=True)
class SettingsRequest:
    """Settings of a page. None leaves a value as it is."""

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
    """Parse a message from a page.

    Raises:
        RequestError: the message is not in the contract.
    """
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise RequestError("the message is not JSON") from None
    if not isinstance(message, dict):
        raise RequestError("the message is not an object")
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
