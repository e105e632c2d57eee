"""The output of `scaler_client` for fixed snapshots, and its errors for wrong arguments."""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from tests.client.monitor.published_frames import POOLS, Texts, busy, history_frame, snapshot_frame, table

from scaler_client.commands.addresses import parse_connect_address
from scaler_client.commands.options import OptionError
from scaler_client.inspect import cli
from scaler_client.inspect.dump import check_file, without_secrets, write_dump
from scaler_client.inspect.status import status_json, status_text
from scaler_client.inspect.story import story_json, story_text
from scaler_client.inspect.subscription import NoAnswerError, Subscription
from scaler_client.inspect.task_lookup import MAX_LISTED, Story, UnknownTaskError, find_story, stories_of
from scaler_client.inspect.workers import SORT_KEYS, select_workers, workers_json, workers_text
from scaler_client.monitor.problems import problems
from scaler_client.monitor.reader import MonitorReader
from scaler_client.monitor.snapshot_view import SnapshotView
from scaler_client.monitor.task_names import parse_task_query
from scaler_client.monitor.text_layout import OutputFormat, clean, duration, output_format, rate, size, wrapped
from scaler_client.protocol.snapshot_decoder import ANY_CLIENT, story_topic
from scaler_client.protocol.snapshots import TaskLimit, WorkerState

MONITOR = "ipc:///run/scaler/monitor"
CLIENT, TASK = 11, 17


@pytest.fixture(autouse=True)
def time_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def build_view(*frames: bytes) -> SnapshotView:
    reader = MonitorReader(0)
    for frame in frames:
        reader.feed(frame, 0)
    assert reader.view is not None
    return reader.view


@pytest.fixture
def view() -> SnapshotView:
    return build_view(busy(1, 60), busy(2, 62))


STATUS = """\
scheduler  tcp://127.0.0.1:2345 on node-1 (process 0)
           version 1.0.0, PyPy 7.3.11, monitor ipc:///run/scaler/monitor
since      2023-11-14 22:13:20, for 1 min 2 s
tasks      3 waiting, 2 blocked, 40 with workers (5 known to run, 1 suspended)
ended      115: 100 value, 10 exception, 5 worker died; 4 retries
rates      0 tasks/s; loop busy 0%, cpu 0% of a core
workers    4 on 2 hosts: 2 busy, 1 idle, 1 silent
clients    2, 1 of them in tasks; 3 functions, 7 objects
shares     ada: 3 waiting, 5 running, 100% of the time, weight 3, 2 clients
           bob@node-1: 0 waiting, 0 running, 0% of the time, 1 client
limits     db: 2 waiting, 4 running (at most 10)
resources  node-7: gpu 1.5 of 4 booked, 1 reserved; gpu 0 of 1 booked
           3 waiting, 2.5 s since the oldest reservation
memory     scheduler 9.0 MiB; tasks and objects 3.0 MiB of 1.0 GiB (0%); workers
           3.0 MiB
values     1.0 MiB in memory and 2.0 MiB on disk of 1 host
transfers  hosts received 8.0 MiB and sent 16.0 MiB; 32.0 MiB on the way
functions  fit: 5 open, 15 done, mean 167 ms, 1 failed
           a "b"\\\\n{c}: 1 open, 0 done
problems   1 worker does not answer while a task holds them: node-7-\\x1b[31m
           2 workers have died since the start: signal 9
           1 worker has died since the start: lease"""


def test_status(view: SnapshotView) -> None:
    assert "\n".join(status_text(OutputFormat(), view, MONITOR)) == STATUS


@pytest.mark.parametrize(
    ("per_second", "text"),
    [(50.0, "50 begin in a second"), (0.5, "30 begin in a minute"), (1 / 3600, "1 begin in an hour")],
)
def test_rates_have_a_readable_unit(view: SnapshotView, per_second: float, text: str) -> None:
    view.snapshot.limits[:] = [TaskLimit("api", 0, per_second, 1, 2)]
    assert f"limits     api: 2 waiting, 1 running, {text}" in status_text(OutputFormat(), view, MONITOR)


def test_status_has_the_pools_of_an_autoscaler() -> None:
    lines = status_text(OutputFormat(100), build_view(busy(pools=POOLS)), MONITOR)
    assert "pools      large: 8 hosts there, 12 wanted, 3 booting, 1 draining, 5 failed, resting" in lines
    assert "           here: 1 hosts there, 1 wanted, 0 booting, 0 draining" in lines
    text = " ".join(" ".join(lines).split())
    resting = "pool large starts no hosts for now: 5 hosts have failed; for 1 min 30 s: hosts could not be started: no"
    assert resting in text
    view = build_view(busy(pools=[{**POOLS[0], "isResting": False}, POOLS[1]]))
    lines = status_text(OutputFormat(100), view, MONITOR)
    assert "pools      large: 8 hosts there, 12 wanted, 3 booting, 1 draining, 5 failed, failing" in lines
    assert "pool large fails for 1 min 30 s: hosts could not be started: no route" in " ".join(" ".join(lines).split())


def test_waiting_tasks_wait_for_hosts_that_boot() -> None:
    lines = status_text(OutputFormat(100), build_view(snapshot_frame(1, 0.5, waiting=2, pools=POOLS[:1])), MONITOR)
    assert "problems   2 tasks wait and there is no worker: 3 hosts boot" in lines


def test_status_without_rates() -> None:
    lines = status_text(OutputFormat(), build_view(snapshot_frame(1, 0.5)), MONITOR)
    assert "rates      not known yet" in lines and lines[-1] == "problems   none"
    assert any(line.startswith("workers    0 on 0 hosts") for line in lines)


def test_colours_only_on_terminals(view: SnapshotView) -> None:
    plain, coloured = status_text(OutputFormat(), view, MONITOR), status_text(OutputFormat(80, True), view, MONITOR)
    assert len(plain) == len(coloured) and not any("\x1b" in line for line in plain)
    assert sum("\x1b[31m" in line for line in coloured) == 3, "only the three problems are coloured"


WORKERS = """\
WORKER           STATE   CPU   MEMORY  HELD  FREE  DONE/s     LAG  RUNS
node-8-a         busy     0%   1000 B    10    90       0  350 us  fit#17 2.5 s
node-7-\\x1b[31m  silent   0%   1000 B    10    90       0  350 us
node-7-a         idle     0%   1000 B     0   100       0  350 us
node-7-b         busy     0%  3.0 MiB    10    90       0  350 us
4 workers on 2 hosts"""


def test_workers(view: SnapshotView) -> None:
    assert "\n".join(workers_text(OutputFormat(), view, select_workers(view, "running", ""))) == WORKERS


def test_environments_of_workers(view: SnapshotView) -> None:
    names = ["5c1f0a9d2b3e" * 5, "", "5c1f0a9d2b3e" * 5, "0" * 60]
    rows = [dataclasses.replace(row, environment=name) for row, name in zip(view.workers, names)]
    seen = dataclasses.replace(view, workers=rows)
    lines = status_text(OutputFormat(100), seen, MONITOR)
    expected = "environments  5c1f0a9d2b3e: 2 workers, none: 1 worker, 000000000000: 1 worker"
    assert expected in lines
    assert status_json(seen, MONITOR)["environments"] == {names[0]: 2, "": 1, names[3]: 1}
    lines = workers_text(OutputFormat(132), seen, select_workers(seen, "name", "5C1F"))
    assert "ENVIRONMENT" in lines[0] and lines[-1] == "2 workers of 4 on 2 hosts"
    assert all("  5c1f0a9d2b3e" in line for line in lines[1:3])
    assert "ENVIRONMENT" not in workers_text(OutputFormat(132), view, view.workers)[0], "no worker has one"
    assert [row["environment"] for row in workers_json(seen, rows)["workers"]] == names


@pytest.mark.parametrize("columns", [80, 100, 132])
def test_worker_and_task_names_are_not_cut(view: SnapshotView, columns: int) -> None:
    task = dataclasses.replace(view.workers[2].task, id=123_456_789, seconds=7500, name="of_a_library.with_modules.fit")
    busy = {"resident_bytes": 123 << 20, "cpu_percent": 100, "free": 1000, "lag_seconds": 0.0123, "task": task}
    called = [f"node-07.example-4711-{at}" for at in range(4)]
    rows = [dataclasses.replace(row, name=name, **busy) for row, name in zip(view.workers, called)]
    lines = workers_text(OutputFormat(columns), view, rows)
    assert max(map(len, lines)) <= columns
    assert [line.split()[0] for line in lines[1:5]] == called
    assert all(line.endswith(".fit#123456789 2 h 5 min") for line in lines[1:5])
    assert ("LAG" in lines[0]) == (columns == 132) and "STATE" in lines[0] and "HELD" in lines[0]
    long = dataclasses.replace(rows[0], name="n" * 100 + "-4711-0", task=dataclasses.replace(task, name="f" * 1000))
    lines = workers_text(OutputFormat(columns), view, [long])
    assert "n-4711-0 " in lines[1] and lines[1].endswith("#123456789 2 h 5 min") and len(lines[1]) <= columns


@pytest.mark.parametrize(
    ("sort", "query", "numbers"),
    [
        ("name", "", [4, 1, 2, 3]),
        ("memory", "", [2, 4, 1, 3]),
        ("host", "", [4, 1, 2, 3]),
        ("done", "NODE-7", [4, 1, 2]),
        ("state", "busy", [2, 3]),
        ("name", "fit", [3]),
        ("name", "nothing", []),
    ],
)
def test_workers_are_sorted_and_filtered(view: SnapshotView, sort: str, query: str, numbers: list[int]) -> None:
    rows = select_workers(view, sort, query)
    assert [row.incarnation for row in rows] == numbers
    last = workers_text(OutputFormat(), view, rows)[-1]
    assert last.startswith(f"{len(rows)} worker") and (" of 4 " in last) == (len(rows) != 4)


@pytest.mark.parametrize("sort", SORT_KEYS)
def test_each_sort_key_sorts(view: SnapshotView, sort: str) -> None:
    assert len(select_workers(view, sort, "")) == 4


def story_from(view: SnapshotView, *rows: dict[str, Any]) -> Story:
    """The story in the scheduler's answer, parsed as the command parses it."""
    events = [{"clients": CLIENT, "ids": TASK, **row} for row in rows]
    reader = MonitorReader(0)
    reader.feed(history_frame(0, events, topic=story_topic(CLIENT, TASK)), 0)
    (story,) = stories_of(reader.stories[CLIENT, TASK])
    return story


SUBMITTED = {"kinds": 0, "times": 1_000_000, "name": "fit"}
GIVEN = {"kinds": 1, "times": 1_000_350, "attempts": 1, "workers": 99}
STARTED = {"kinds": 2, "times": 2_000_000, "attempts": 1, "workers": 99}
RETURNED = {"kinds": 4, "times": 30_500_000, "attempts": 1}
GIVEN_AGAIN = {"kinds": 1, "times": 59_500_000, "attempts": 2, "workers": 2}
FAILED = {
    "kinds": 3, "times": 61_500_000, "attempts": 2, "workers": 2, "outcomes": 1, "durations": 1_500_000_000,
    "error": "ValueError: no such curve",
}  # fmt: skip

RETRIED = """\
fit#17  task 11/17
its client: 11, fit.py[47]@node-1
since 2023-11-14 22:13:21, by the scheduler's clock:
  +0.000000 s  22:13:21.000  submitted
  +0.000350 s  22:13:21.000  dispatched to worker 99 (not connected), attempt 1
  +1.000000 s  22:13:22.000  started there, attempt 1
 +29.500000 s  22:13:50.500  attempt 1 ended without a result: its worker was
                             lost
 +58.500000 s  22:14:19.500  dispatched to node-7-b on node-7, attempt 2
 +60.500000 s  22:14:21.500  raised: ValueError: no such curve; attempt 2 ran
                             1.5 s on node-7-b on node-7
"""


def test_story_of_a_retried_task(view: SnapshotView) -> None:
    story = story_from(view, SUBMITTED, GIVEN, STARTED, RETURNED, GIVEN_AGAIN, FAILED)
    lines = story_text(OutputFormat(), story, view)
    assert "\n".join(lines[:-1]) + "\n" == RETRIED
    answer = story_json(story, view)
    assert (answer["task"], answer["client"], answer["id"], answer["name"]) == ("11/17", "11", "17", "fit")
    assert [event["event"] for event in answer["events"]] == [
        "submitted", "dispatched", "started", "returned", "dispatched", "ended",
    ]  # fmt: skip
    last = answer["events"][-1]
    assert (last["outcome"], last["error"], last["run_seconds"]) == ("exception", "ValueError: no such curve", 1.5)
    assert (last["worker"], last["worker_name"], last["unix_seconds"]) == ("2", "node-7-b", 1_700_000_061.5)


class AnsweringSubscription:
    """A Subscription whose scheduler answers the second request, because it has dropped the first."""

    def __init__(self, *rows: dict[str, Any], seconds: float = 60) -> None:
        self.reader, self.seconds, self.address = MonitorReader(0), seconds, MONITOR
        self.asked: list[bytes] = []
        self._rows = rows

    def subscribe(self, topic: bytes) -> None:
        self.asked.append(topic)

    def unsubscribe(self, topic: bytes) -> None:
        assert topic == self.asked[-1]

    def wait_until(self, condition: Callable[[], bool], _seconds: float) -> bool:
        if len(self.asked) == 2:
            self.reader.feed(history_frame(0, list(self._rows), topic=self.asked[-1]), 0)
        return condition()


def task_rows(*clients: int) -> list[dict[str, Any]]:
    return [{"clients": client, "ids": TASK, "name": "fit"} for client in clients]


@pytest.mark.parametrize("query", ["17", "fit#17"])
def test_request_is_repeated_until_the_scheduler_answers(view: SnapshotView, query: str) -> None:
    answering = AnsweringSubscription(*task_rows(99, 99))
    story = find_story(answering, view, parse_task_query(query))  # type: ignore[arg-type]
    assert (story.client, story.id, len(story.events)) == (99, TASK, 2), "of a disconnected client"
    assert answering.asked == [story_topic(ANY_CLIENT, TASK)] * 2


def test_tasks_with_the_same_number_are_listed(view: SnapshotView) -> None:
    clients = range(100, 107)
    with pytest.raises(UnknownTaskError) as refused:
        find_story(AnsweringSubscription(*task_rows(*clients)), view, parse_task_query("17"))  # type: ignore[arg-type]
    assert str(refused.value) == "7 tasks have this name, give one of them exactly: " + ", ".join(
        f"{client}/17 (fit)" for client in clients
    )
    rows = task_rows(*range(100, 103 + MAX_LISTED))
    with pytest.raises(UnknownTaskError, match=r" and 3 more$"):
        find_story(AnsweringSubscription(*rows), view, parse_task_query("17"))  # type: ignore[arg-type]


def test_open_tasks_are_preferred(view: SnapshotView) -> None:
    def waits(client: int) -> dict[str, Any]:
        return {"clients": client, "ids": TASK, "name": "fit", "wait_reasons": "worker: all are busy"}

    rows = [*task_rows(100, 101), waits(102), *task_rows(103)]
    for query in ("17", "fit#17"):
        story = find_story(AnsweringSubscription(*rows), view, parse_task_query(query))  # type: ignore[arg-type]
        assert (story.client, story.wait_reasons) == (102, [("worker", "all are busy")])
    with pytest.raises(UnknownTaskError, match=r"^2 tasks have this name, .*: 102/17 \(fit\), 104/17 \(fit\)$"):
        find_story(AnsweringSubscription(*rows, waits(104)), view, parse_task_query("17"))  # type: ignore[arg-type]


def test_the_answer_about_an_unknown_task_is_short(view: SnapshotView) -> None:
    rows = task_rows(*range(100, 140))
    with pytest.raises(UnknownTaskError) as refused:
        find_story(AnsweringSubscription(*rows), view, parse_task_query("load#17"))  # type: ignore[arg-type]
    text = str(refused.value)
    assert text.endswith("with that number there is: 100/17 (fit), 101/17 (fit), 102/17 (fit) and 37 more")
    assert len(text) < 250


def test_silence_at_a_socket_file_names_the_option_for_the_schedulers_own_address(tmp_path: Path) -> None:
    address = f"ipc://{tmp_path}/s"
    with zmq.Context() as context, context.socket(zmq.ROUTER) as silent:
        silent.bind(address)
        subscription = Subscription(parse_connect_address(address), 0.1)
        try:
            with pytest.raises(NoAnswerError, match="scheduler's own address, give it as --scheduler-address"):
                subscription.view()
        finally:
            subscription.close()


def test_missing_answer_is_not_an_unknown_task(view: SnapshotView) -> None:
    with pytest.raises(NoAnswerError, match="did not answer within 0.5 s"):
        find_story(AnsweringSubscription(*task_rows(99), seconds=0.5), view, parse_task_query("17"))  # type: ignore[arg-type]
    with pytest.raises(UnknownTaskError, match="nothing is known of task #17: it never arrived, or .*") as raised:
        find_story(AnsweringSubscription(), view, parse_task_query("17"))  # type: ignore[arg-type]
    text = "its client still keeps it because the scheduler takes no more tasks (--max-waiting, --memory-limit)"
    assert text in str(raised.value) and "a scheduler that was restarted has forgotten it" in str(raised.value)


RAISED = {"kinds": 4, "times": 2_500_000, "attempts": 1, "workers": 99, "outcomes": 4, "durations": 300_000}
RETRIED_ON_ERROR = """\
nightly#17  task 11/17
its function: fit
its client: 11, fit.py[47]@node-1
since 2023-11-14 22:13:21, by the scheduler's clock:
  +0.000000 s  22:13:21.000  submitted
  +0.000350 s  22:13:21.000  dispatched to worker 99 (not connected), attempt 1
  +1.500000 s  22:13:22.500  raised an exception, and is retried: OSError: not
                             yet; attempt 1 ran 300 us on worker 99 (not
                             connected)
 +58.500000 s  22:14:19.500  dispatched to node-7-b on node-7, attempt 2
 +59.000000 s  22:14:20.000  attempt 2 ended without a result, node-7-b on
                             node-7 was lost: signal 9
"""


def test_story_has_the_error_of_each_attempt(view: SnapshotView) -> None:
    lost = {"kinds": 4, "times": 60_000_000, "attempts": 2, "workers": 2, "outcomes": 5, "error": "signal 9"}
    rows = [SUBMITTED, GIVEN, {**RAISED, "error": "OSError: not yet"}, GIVEN_AGAIN, lost]
    story = story_from(view, *({**row, "name": "nightly", "function": "fit"} for row in rows))
    assert "\n".join(story_text(OutputFormat(), story, view)[:-1]) + "\n" == RETRIED_ON_ERROR
    answer = story_json(story, view)
    assert (answer["name"], answer["function"]) == ("nightly", "fit")
    assert [(event["outcome"], event["run_seconds"], event["error"]) for event in answer["events"][2::2]] == [
        ("retryable", 0.0003, "OSError: not yet"), ("worker_died", None, "signal 9"),
    ]  # fmt: skip


TRACEBACK = """\
Traceback (most recent call last):
  File "/srv/pricing/curves.py", line 41, in fit
    return curve.at(tenor)
ValueError: \x1b[31mno such curve, and a text that is longer than a line of eighty columns
"""


def test_story_has_the_remote_traceback(view: SnapshotView) -> None:
    story = story_from(view, SUBMITTED, GIVEN, GIVEN_AGAIN, {**FAILED, "traceback": TRACEBACK})
    lines = story_text(OutputFormat(), story, view)
    assert lines[-6:-1] == [
        "    Traceback (most recent call last):",
        '      File "/srv/pricing/curves.py", line 41, in fit',
        "        return curve.at(tenor)",
        "    ValueError: \\x1b[31mno such curve, and a text that is longer than a line of ",
        "    eighty columns",
    ]
    events = story_json(story, view)["events"]
    assert [event["traceback"] for event in events] == [None, None, None, TRACEBACK]


def test_story_of_a_task_reattached_after_a_restart(view: SnapshotView) -> None:
    adopted = {"kinds": 5, "times": 1_000_350, "attempts": 3, "workers": 2}
    text = "\n".join(story_text(OutputFormat(140), story_from(view, SUBMITTED, adopted), view))
    assert "submitted again, after the scheduler's restart" in text
    assert "continues after the scheduler's restart, on node-7-b on node-7, attempt 3" in text
    given = {**GIVEN, "attempts": 3, "workers": 2}
    text = "\n".join(
        story_text(OutputFormat(140), story_from(view, SUBMITTED, given, {**adopted, "times": 2_000_000}), view)
    )
    assert "  submitted\n" in text and "continues, attempt 3: node-7-b on node-7 has connected again" in text


@pytest.mark.parametrize(
    ("rows", "now"),
    [
        (
            [SUBMITTED],
            "now: it waits for a worker or for its inputs, for 1 min 1 s; 3 tasks wait for\nworkers in all",
        ),
        ([SUBMITTED, GIVEN_AGAIN], "now: it is with node-7-b on node-7, for 2.5 s"),
        ([SUBMITTED, GIVEN, FAILED], "now: it ended 500 ms ago"),
        ([SUBMITTED, GIVEN, RETURNED], "now: it waits for a worker or for its inputs, for 31.5 s"),
    ],
)
def test_story_ends_with_the_current_state(rows: list[dict[str, Any]], now: str) -> None:
    view = build_view(snapshot_frame(1, 60), _without_task(2, 62))
    text = "\n".join(story_text(OutputFormat(), story_from(view, *rows), view))
    assert text[text.index("now:") :].startswith(now)


def test_story_of_a_gang_says_how_many_workers_it_needs() -> None:
    view = build_view(snapshot_frame(1, 60), _without_task(2, 62))
    story = dataclasses.replace(
        story_from(view, SUBMITTED), wait_reasons=[("since", "x"), ("gang", "it needs 2"), ("gang", "never")]
    )
    assert story_json(story, view)["now"] == "it waits for 1 min 1 s: it needs 2; never"


def test_task_of_a_disconnected_client_has_ended() -> None:
    view = build_view(snapshot_frame(1, 60), _without_task(2, 62, client=12))
    lines = story_text(OutputFormat(), story_from(view, SUBMITTED), view)
    assert lines[1] == "its client: 11, which has disconnected"
    assert lines[-1] == "now: it ended: its client has disconnected"


def _without_task(sequence: int, seconds: float, client: int = CLIENT) -> bytes:
    texts = Texts()
    worker = {"incarnations": 2, "names": texts("node-7-b"), "hosts": texts("node-7")}
    clients = {"incarnations": client, "names": texts("fit.py[47]@node-1")}
    tables = {**table("workerColumns", worker), **table("clientColumns", clients)}
    milliseconds = round((1_700_000_000 + seconds) * 1000)
    return snapshot_frame(
        sequence, seconds, unixMilliseconds=milliseconds, waiting=3, workers=1, clients=1, texts=texts.field(), **tables
    )


def test_story_of_a_running_task(view: SnapshotView) -> None:
    lines = story_text(OutputFormat(), story_from(view, SUBMITTED, GIVEN), view)
    assert lines[-1] == "now: it runs on node-8-a, for 2.5 s, attempt 2"


def test_story_of_a_cancelled_task_and_unknown_events(view: SnapshotView) -> None:
    cancelled = {"kinds": 3, "times": 2_000_000, "outcomes": 6, "error": "cancelled"}
    unknown = {"kinds": 77, "times": 3_000_000}
    text = "\n".join(story_text(OutputFormat(), story_from(view, SUBMITTED, cancelled, unknown), view))
    assert "  cancelled; the scheduler ended it" in text and "this version does not know (77)" in text
    assert story_json(story_from(view, unknown), view)["events"][0]["event"] == "77"


def test_story_of_a_task_that_was_taken_back(view: SnapshotView) -> None:
    taken = {**RETURNED, "workers": 99}
    text = "\n".join(story_text(OutputFormat(100), story_from(view, SUBMITTED, GIVEN, taken), view))
    assert "attempt 1 was taken back from worker 99 (not connected)" in text
    given = {**GIVEN, "workers": 2}
    text = "\n".join(story_text(OutputFormat(), story_from(view, SUBMITTED, given, RETURNED), view))
    assert "it, or it is retried" in text and "lost" not in text


def test_lines_fit_80_columns(view: SnapshotView) -> None:
    story = story_from(view, SUBMITTED, {**FAILED, "error": "E" * 1000})
    pages = (
        status_text(OutputFormat(), view, MONITOR),
        workers_text(OutputFormat(), view, select_workers(view, "name", "")),
        story_text(OutputFormat(), story, view),
    )
    assert max(len(line) for output in pages for line in output) <= 80


def test_json_keys_are_in_the_manual(view: SnapshotView) -> None:
    manual = Path(__file__).resolve().parents[3] / "packaging" / "documents" / "man" / "scaler_client.1.in"
    if not manual.exists():
        pytest.skip("not in a checkout")
    documented = manual.read_text()
    story = story_json(story_from(view, SUBMITTED), view)
    workers = workers_json(view, select_workers(view, "running", ""))
    found: set[str] = set()
    for answer in (story, story["events"][0], workers, workers["workers"][0], workers["workers"][0]["task"]):
        found |= answer.keys()
    status = status_json(view, MONITOR)
    found |= status.keys()
    for part in ("scheduler", "tasks", "workers", "memory", "messages"):
        found |= status[part].keys()
    missing = [key for key in sorted(found) if not any(key in line.split() for line in documented.splitlines())]
    assert not missing
    assert json.loads(json.dumps(status))["tasks"]["outcomes"] == {"value": 100, "exception": 10, "worker_died": 5}


def test_a_number_stays_with_its_unit() -> None:
    assert wrapped("for 7.2 s; workers 122 MiB", 24) == ["for 7.2 s; workers", "122 MiB"]
    assert wrapped("3 days", 4) == ["3", "days"]


def test_problems() -> None:
    def of(**fields: Any) -> list[str]:
        counters = {name: fields[name] for name in ("deaths", "dropped") if name in fields}
        return problems(build_view(snapshot_frame(1, 60, **counters), snapshot_frame(2, 62, **fields)))

    assert of() == []
    assert of(waiting=2) == ["2 tasks wait and there is no worker: start scaler_cluster"]
    texts = Texts().field()
    assert of(waiting=3, unschedulable=2, workers=1, texts=texts, **table("workerColumns", {"incarnations": 1})) == [
        "2 tasks wait, and no connected worker can run them: `scaler_client why` says what the workers lack"
    ]
    retiring = {"incarnations": 1, "states": int(WorkerState.RETIRING)}
    assert of(waiting=1, workers=1, texts=texts, **table("workerColumns", retiring)) == [
        "1 task waits and all workers retire"
    ]
    full = {"waitingBytes": 95, "objectBytes": 4, "memoryLimitBytes": 100}
    assert of(**full) == ["tasks and objects fill 99 B of 100 B: clients keep further tasks back"]
    named = Texts()
    values = {"incarnations": 1, "hosts": named("node-8"), "names": named("small"), "memoryBytes": 60, "diskBytes": 40}
    values["lastHeartbeatMilliseconds"] = 62_000
    for room, expected in ((12, []), (11, ["node-8 (agent small) has 11 B"])):
        text = "little room for further values (--object-memory, --spill-limit)"
        agents = table("agentColumns", {**values, "roomBytes": room})
        assert of(texts=named.field(), **agents) == [f"{text}: {each}" for each in expected]
    assert of(deaths=[{"name": "cancelled", "count": 3}]) == [], "cancelled on request"
    assert of(dropped=[{"name": "malformed", "count": 3}]) == [
        "3 messages dropped since the start: malformed (the sender does not speak this protocol)"
    ]
    assert of(dropped=[{"name": "unreachable", "count": 1}]) == [], "its receiver has left"
    assert of(dropped=[{"name": "connections", "count": 3}]) == [
        "3 connections cut since the start: too many, or silent"
    ]
    assert of(dropped=[{"name": "unauthorized", "count": 2}]) == [
        "2 connections and messages without an authorized key since the start: the scheduler's log names the last one"
    ]
    assert of(process={"loopMicroseconds": 1_900_000}) == ["the scheduler's loop is busy 95% of the time"]


def test_problems_say_when_they_last_happened() -> None:
    at = 1_700_000_000_000
    deaths = [{"name": "signal 9", "count": 2, "lastMilliseconds": at}]
    dropped = [{"name": "connections", "count": 1, "lastMilliseconds": at}]
    lines = problems(build_view(snapshot_frame(1, 60, deaths=deaths, dropped=dropped)))
    assert lines == [
        "2 workers have died since the start: signal 9, last at 2023-11-14 22:13:20",
        "1 connection cut since the start: too many, or silent, last at 2023-11-14 22:13:20",
    ]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (size(0), "0 B"), (size(1023), "1023 B"), (size(1024), "1.0 KiB"), (size(130 << 20), "130 MiB"),
        (size(1 << 70), "1048576 PiB"), (size(1023.6 * 1024), "1.0 MiB"), (duration(0), "0 s"),
        (duration(350e-6), "350 us"), (duration(0.0151), "15.1 ms"), (duration(59.94), "59.9 s"),
        (duration(3600), "1 h"), (duration(7500), "2 h 5 min"), (duration(200_000), "2 d 7 h"),
        (rate(0.25), "0.2"), (rate(12_345.6), "12,346"),
        (clean("a\nb\x1b"), "a\\nb\\x1b"),
    ],
)  # fmt: skip
def test_number_formats(shown: str, expected: str) -> None:
    assert shown == expected


def test_pipe_has_80_columns_and_no_colours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    with open(tmp_path / "file", "w") as file:
        assert output_format(file) == OutputFormat(80, False)
        monkeypatch.setenv("COLUMNS", "132")
        assert output_format(file).columns == 132
    master, terminal = os.openpty()
    with open(master, "rb"), open(terminal, "w") as screen:
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("NO_COLOR", raising=False)
        assert output_format(screen).has_colours
        monkeypatch.setenv("NO_COLOR", "1")
        assert not output_format(screen).has_colours


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("", "no command: one of status, workers, story, why, dump"),
        ("stat", "there is no command 'stat' (did you mean status?)"),
        ("nonsense", "there is no command 'nonsense': one of status, workers, story, why, dump"),
        ("status --timeot 1", "status: unknown option --timeot (did you mean --timeout?)"),
        ("status --timeout 0", "--timeout: '0' is not a number of seconds above 0"),
        ("status tcp://x", "monitor-address: bad address 'tcp://x'"),
        ("status ipc:///a ipc:///b", "unexpected argument 'ipc:///b'"),
        ("workers --sort size ipc:///a", "--sort: 'size' is not one of name, host"),
        ("story", "TASK_ID"),
        ("story x ipc:///a", "'x' does not name a task"),
        ("dump", "FILE"),
        ("dump /nowhere/file ipc:///a", "the folder /nowhere does not exist"),
        ("dump / ipc:///a", "/ is a folder"),
    ],
)
def test_wrong_arguments(arguments: str, complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments.split()) == 2
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1) and error.startswith("scaler_client: ") and complaint in error


def test_versions(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert "protocol version 1" in capsys.readouterr().out


def test_no_scheduler_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status", f"ipc://{tmp_path}/monitor", "--timeout", "0.2"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "within 0.2 s" in error and "the scheduler does not run" in error


def test_monitor_address_that_is_not_a_socket(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "monitor").touch()
    assert cli.main(["workers", f"ipc://{tmp_path}/monitor"]) == 1
    assert capsys.readouterr().err == f"scaler_client: ipc://{tmp_path}/monitor: {tmp_path}/monitor is not a socket\n"


def test_dump_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "dump.json")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    check_file(path, False)
    write_dump(path, False, {"format": 1})
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600 and json.loads(Path(path).read_text()) == {"format": 1}
    with pytest.raises(OptionError, match="exists already: --force overwrites it"):
        check_file(path, False)
    with pytest.raises(OptionError, match="cannot write .*: File exists"):
        write_dump(path, False, {})  # created meanwhile
    write_dump(path, True, {})
    assert json.loads(Path(path).read_text()) == {}
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))  # instead of a full disk
    try:
        with pytest.raises(OptionError, match="cannot write .*/other.json: File too large"):
            write_dump(str(tmp_path / "other.json"), False, {"format": 1})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(tmp_path) == ["dump.json"], "no partial dump remains"
    write_dump("-", False, {"format": 1})
    assert json.loads(capsys.readouterr().out) == {"format": 1}
    write_dump("-", False, {"snapshot": {"names": ["a", "b"], "none": {}}, "history": [{"ids": [1, 2]}], "graphs": []})
    assert capsys.readouterr().out == LAID_OUT


LAID_OUT = """\
{
 "snapshot": {
  "names": ["a", "b"],
  "none": {}
 },
 "history": [
  {
   "ids": [1, 2]
  }
 ],
 "graphs": []
}
"""


def test_dump_has_no_secrets() -> None:
    table = {
        "address": "tcp://*:2345",
        "curve": {"secret_key": "abc", "port": 1},
        "token": ["def"],
        "keys": {"a": "ghi"},
    }
    assert without_secrets(table) == {
        "address": "tcp://*:2345", "curve": {"secret_key": "(hidden)", "port": 1}, "token": "(hidden)",
        "keys": "(hidden)",
    }  # fmt: skip
