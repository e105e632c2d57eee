"""The options that `Client.options` accepts and rejects, and their form on the wire."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from scaler_client.api.task_options import TaskOptions, checked_bool
from scaler_client.protocol.messages import Options

NAMES = ("timeout", "retries", "retry_on", "priority", "name", "capabilities", "profiling")


def given(options: TaskOptions | None = None, **values: Any) -> TaskOptions:
    return (options or TaskOptions()).replace_given(**{name: values.get(name) for name in NAMES})


@pytest.mark.parametrize(
    ("values", "field", "expected"),
    [
        ({"timeout": 2}, "timeout_milliseconds", 2000),
        ({"timeout": 0.0001}, "timeout_milliseconds", 1),
        ({"retries": 0}, "retries", 0),
        ({"retry_on": OSError}, "retries", 3),
        ({"retry_on": (OSError, KeyboardInterrupt), "retries": 5}, "retries", 5),
        ({"priority": -(2**31)}, "priority", -(2**31)),
        ({"priority": 2**31 - 1}, "priority", 2**31 - 1),
        ({"name": "mine"}, "name", "mine"),
        ({"capabilities": {"linux": 1, "gpu": 2}}, "capabilities", (("gpu", 2), ("linux", 1))),
        ({"capabilities": ["linux", "gpu", "gpu"]}, "capabilities", (("gpu", 1), ("linux", 1))),
        ({"capabilities": {"gpu"}}, "capabilities", (("gpu", 1),)),
        ({"profiling": True}, "profiling", True),
    ],
)
def test_options_on_the_wire(values: dict[str, Any], field: str, expected: Any) -> None:
    wire = given(**values).to_wire()
    assert wire is not None
    assert getattr(wire, field) == expected


@pytest.mark.parametrize("values", [{}, {"profiling": False}, {"name": ""}, {"priority": 0}, {"capabilities": ()}])
def test_default_options_are_not_sent(values: dict[str, Any]) -> None:
    assert given(**values).to_wire() is None


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("timeout", 0, ValueError),
        ("timeout", -1.5, ValueError),
        ("timeout", float("nan"), ValueError),
        ("timeout", float("inf"), ValueError),
        ("timeout", "1", TypeError),
        ("timeout", True, TypeError),
        ("retries", -1, ValueError),
        ("retries", 2**31, ValueError),
        ("retries", 1.0, TypeError),
        ("retries", True, TypeError),
        ("retry_on", OSError(), TypeError),
        ("retry_on", [OSError], TypeError),
        ("retry_on", (OSError, "ValueError"), TypeError),
        ("retry_on", int, TypeError),
        ("priority", 2**31, ValueError),
        ("priority", -(2**31) - 1, ValueError),
        ("priority", 1.5, TypeError),
        ("name", 5, TypeError),
        ("capabilities", "gpu", TypeError),
        ("capabilities", 5, TypeError),
        ("capabilities", {"gpu": 0}, ValueError),
        ("capabilities", {"gpu": 2**32}, ValueError),
        ("capabilities", {"gpu": 1.5}, TypeError),
        ("capabilities", {"gpu": True}, TypeError),
        ("capabilities", {5: 1}, TypeError),
        ("capabilities", [["gpu"]], TypeError),
        ("capabilities", [""], ValueError),
        ("profiling", 1, TypeError),
    ],
)
def test_bad_options_raise(name: str, value: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=f"^{name}.*must") as raised:
        given(**{name: value})
    assert "\n" not in str(raised.value)


def test_profiling_of_a_submit() -> None:
    assert checked_bool("profiling", False) is False
    with pytest.raises(TypeError, match="profiling must be True or False, not 1"):
        checked_bool("profiling", 1)


def test_later_options_are_added_to_earlier_ones() -> None:
    first = given(timeout=2, priority=3)
    second = given(first, retries=4, priority=5)
    assert second == TaskOptions(timeout=2.0, retries=4, priority=5)
    assert first == TaskOptions(timeout=2.0, priority=3)


def test_options_inside_a_task() -> None:
    assert TaskOptions().to_wire(2, 9) == Options(depth=2, priority=9)
    assert TaskOptions(priority=0).to_wire(2, 9) == Options(depth=2)
    assert TaskOptions(profiling=True).to_wire(1, 0, False) == Options(depth=1)


def test_equal_arguments_return_the_same_object() -> None:
    options = given(retries=2)
    assert options.to_wire(1, 0) is options.to_wire(1, 0)
    assert options.to_wire(1, 0) is not options.to_wire(2, 0)


def test_options_can_be_pickled() -> None:
    options = given(timeout=2, retry_on=(OSError,), capabilities={"gpu": 1})
    options.to_wire()
    assert pickle.loads(pickle.dumps(options)) == options
