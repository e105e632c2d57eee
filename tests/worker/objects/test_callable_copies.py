"""What one call changes in its callable, no other call sees."""

from __future__ import annotations

import functools
import logging
import operator
import pickle
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from scaler_client.graphs.expressions import CallPart, DictPart, Expression, ListPart
from scaler_client.pickling import cloudpickle_ext
from scaler_client.pickling.call_rows import RowAnswer, pack_calls
from scaler_client.pickling.retry_policy import RetryingFunction
from scaler_client.pickling.serializer import CLOUDPICKLE_KIND
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Outcome
from scaler_worker.objects.immutable import is_immutable
from scaler_worker.worker.executor import Executor

LOADED: list[str] = []


def own(value: Any) -> Any:
    """A class that travels by value, as the classes of a program do."""

    class Counter:
        def __init__(self) -> None:
            self.seen: list[Any] = [value]

        def add(self, item: Any) -> int:
            self.seen.append(item)
            return len(self.seen)

        def __call__(self, item: Any) -> int:
            return self.add(item)

    return Counter()


def append_to(seen: list[Any], item: Any) -> list[Any]:
    seen.append(item)
    return seen


class Failing:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1
        raise KeyError(self.calls)


class OneWay:
    """Can be pickled in the client only."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def __reduce__(self) -> Any:
        return load_one_way, (list(self.seen),)

    def add(self, item: int) -> int:
        self.seen.append(item)
        return len(self.seen)


def load_one_way(seen: list[int]) -> OneWay:
    value = OneWay()
    value.seen = seen
    value.lock = threading.Lock()  # type: ignore[attr-defined]
    return value


class Heavy:
    """A callable object that is loaded with side effects."""

    def __setstate__(self, state: Any) -> None:
        LOADED.append("heavy")

    def __getstate__(self) -> Any:
        return {"a": 1}

    def __call__(self) -> str:
        return "done"


class Methods:
    """Its callables are functions that hold the object in their closures."""

    def __init__(self) -> None:
        self.calls = 0

    def plain(self, _item: Any = None) -> int:
        self.calls += 1
        return self.calls

    @functools.singledispatchmethod
    def dispatched(self, _item: Any) -> int:
        return self.plain()

    @property
    def by_property(self) -> Callable[[Any], int]:
        return lambda item: self.plain(item)

    def __getattr__(self, name: str) -> Callable[[Any], int]:
        if name != "by_getattr":
            raise AttributeError(name)
        return lambda item: self.plain(item)


def closure(state: Any) -> Callable[[Any], int]:
    def add(item: Any) -> int:
        state.append(item)
        return len(state)

    return add


def nonlocal_counter() -> Callable[[], int]:
    count = 0

    def call() -> int:
        def inner() -> int:
            nonlocal count
            count += 1
            return count

        return inner()

    return call


def counted(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def wrapper(*args: Any) -> int:
        wrapper.calls += 1  # type: ignore[attr-defined]
        fn(*args)
        return wrapper.calls  # type: ignore[attr-defined, no-any-return]

    wrapper.calls = 0  # type: ignore[attr-defined]
    return wrapper


def recursive() -> Callable[[int], int]:
    seen: list[int] = []

    def call(item: int) -> int:
        seen.append(item)
        return len(seen) if item == 0 else call(item - 1)

    return call


def decorated(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def wrapper(*args: Any) -> Any:
        return fn(*args)

    return wrapper


def of_main(fn: Any) -> Any:
    """The function, as if it were of `__main__`: it travels by value, with globals of its own."""
    fn.__module__ = "__main__"
    return fn


def by_default(item: Any, seen: list[Any] = [], *, others: list[Any] = []) -> int:  # noqa: B006
    seen.append(item)
    others.append(item)
    return len(seen) + len(others)


def of_module(item: Any, seen: list[Any] = []) -> None:  # noqa: B006
    seen.append(item)


METHODS, ONE_WAY = Methods(), OneWay()
CALLS: list[int] = []


def by_global(seen: list[Any]) -> Callable[[Any], tuple[int, int]]:
    def call(item: Any) -> tuple[int, int]:
        seen.append(item)
        CALLS.append(item)
        return len(seen), len(CALLS)

    return call


def run(fn: Callable[..., Any], *calls: tuple[Any, ...]) -> list[Any]:
    """The values of calls of one function in one worker."""
    payload = cloudpickle_ext.dumps(fn)
    executor = Executor({1: messages.Function(1, "fn", CLOUDPICKLE_KIND, payload)})
    values = []
    for arguments in calls:
        outcome, answer = executor.run(1, pickle.dumps(arguments))
        assert outcome == Outcome.VALUE, bytes(answer)
        values.append(pickle.loads(answer))
    return values


@pytest.mark.parametrize(
    ("fn", "calls", "expected"),
    [
        (own(0).add, [(1,)] * 4, [2] * 4),
        (own(0), [(1,)] * 4, [2] * 4),
        ([3, 1, 2].pop, [()] * 3, [2] * 3),
        (functools.partial(append_to, []), [(1,), (2,), (3,)], [[1], [2], [3]]),
        (functools.partial(functools.partial(append_to, [0])), [(1,), (2,), (3,)], [[0, 1], [0, 2], [0, 3]]),
        (OneWay().add, [(1,)] * 4, [1] * 4),
        ({"a": 1}.setdefault, [("b", 1), ("b", 2), ("b", 3)], [1, 2, 3]),
        (iter([1, 2, 3]).__next__, [()] * 3, [1] * 3),
        (Methods().dispatched, [(1,)] * 4, [1] * 4),
        (Methods().by_property, [(1,)] * 4, [1] * 4),
        (Methods().by_getattr, [(1,)] * 4, [1] * 4),
        (closure([]), [(1,)] * 4, [1] * 4),
        (functools.partial(closure([])), [(1,)] * 4, [1] * 4),
        (decorated(decorated(closure([]))), [(1,)] * 4, [1] * 4),
        (nonlocal_counter(), [()] * 4, [1] * 4),
        (counted(len), [("a",)] * 4, [1] * 4),
        (recursive(), [(2,)] * 4, [3] * 4),
        (of_main(by_default), [(1,)] * 4, [2] * 4),
        (lambda item, model=METHODS: model.plain(item), [(1,)] * 4, [1] * 4),
        (lambda item, one_way=ONE_WAY: one_way.add(item), [(1,)] * 4, [1] * 4),
    ],
    ids=[
        "method",
        "object",
        "list",
        "partial",
        "nested-partial",
        "one-way",
        "dict",
        "iterator",
        "singledispatchmethod",
        "property",
        "getattr",
        "closure",
        "partial-of-closure",
        "decorated",
        "nonlocal",
        "attribute",
        "recursive",
        "defaults",
        "default-object",
        "default-one-way",
    ],
)
def test_each_call_gets_the_state_that_was_sent(fn: Any, calls: list[Any], expected: list[Any]) -> None:
    assert run(fn, *calls) == expected


def test_copies_of_a_function_share_its_globals() -> None:
    assert run(of_main(by_global([])), (1,), (2,), (3,)) == [(1, 1), (1, 2), (1, 3)]


def test_a_copy_of_a_function_looks_like_it() -> None:
    def text(self: Any) -> tuple[Any, ...]:
        return self.__name__, self.__qualname__, self.__module__, self.__doc__, self.__annotations__, vars(self)

    @counted
    def documented(_item: int) -> None:
        """A text."""

    documented.calls = 3  # type: ignore[attr-defined]
    fn = functools.partial(lambda each: text(each), documented)
    first, second = run(fn, (), ())
    assert first[:5] == second[:5] == text(documented)[:5]
    assert second[5]["calls"] == 3 and second[5]["__wrapped__"].__name__ == "documented"


def test_a_seeded_generator_draws_the_same_numbers_in_each_call() -> None:
    first, *others = run(random.Random(7).random, (), (), ())
    assert others == [first, first]


def test_calls_of_one_row_have_a_copy_each() -> None:
    payload = cloudpickle_ext.dumps(own(0).add)
    executor = Executor({1: messages.Function(1, "fn", CLOUDPICKLE_KIND, payload)})
    row = pack_calls(None, [(1,), (2,), (3,)]).row(0, 3)
    outcome, answer, ended = executor.run_calls(1, row, lambda: 0)  # type: ignore[arg-type]
    assert (outcome, ended, RowAnswer(answer).values()) == (Outcome.VALUE, 3, [2, 2, 2])


def test_a_callable_with_state_is_retried() -> None:
    payload = cloudpickle_ext.dumps(RetryingFunction(Failing(), (KeyError,)))
    executor = Executor({1: messages.Function(1, "fn", CLOUDPICKLE_KIND, payload)})
    for _ in range(3):
        outcome, answer = executor.run(1, pickle.dumps(()))
        assert outcome == Outcome.RETRYABLE and pickle.loads(answer)[0].args == (1,)


def test_classes_that_travel_by_value_are_loaded_once_for_all_copies() -> None:
    def kind_of(self: Any) -> int:
        return id(type(self))

    counter = own(0)
    type(counter).kind_of = kind_of
    second, third, fourth = run(counter.kind_of, (), (), (), ())[1:]
    assert second == third == fourth


def test_a_partial_of_bytes_is_loaded_once() -> None:
    def place(data: bytes, _item: int) -> int:
        return id(data)

    assert len(set(run(functools.partial(place, b"x" * 100_000), (1,), (2,), (3,)))) == 1


def test_a_large_immutable_part_of_a_callable_with_state_is_loaded_once() -> None:
    def place(data: bytes, seen: list[int], item: int) -> int:
        seen.append(item)
        assert seen == [item]
        return id(data)

    places = run(functools.partial(place, b"x" * 100_000, []), (1,), (2,), (3,), (4,))
    assert len(set(places[1:])) == 1


@pytest.mark.parametrize(
    "fn",
    [
        len, print, str, dict, str.upper, "a,b".split, int.from_bytes, dict.fromkeys, operator.itemgetter(1, "a"),
        operator.attrgetter("a.b"), operator.methodcaller("pop", 1, key="a"), append_to, lambda value: value,
        functools.partial(append_to, (1, "a", b"b")), functools.partial(pow, 2, mod=5), functools.lru_cache(append_to),
        RetryingFunction(len, (OSError,)), random.SystemRandom.random, Failing, decorated(len), of_module,
        closure(len), closure((1, "a", Failing)), closure(logging.getLogger("a")), decorated(decorated(print)),
        functools.singledispatch(lambda value: value), closure(closure(threading)), closure(None),
    ],
    ids=lambda fn: type(fn).__name__,
)  # fmt: skip
def test_callables_without_state_are_kept(fn: Any) -> None:
    assert is_immutable(pickle.loads(cloudpickle_ext.dumps(fn)))


@pytest.mark.parametrize(
    "fn",
    [
        [1].pop, {}.get, functools.partial(append_to, []), functools.partial(append_to, ([],)), own(1), own(1).add,
        functools.partial(print, file=own(1)), operator.methodcaller("pop", [1]), RetryingFunction([1].pop, (OSError,)),
        random.Random(1).random, closure([]), closure(closure({})), Methods().dispatched, Methods().by_property,
        nonlocal_counter(), counted(len), recursive(), functools.partial(closure([])), closure((1, [])),
        RetryingFunction(closure([]), (OSError,)), lambda value, seen=[]: seen,
    ],
    ids=lambda fn: type(fn).__name__,
)  # fmt: skip
def test_callables_with_state_are_not_kept(fn: Any) -> None:
    assert not is_immutable(pickle.loads(cloudpickle_ext.dumps(fn)))


def calls_of(*callables: Callable[..., Any]) -> Expression:
    """A node of a graph that calls each of these with its argument."""
    return Expression(ListPart(tuple(CallPart(fn, (0,)) for fn in callables)), "node")


@pytest.mark.parametrize("state", [own(1), OneWay()], ids=lambda state: type(state).__name__)
@pytest.mark.parametrize("wrap", [lambda fn: fn, lambda fn: RetryingFunction(fn, (OSError,))], ids=["plain", "retry"])
def test_each_call_of_a_node_has_its_own_state(state: Any, wrap: Callable[[Any], Any]) -> None:
    node = wrap(calls_of(state.add, state.add, len))
    first = len(state.seen) + 1
    assert run(node, ("abc",), ("abc",), ("abc",)) == [[first, first, 3]] * 3


class Loader:
    """Is loaded as an object that can't be pickled again."""

    def __reduce__(self) -> Any:
        return WithLock, ()


class WithLock:
    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.lock = threading.Lock()

    def __call__(self, item: Any) -> int:
        self.seen.append(item)
        return len(self.seen)


@pytest.mark.parametrize("wrap", [lambda fn: fn, lambda fn: RetryingFunction(fn, (OSError,))], ids=["plain", "retry"])
def test_calls_of_a_node_do_not_share_what_a_worker_cannot_pickle(wrap: Callable[[Any], Any]) -> None:
    fn: Any = Loader()
    assert run(wrap(calls_of(len, fn, fn, str)), ("a",), ("a",)) == [[1, 1, 1, "a"]] * 2


def test_callables_of_a_node_do_not_share_an_object() -> None:
    items = [3, 1, 2]
    assert run(calls_of(items.pop, items.pop, items.count), (0,), (0,)) == [[3, 3, 0]] * 2


def test_a_node_of_functions_is_loaded_once() -> None:
    assert is_immutable(pickle.loads(cloudpickle_ext.dumps(calls_of(len, append_to, str))))
    keys = Expression(DictPart((own(1),), (0,)), "node")
    assert not is_immutable(pickle.loads(cloudpickle_ext.dumps(keys)))


def test_a_callable_that_is_called_once_is_loaded_once() -> None:
    LOADED.clear()
    assert run(Heavy(), ()) == ["done"] and LOADED == ["heavy"]
