"""Task names as users give them."""

from __future__ import annotations

import pytest

from scaler_client.monitor.task_names import TaskQuery, exact_name, parse_task_query

CLIENT = 4611686018427387904


@pytest.mark.parametrize(
    ("text", "query"),
    {
        "17": TaskQuery(17),
        "#17": TaskQuery(17),
        "task 17": TaskQuery(17),
        " fit#17 ": TaskQuery(17, name="fit"),
        "fit#17:": TaskQuery(17, name="fit"),  # the beginning of WorkerDiedError
        "<lambda>#3": TaskQuery(3, name="<lambda>"),
        "a#b#3": TaskQuery(3, name="a#b"),
        f"{CLIENT}/17": TaskQuery(17, CLIENT),
        # The logs of the cluster and of the scheduler.
        f"task {CLIENT}/17": TaskQuery(17, CLIENT),
        f"fit, task {CLIENT}/17 of client fit.py[47]@node-1": TaskQuery(17, CLIENT, name="fit"),
        f"task 17 of client {CLIENT}": TaskQuery(17, CLIENT),
        "fit#17 of client fit.py[47]@node-1": TaskQuery(17, client_name="fit.py[47]@node-1", name="fit"),
        "mine/17": TaskQuery(17, client_name="mine"),
        "<TaskFuture fit#17 at 0x7f3ad0 state=pending>": TaskQuery(17, name="fit"),
    }.items(),
)
def test_accepted_forms(text: str, query: TaskQuery) -> None:
    assert parse_task_query(text) == query


@pytest.mark.parametrize("text", ["", "fit", "17/", "#", "x#y", "-1", f"{CLIENT}/{1 << 64}", "1 2", "²"])
def test_rejected_forms(text: str) -> None:
    with pytest.raises(ValueError, match="does not name a task"):
        parse_task_query(text)


def test_exact_name_matches_one_task() -> None:
    assert parse_task_query(exact_name(CLIENT, 17)) == TaskQuery(17, CLIENT)


def test_unknown_parts_match_anything() -> None:
    query = TaskQuery(17, client_name="mine", name="fit")
    assert query.matches(1, 17, "", "") and query.matches(1, 17, "mine", "fit")
    assert not query.matches(1, 17, "others", "fit") and not query.matches(1, 17, "", "other")
    assert TaskQuery(17, client_name="ff").matches(255, 17, "mine", "")
    assert not query.matches(1, 18, "", "") and not TaskQuery(17, 2).matches(1, 17, "", "")
