"""What people say of a task."""

from __future__ import annotations

import pytest

from scaler_client.monitor.task_names import WantedTask, exact_name, parse_wanted

CLIENT = 4611686018427387904


@pytest.mark.parametrize(
    ("text", "wanted"),
    {
        "17": WantedTask(17),
        "#17": WantedTask(17),
        "task 17": WantedTask(17),
        " fit#17 ": WantedTask(17, name="fit"),
        "fit#17:": WantedTask(17, name="fit"),  # how WorkerDiedError begins
        "<lambda>#3": WantedTask(3, name="<lambda>"),
        "a#b#3": WantedTask(3, name="a#b"),
        f"{CLIENT}/17": WantedTask(17, CLIENT),
        # The cluster's log and the scheduler's.
        f"task {CLIENT}/17": WantedTask(17, CLIENT),
        f"fit, task {CLIENT}/17 of client fit.py[47]@node-1": WantedTask(17, CLIENT, name="fit"),
        f"task 17 of client {CLIENT}": WantedTask(17, CLIENT),
        "fit#17 of client fit.py[47]@node-1": WantedTask(17, client_name="fit.py[47]@node-1", name="fit"),
        "mine/17": WantedTask(17, client_name="mine"),
        "<TaskFuture fit#17 at 0x7f3ad0 state=pending>": WantedTask(17, name="fit"),
    }.items(),
)
def test_the_forms_that_there_are(text: str, wanted: WantedTask) -> None:
    assert parse_wanted(text) == wanted


@pytest.mark.parametrize("text", ["", "fit", "17/", "#", "x#y", "-1", f"{CLIENT}/{1 << 64}", "1 2", "²"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="names no task"):
        parse_wanted(text)


def test_what_is_said_exactly_is_what_was_meant() -> None:
    assert parse_wanted(exact_name(CLIENT, 17)) == WantedTask(17, CLIENT)


def test_what_is_not_known_excludes_nothing() -> None:
    wanted = WantedTask(17, client_name="mine", name="fit")
    assert wanted.fits(1, 17, "", "") and wanted.fits(1, 17, "mine", "fit")
    assert not wanted.fits(1, 17, "others", "fit") and not wanted.fits(1, 17, "", "other")
    assert WantedTask(17, client_name="ff").fits(255, 17, "mine", "")
    assert not wanted.fits(1, 18, "", "") and not WantedTask(17, 2).fits(1, 17, "", "")
