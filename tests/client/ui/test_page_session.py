"""The state of scaler_ui and its messages to each page (contract.py), without sockets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.client.ui.stand_ins import BEGAN, CLIENT, FakeScheduler, ended, types
from tests.schema_messages import message_of

from scaler_client.monitor.reader import SILENCE_SECONDS
from scaler_client.protocol.snapshot_decoder import GRAPHS_TOPIC, story_topic
from scaler_client.ui import tables
from scaler_client.ui.contract import (
    TOPICS,
    PauseRequest,
    RequestError,
    SettingsRequest,
    StoryRequest,
    WatchRequest,
    parse_request,
)
from scaler_client.ui.executions import ROWS_PER_CHUNK
from scaler_client.ui.page_session import PageSession

LARGE = 2**64 - 1


@pytest.fixture
def scheduler() -> FakeScheduler:
    return FakeScheduler()


def watching_page(scheduler: FakeScheduler, *topics: str) -> PageSession:
    """A page that has been sent everything so far."""
    page = PageSession(scheduler.live)
    page.handle(WatchRequest(frozenset(topics)))
    scheduler.sent(page)
    return page


def only(messages: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    [found] = [message for message in messages if message["type"] == kind]
    return found


def task_ids(messages: list[dict[str, Any]]) -> list[str]:
    return [each for message in messages if message["type"] == "tasks" for each in message["columns"]["id"]]


def test_hello_comes_before_a_scheduler_is_heard(scheduler: FakeScheduler) -> None:
    scheduler.live.set_connection_problem("there is no /tmp/s_monitor yet")
    scheduler.live.refresh(scheduler.now)
    page = PageSession(scheduler.live)
    page.handle(WatchRequest(frozenset(TOPICS)))
    hello, presence = scheduler.sent(page)
    assert (hello["type"], hello["limits"]["tasks"], hello["topics"]) == ("hello", 100_000, list(TOPICS))
    assert [1, "exception", "failed"] in hello["outcomes"] and [255, "returned", "neutral"] in hello["outcomes"]
    assert (presence["type"], presence["presence"]) == ("presence", "unknown")
    assert presence["problem"] == "there is no /tmp/s_monitor yet"
    scheduler.second(1, 2)
    first = scheduler.sent(page)
    assert types(first)[:2] == ["presence", "snapshot"] and only(first, "presence")["problem"] == ""
    assert {message["type"] for message in first[2:]} >= {"series", "tasks", "workers", "functions", "objects"}
    assert scheduler.sent(page) == []


def test_only_watched_topics_are_sent(scheduler: FakeScheduler) -> None:
    page = watching_page(scheduler)
    scheduler.second(1)
    assert types(scheduler.sent(page)) == ["presence", "snapshot"]
    page.handle(WatchRequest(frozenset(("workers",))))
    assert types(scheduler.sent(page)) == ["workers"], "at once"
    scheduler.second(2)
    assert types(scheduler.sent(page)) == ["snapshot", "workers"]


def test_executions_are_sent_once(scheduler: FakeScheduler) -> None:
    scheduler.second(1, 2)
    scheduler.second(3)
    page = PageSession(scheduler.live)
    page.handle(WatchRequest(frozenset(("tasks",))))
    first = scheduler.sent(page)
    assert types(first) == ["hello", "presence", "snapshot", "reset", "tasks", "tasks"] and task_ids(first) == [
        "1",
        "2",
        "3",
    ]
    scheduler.second()
    assert types(scheduler.sent(page)) == ["snapshot"], "nothing has ended"
    scheduler.second(4)
    assert task_ids(scheduler.sent(page)) == ["4"]


def test_messages_are_encoded_once_for_all_pages(scheduler: FakeScheduler) -> None:
    scheduler.second(1)
    pages = [PageSession(scheduler.live) for _ in range(3)]
    for page in pages:
        page.handle(WatchRequest(frozenset(TOPICS)))
    sent = [list(page.pending_messages()) for page in pages]
    assert all(mine is theirs for mine, theirs in zip(sent[0][2:], sent[1][2:]) if "reset" not in mine)
    assert sent[0] == sent[1] == sent[2]


def test_interval_of_a_page(scheduler: FakeScheduler) -> None:
    page = watching_page(scheduler, "tasks")
    page.handle(SettingsRequest(3.0, None))
    sent = []
    for second in range(1, 8):
        scheduler.second(second)
        sent.append(scheduler.sent(page))
    assert [("snapshot" in types(messages)) for messages in sent] == [True, False, False, True, False, False, True]
    assert [task_ids(messages) for messages in sent] == [["1"], [], [], ["2", "3", "4"], [], [], ["5", "6", "7"]]


def test_paused_page_receives_presence(scheduler: FakeScheduler) -> None:
    scheduler.second(1)
    page = watching_page(scheduler, "series", "tasks")
    page.handle(PauseRequest(True))
    scheduler.second(2)
    assert scheduler.sent(page) == []
    scheduler.silence(SILENCE_SECONDS + 1)
    [presence] = scheduler.sent(page)
    assert presence["presence"] == "down"
    page.handle(PauseRequest(False))
    resumed = scheduler.sent(page)
    assert task_ids(resumed) == ["2"] and only(resumed, "series")["first"] == 1


def test_slow_page_gets_the_newest_snapshot_and_all_executions(scheduler: FakeScheduler) -> None:
    scheduler.second(1)
    page = watching_page(scheduler, "tasks")
    scheduler.second(2)
    slowly = page.pending_messages()
    assert json.loads(next(slowly))["now"] == BEGAN + 2
    for second in range(3, 20):
        scheduler.second(second)
    assert task_ids([json.loads(text) for text in slowly]) == [str(second) for second in range(2, 20)]
    assert only(scheduler.sent(page), "snapshot")["now"] == BEGAN + 19


def test_page_that_missed_chunks_is_reset() -> None:
    scheduler = FakeScheduler(tasks=10)
    scheduler.second(1)
    page = watching_page(scheduler, "tasks")
    for second in range(2, 40):
        scheduler.second(second)
    sent = scheduler.sent(page)
    assert types(sent) == ["snapshot", "reset"] + ["tasks"] * 10
    assert task_ids(sent) == [str(second) for second in range(30, 40)]


def test_chunks_dropped_while_a_page_receives_them(scheduler: FakeScheduler) -> None:
    scheduler.live.executions._most_tasks = ROWS_PER_CHUNK
    scheduler.second(*range(ROWS_PER_CHUNK))
    page = PageSession(scheduler.live)
    page.handle(WatchRequest(frozenset(("tasks",))))
    slowly = page.pending_messages()
    while json.loads(next(slowly))["type"] != "tasks":
        pass
    for begin in range(1, 4):
        scheduler.second(*range(begin * ROWS_PER_CHUNK, (begin + 1) * ROWS_PER_CHUNK))
    rest = [json.loads(text) for text in slowly]
    assert types(rest) == ["reset", "tasks"] and task_ids(rest)[0] == str(3 * ROWS_PER_CHUNK)


def test_window_of_a_page(scheduler: FakeScheduler) -> None:
    for second in range(1, 101):
        scheduler.second(second)
    page = PageSession(scheduler.live)
    page.handle(SettingsRequest(None, 10.0))
    page.handle(WatchRequest(frozenset(("series", "tasks"))))
    sent = scheduler.sent(page)
    assert task_ids(sent) == [str(second) for second in range(90, 101)]
    assert len(only(sent, "series")["columns"]["time"]) == 11
    page.handle(SettingsRequest(None, 20.0))
    larger = scheduler.sent(page)
    assert types(larger)[0] == "reset" and len(task_ids(larger)) == 21
    page.handle(SettingsRequest(None, 15.0))
    assert scheduler.sent(page) == [], "the page itself applies a smaller window"


def test_data_older_than_the_window_is_dropped() -> None:
    scheduler = FakeScheduler(window=10.0)
    for second in range(1, 101):
        scheduler.second(second)
    assert (scheduler.live.executions.rows, len(scheduler.live.series.points)) == (11, 11)
    assert len(watching_page(scheduler, "series", "tasks")._watched) == 2


def test_clock_set_back_does_not_grow_the_window() -> None:
    scheduler = FakeScheduler(window=10.0)
    for second in range(1, 101):
        scheduler.second(second, unixMilliseconds=round((BEGAN - 10 * second) * 1000))
    assert len(scheduler.live.series.points) == 20


def test_series_has_a_gap_while_the_scheduler_is_down(scheduler: FakeScheduler) -> None:
    scheduler.second()
    scheduler.silence(SILENCE_SECONDS + 1)
    page = watching_page(scheduler, "series")
    scheduler.second(incarnation=6)
    assert only(scheduler.sent(page), "presence")["schedulers"] == 2
    points = scheduler.live.series.points
    assert [point[1] is None for point in points] == [False, True, False]
    assert scheduler.live.series.next_number == 3


def test_series_has_the_values_of_the_snapshot(scheduler: FakeScheduler) -> None:
    page = watching_page(scheduler, "series")
    scheduler.second(waiting=5, dispatched=9, running=4, suspended=2, resolved=10, outcomes=[8, 2])
    scheduler.second(waiting=6, dispatched=3, running=3, suspended=0, resolved=30, outcomes=[20, 8, 0, 0, 0, 0, 2])
    columns = only(scheduler.sent(page), "series")["columns"]
    assert (columns["waiting"], columns["queued"], columns["running"]) == ([5, 6], [3, 0], [4, 3])
    assert (columns["throughput"], columns["failed"]) == ([0, 20], [0, 6]), "a cancelled task has not failed"


def test_restarted_scheduler_keeps_the_window(scheduler: FakeScheduler) -> None:
    scheduler.second(1)
    page = watching_page(scheduler, "tasks")
    scheduler.rows = 0
    scheduler.second(incarnation=6, outcomes=[1])
    assert only(scheduler.sent(page), "snapshot")["incarnation"] == "6"
    assert scheduler.live.executions.rows == 1


def test_missed_history_is_reported(scheduler: FakeScheduler) -> None:
    scheduler.second(1)
    scheduler.rows += 40
    scheduler.second(2)
    page = PageSession(scheduler.live)
    page.handle(WatchRequest(frozenset(("tasks",))))
    sent = scheduler.sent(page)
    assert [message["missed"] for message in sent if message["type"] == "tasks"] == [0, 40]
    assert only(sent, "presence")["missed_history"] == 40


def test_large_identities_and_hostile_names_are_unchanged(scheduler: FakeScheduler) -> None:
    name = '</script><img src=x onerror=alert(1)>\u2028"\\'
    objects = {"clients": [LARGE], "ids": [LARGE], "names": [0], "bytes": [3], "tasks": [1], "states": [9]}
    texts = {"text": name.encode(), "sizes": [len(name.encode())]}
    page = watching_page(scheduler, "objects", "functions")
    scheduler.second(2**63 - 1, function=name, objectColumns=objects, texts=texts)
    sent = scheduler.sent(page)
    columns = only(sent, "objects")["columns"]
    assert (columns["client"], columns["id"], columns["name"], columns["state"]) == (
        [str(LARGE)],
        [str(LARGE)],
        [name],
        [""],
    )
    functions = only(sent, "functions")["columns"]
    assert (functions["name"], functions["recent"], functions["done"]) == ([name], [1], [1])
    assert functions["p99"] == pytest.approx([0.001], rel=0.046)


def graphs(states: list[int], **fields: Any) -> bytes:
    """A graph that squares a number and adds something to it, with an input that has no row."""
    columns = {
        "clients": [CLIENT],
        "ids": [1, 2],
        "names": [0, 1],
        "states": states,
        "text": b"squareadd",
        "sizes": [6, 3],
    }
    inputs = {"inputCounts": [1, 2], "inputs": [77, 1, 77]}
    payload = {"incarnation": [5], "total": [9], **columns, **inputs, **fields}
    return GRAPHS_TOPIC + message_of("graphs", **payload)


def test_graphs_are_sent_when_they_change(scheduler: FakeScheduler) -> None:
    page = watching_page(scheduler, "graphs")
    assert page.topics() == {GRAPHS_TOPIC}
    scheduler.second()
    assert only(scheduler.sent(page), "graphs")["total"] == 0
    for states in ([2, 0], [2, 0], [3, 1]):
        scheduler.reader.feed(graphs(states), scheduler.now)
        scheduler.second()
    found = only(scheduler.sent(page), "graphs")
    assert (found["total"], found["edges"]) == (9, {"from": [0], "to": [1]})
    columns = found["columns"]
    assert (columns["name"], columns["state"]) == (["square", "add"], ["done", "waiting"])
    assert (columns["client"], columns["id"]) == ([str(CLIENT)] * 2, ["1", "2"])
    scheduler.reader.feed(graphs([3, 1]), scheduler.now)
    scheduler.second()
    assert types(scheduler.sent(page)) == ["snapshot"], "unchanged graphs are not sent again"
    scheduler.second(incarnation=6)
    assert only(scheduler.sent(page), "graphs")["columns"]["id"] == [], "another scheduler"
    page.handle(PauseRequest(True))
    assert page.topics() == set()


def test_story_of_a_task(scheduler: FakeScheduler) -> None:
    scheduler.second()
    page = watching_page(scheduler)
    page.handle(StoryRequest(CLIENT, 7))
    topic = story_topic(CLIENT, 7)
    assert page.topics() == {topic} and scheduler.sent(page) == []
    answer = ended(0, 2.0, [7], outcomes=[1])[8:]
    scheduler.reader.feed(topic + answer, scheduler.now)
    [story] = scheduler.sent(page)
    assert (story["type"], story["client"], story["id"]) == ("story", str(CLIENT), "7")
    columns = story["columns"]
    assert (columns["kind"], columns["time"], columns["outcome"]) == (["ended"], [BEGAN + 2.0], [1])
    assert page.topics() == set() and scheduler.sent(page) == []
    page.handle(StoryRequest(CLIENT, 7))
    assert scheduler.sent(page) == [], "an earlier answer is not sent again"
    scheduler.second(incarnation=6)
    assert "story" not in types(scheduler.sent(page)), "the answer of another scheduler is dropped"
    scheduler.reader.feed(topic + answer, scheduler.now)
    assert types(scheduler.sent(page)) == ["story"]


def test_functions_without_a_row_are_bounded(scheduler: FakeScheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_ENDED_FUNCTIONS", 2)
    page = watching_page(scheduler, "functions")
    for number, function in enumerate(("rare", "often", "sometimes")):
        scheduler.second(*range((3, 30, 10)[number]), function=function)
    functions = only(scheduler.sent(page), "functions")["columns"]
    assert (functions["name"], functions["recent"]) == (["often", "sometimes"], [30, 10])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x", "not JSON"), ("[" * 4000, "not JSON"), ("[]", "not an object"), ("{}", "its type"),
        ('{"type":[]}', "its type"),
        ('{"type":"watch"}', "topics"), ('{"type":"watch","topics":["x"]}', "topics"),
        ('{"type":"watch","topics":[{}]}', "topics"), ('{"type":"settings","interval":0.1}', "interval"),
        ('{"type":"settings","interval":true}', "interval"), ('{"type":"settings","window":601}', "window is not"),
        ('{"type":"settings","window":NaN}', "window"), ('{"type":"story","client":1,"id":"2"}', "client is not"),
        ('{"type":"story","client":"1","id":"-2"}', "id is not"), ('{"type":"story","client":"1"}', "id is not"),
        ('{"type":"story","client":"99999999999999999999","id":"2"}', "client is not"),
    ],
)  # fmt: skip
def test_wrong_messages_of_a_page(text: str, problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        parse_request(text, 600.0)


def test_valid_messages_of_a_page(scheduler: FakeScheduler) -> None:
    assert parse_request('{"type":"settings","interval":2,"window":60,"more":1}', 600.0) == SettingsRequest(2.0, 60.0)
    assert parse_request('{"type":"watch","topics":[]}', 600.0) == WatchRequest(frozenset())
    assert (parse_request('{"type":"pause"}', 600.0), parse_request('{"type":"resume"}', 600.0)) == (
        PauseRequest(True),
        PauseRequest(False),
    )
    page = watching_page(scheduler)
    page.reject("it was wrong")
    assert scheduler.sent(page) == [{"type": "refused", "problem": "it was wrong"}] and scheduler.sent(page) == []
