"""The bytes of arguments and results."""

from __future__ import annotations

import collections
import datetime
import enum
import functools
import pickle
import threading
import types
from typing import Any

import pytest

from scaler_client.pickling import serializer
from scaler_client.pickling.serializer import dump_call, dump_function, dumps, is_plain, loads


class Colour(enum.IntEnum):
    RED = 1


Point = collections.namedtuple("Point", "x y")


class MyInt(int):
    pass


class Unpicklable:
    def __reduce__(self) -> Any:
        raise RuntimeError("not me")


def call_of(payload: bytes) -> tuple[Any, Any]:
    """Return arguments and keywords of a call from its payload."""
    arguments = loads(payload)
    return (arguments, {}) if type(arguments) is tuple else tuple(arguments)


def by_cloudpickle(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the values that go through cloudpickle."""
    seen: list[Any] = []
    real = serializer.cloudpickle_ext.dumps

    def note(value: Any) -> bytes:
        seen.append(value)
        return real(value)

    monkeypatch.setattr(serializer.program, "_reloaded", {})  # as before the first reload
    monkeypatch.setattr(serializer.cloudpickle_ext, "dumps", note)
    return seen


PLAIN = [
    1, -(1 << 80), 1.5, "text", "\ud800", b"bytes", bytearray(b"b"), True, None, 2j, (), [], {}, set(), frozenset(),
    (1, "a", [2.0]), {"a": (1, 2), 3: None}, {1, 2}, frozenset({"x"}),
]  # fmt: skip


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_values_use_plain_pickle(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = by_cloudpickle(monkeypatch)
    assert is_plain(value)
    assert loads(dumps(value)) == value
    assert call_of(dump_call((value, value), {})) == ((value, value), {})
    assert call_of(dump_call((value, value), {"key": value})) == ((value, value), {"key": value})
    assert seen == []


NOT_PLAIN = [
    Colour.RED, Point(1, 2), MyInt(3), datetime.date(2026, 1, 1), len, Colour, [Colour.RED], {"a": [Point(1, 2)]},
    {Colour.RED: 1}, (1, (2, MyInt(3))), collections.OrderedDict(a=1), range(3), functools.partial(int, base=2),
]  # fmt: skip


@pytest.mark.parametrize("value", NOT_PLAIN, ids=repr)
def test_other_values_use_cloudpickle(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = by_cloudpickle(monkeypatch)
    assert not is_plain(value)
    back = loads(dumps(value))
    assert type(back) is type(value) and (back == value or isinstance(value, functools.partial))
    dump_call((1, value), {})
    dump_call((), {"key": value})
    assert len(seen) == 3


def test_lambdas_and_local_classes() -> None:
    class Local:
        value = 3

    args, kwargs = call_of(dump_call((lambda x: x + 1, Local), {"again": Local()}))
    assert args[0](1) == 2 and args[1].value == 3 and kwargs["again"].value == 3


def test_a_value_that_contains_itself() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    back = loads(dumps(loop))
    assert back[1] is back
    args, _ = call_of(dump_call((loop,), {}))
    assert args[0][1] is args[0]


def test_shared_parts_are_not_examined_repeatedly() -> None:
    value: list[Any] = []
    for _ in range(60):
        value = [value, value]
    back = loads(dumps(value))
    assert back[0] is back[1]
    args, kwargs = call_of(dump_call((value,), {"value": value}))
    assert args[0][0] is args[0][1] is kwargs["value"][0], "2**60 visits would not end"


def test_deeply_nested() -> None:
    value: list[Any] = []
    for _ in range(100):
        value = [value]
    assert loads(dumps(value)) == value


def test_long_containers_are_not_examined() -> None:
    class Counting(list):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            raise AssertionError("looked at")

    assert not is_plain(list(range(1000)))
    assert loads(dumps(list(range(1000)))) == list(range(1000))
    assert not is_plain(Counting(range(3)))


# --------------------------------------------------------------------------------------------------------------- errors


def test_an_unpicklable_argument_is_named_by_position() -> None:
    with pytest.raises(TypeError, match=r"^argument 1 of type _thread\.lock can't be pickled: .*lock") as raised:
        dump_call((1, threading.Lock(), threading.Lock()), {})
    assert raised.value.__cause__ is not None


def test_an_unpicklable_argument_is_named_by_keyword() -> None:
    with pytest.raises(TypeError, match=r"^argument 'guard' of type _thread\.lock can't be pickled"):
        dump_call((1,), {"a": 1, "guard": threading.Lock()})


def test_an_unpicklable_value_inside_an_argument() -> None:
    with pytest.raises(TypeError, match=r"^argument 0 of type dict can't be pickled: RuntimeError: not me"):
        dump_call(({"deep": [Unpicklable()]},), {})


def test_a_builtin_type_is_named_without_its_module() -> None:
    with pytest.raises(TypeError, match="^argument 0 of type generator can't"):
        dump_call(((i for i in range(3)),), {})


def test_too_deep_nesting_is_an_unpicklable_argument() -> None:
    value: list[Any] = []
    for _ in range(200_000):
        value = [value]
    try:
        with pytest.raises(TypeError, match="argument 0 of type list"):
            dump_call((value,), {})
    finally:
        while value:
            value = value.pop()


def test_an_unpicklable_function_is_named() -> None:
    lock = threading.Lock()

    def guarded() -> Any:
        return lock

    with pytest.raises(TypeError, match="^function guarded can't be pickled: TypeError: .*lock"):
        dump_function(guarded, "guarded")


def test_payloads_may_be_any_buffer() -> None:
    data = pickle.dumps((1, 2))
    assert loads(memoryview(data)) == loads(bytearray(data)) == (1, 2)


LOCK = threading.Lock()


class Pool:
    def __init__(self, lock: Any) -> None:
        self.size = 3
        self.parts = {"inner": [1, lock]}

    def run(self) -> None: ...


def reads_global() -> Any:
    return LOCK


def _closing_over(pool: Any) -> Any:
    return lambda: pool


@pytest.mark.parametrize(
    ("value", "way"),
    [
        (LOCK, ""),
        ([1, {"a": LOCK}], "item 'a' of item 1"),
        (Pool(LOCK), "item 1 of item 'inner' of attribute 'parts'"),
        (Pool(LOCK).run, "item 1 of item 'inner' of attribute 'parts' of the object of the method"),
        (functools.partial(print, 1, file=LOCK), "argument 'file'"),
        (_closing_over(Pool(LOCK)), "item 1 of item 'inner' of attribute 'parts' of closure variable 'pool'"),
        (reads_global, "global 'LOCK'"),
        (functools.lru_cache(_closing_over(LOCK)), "closure variable 'pool' of the cached function"),
        ({**{number: object() for number in range(5000)}, "last": LOCK}, "item 'last'"),
        (collections.defaultdict(_closing_over(LOCK)), "closure variable 'pool' of the default factory"),
    ],
    ids=["itself", "containers", "object", "method", "partial", "closure", "global", "cached", "many", "default"],
)
def test_errors_name_the_way_to_what_can_not_be_pickled(value: Any, way: str) -> None:
    if value is reads_global:
        value = types.FunctionType(value.__code__, {"LOCK": LOCK, "__name__": "__main__"}, "reads_global")
    with pytest.raises(TypeError, match="argument 0 .* cannot pickle '_thread.lock' object") as caught:
        serializer.dump_call((value,), {})
    text = str(caught.value)
    assert text.endswith(f" (it is {way})" if way else "object"), text
    if callable(value):
        with pytest.raises(TypeError, match="function f can't be pickled") as caught:
            serializer.dump_function(value, "f")
        assert str(caught.value).endswith(f" (it is {way})")


def test_the_way_leads_through_base_classes_and_metaclasses() -> None:
    space: dict[str, Any] = {"__name__": "__main__", "LOCK": LOCK}
    exec(
        "class Meta(type):\n    held = LOCK\n"
        "class Base:\n    def run(self): return LOCK\n"
        "class Sub(Base): pass\nclass Made(metaclass=Meta): pass",
        space,
    )
    with pytest.raises(TypeError, match=r"global 'LOCK' of attribute 'run' of base class Base of class Sub\)"):
        serializer.dump_call((space["Sub"](),), {})
    with pytest.raises(TypeError, match=r"attribute 'held' of metaclass Meta\)"):
        serializer.dump_call((space["Made"],), {})


def test_the_way_leads_into_a_module_that_the_program_has_made() -> None:
    module = types.ModuleType("made")
    module.settings = {"lock": LOCK}  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=r"\(it is item 'lock' of attribute 'settings' of item 0\)"):
        serializer.dump_call(([module],), {})


def test_values_that_contain_themselves_have_a_way_that_ends() -> None:
    value: list[Any] = [1]
    value += [value, {"self": value, "lock": LOCK}]
    with pytest.raises(TypeError, match=r"\(it is item 'lock' of item 2\)"):
        serializer.dump_call((value,), {})
