"""The options that `Client.options` accepts and rejects, and their form on the wire."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from scaler_client.api.task_options import TaskOptions, checked_bool, checked_gang
from scaler_client.protocol.messages import Options

NAMES = ("timeout", "retries", "retry_on", "priority", "name", "capabilities", "profiling", "resources", "cpus")


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
        ("capabilities", ["a" * 129], ValueError),
        ("capabilities", map(str, range(65)), ValueError),
        ("profiling", 1, TypeError),
    ],
)
def test_bad_options_raise(name: str, value: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=f"^{name}.*must") as raised:
        given(**{name: value})
    assert "\n" not in str(raised.value)


def test_the_most_that_the_scheduler_takes() -> None:
    names = [f"{number:0128}" for number in range(64)]
    assert given(capabilities=names).capabilities == tuple((name, 1) for name in names)
    most = {f"resource{number}": 1 for number in range(15)}
    assert len(given(resources=most, cpus=2).to_wire().resources) == 16  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="resources must be at most 16 with cpus, not 17"):
        given(given(resources={**most, "license": 1}), cpus=2)


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


def test_resources_on_the_wire() -> None:
    options = TaskOptions().replace_given(resources={"memory": "1.5G", "gpu": 0.25}).replace_given(cpus=4)
    wire = options.to_wire()
    assert wire is not None
    assert wire.resources == (("cpus", 4000), ("gpu", 250), ("memory", 1536_000 << 20))
    assert options.replace_given(resources={"cpus": 2}).to_wire().resources == (("cpus", 2000),)  # type: ignore[union-attr]
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"gpu": -1}, ValueError, f"the amount of gpu must be above 0 and at most {1 << 50}, not -1"),
        ({"gpu": 0}, ValueError, f"the amount of gpu must be above 0 and at most {1 << 50}, not 0"),
        ({"gpu": math.nan}, ValueError, "nan is no amount of gpu"),
        ({"gpu": math.inf}, ValueError, "inf is no amount of gpu"),
        ({"gpu": 10**5000}, ValueError, "a number of thousands of digits"),
        ({"gpu": 1e300}, ValueError, "the amount of gpu must be above 0"),
        ({"gpu": 0.0001}, ValueError, "the amount of gpu must be at least 0.001, not 0.0001"),
        ({"gpu": 0.33333}, ValueError, "amounts of gpu are multiples of 0.001, and 0.33333 is not"),
        ({"memory": "4 gallons"}, ValueError, "'4 gallons' is no amount of memory: give a number, or one with K, M, G"),
        ({"cpus": True}, TypeError, "the amount of cpus must be a number or a text such as '4', not True"),
        ({"cpus": "x"}, ValueError, "'x' is no amount of cpus: give a number"),
        ({"cpus": "4G"}, ValueError, "'4G' is no amount of cpus: give a number, without K, M, G, T or P"),
        ({"gpu": True}, TypeError, "the amount of gpu must be a number or a text such as '4G', not True"),
        ({"g p u": 1}, ValueError, "'g p u' is no name of a resource"),
        ({1: 1}, TypeError, "resources must be named by strings, not 1"),
        ("gpu", TypeError, "resources must be a dict of names and amounts, not 'gpu'"),
        ([10**5000], TypeError, "resources must be a dict of names and amounts, not a number of thousands of digits"),
        ({"gpu": Decimal("sNaN")}, ValueError, "Decimal('sNaN') is no amount of gpu"),
        ({"gpu": Decimal("1e999999")}, ValueError, "must be above 0 and at most"),
        ({"gpu": Fraction(1, 3)}, ValueError, "amounts of gpu are multiples of 0.001, and Fraction(1, 3) is not"),
        ({"gpu": "0.33333"}, ValueError, "amounts of gpu are multiples of 0.001, and '0.33333' is not"),
        ({"gpu": "1e300"}, ValueError, "the amount of gpu must be above 0 and at most"),
        ({"gpu": "-1"}, ValueError, "the amount of gpu must be above 0 and at most"),
        ({"gpu": 1j}, TypeError, "the amount of gpu must be a number or a text such as '4G', not 1j"),
        ({f"r{number}": 1 for number in range(17)}, ValueError, "a task can ask for 16 resources, not 17"),
    ],
)
def test_wrong_resources(given: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        TaskOptions().replace_given(resources=given)
    assert text in str(raised.value)


class ShortFloat(float):
    """A float whose `repr` is no number, as NumPy's."""

    def __repr__(self) -> str:
        return f"float64({float(self)})"

    def __str__(self) -> str:
        return float.__repr__(self)


@pytest.mark.parametrize(
    ("given", "thousandths"),
    [
        (Fraction(1, 4), 250),
        (Decimal("0.25"), 250),
        (ShortFloat(0.25), 250),
        ("2.5e-1", 250),
        ("1e3", 1_000_000),
        ("0.3333333333G", 357913941298),
    ],
)
def test_amounts(given: Any, thousandths: int) -> None:
    assert TaskOptions().replace_given(resources={"gpu": given}).resources == (("gpu", thousandths),)


@pytest.mark.main_environment
def test_amounts_of_numpy() -> None:
    numpy = pytest.importorskip("numpy")
    for given, thousandths in ((numpy.int64(2), 2000), (numpy.float64(0.25), 250), (numpy.float32(0.1), 100)):
        assert TaskOptions().replace_given(resources={"gpu": given}).resources == (("gpu", thousandths),)
    with pytest.raises(TypeError, match=r"must be a number or a text such as '4', not array"):
        TaskOptions().replace_given(cpus=numpy.array(2))


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ("", ValueError, "limits must have names, not ''"),
        ("db,api", ValueError, "'db,api' is no name of a limit: 1 to 64 printable characters without blanks, ','"),
        (["db", "api "], ValueError, "'api ' is no name of a limit"),
        ("db\n", ValueError, "'db\\n' is no name of a limit"),
        ("d" * 65, ValueError, "is no name of a limit"),
        ({"db": 1}, TypeError, "limit must be a name or several names, not {'db': 1}"),
        (b"db", TypeError, "limit must be a name or several names, not b'db'"),
        ([10**5000], TypeError, "limits must be named by strings, not a number of thousands of digits"),
        ([None], TypeError, "limits must be named by strings, not None"),
    ],
)
def test_wrong_limits(given: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        TaskOptions().replace_given(limit=given)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("size", "error", "text"),
    [
        (0, ValueError, "size must be 1 to 1024, not 0"),
        (1025, ValueError, "size must be 1 to 1024, not 1025"),
        ("4", TypeError, "size must be a whole number, not '4'"),
        (True, TypeError, "size must be a whole number, not True"),
        (2.0, TypeError, "size must be a whole number, not 2.0"),
        ([0] * 1000, TypeError, "size must be a whole number, not [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ..."),
    ],
)
def test_wrong_sizes_of_gangs(size: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        checked_gang(size, TaskOptions())
    assert text in str(raised.value)
    with pytest.raises(ValueError, match="size must be 1 to 1024, not a number of thousands of digits"):
        checked_gang(10**5000, TaskOptions())


@pytest.mark.parametrize("cpus", [0, -2, math.nan, "many", 2**60])
def test_wrong_cpus(cpus: Any) -> None:
    with pytest.raises(ValueError, match="cpus"):
        TaskOptions().replace_given(cpus=cpus)
    with pytest.raises(ValueError, match="cpus is 2, and resources\\['cpus'\\] is another number"):
        TaskOptions().replace_given(cpus=2, resources={"cpus": 3})
