"""Functions are pickled and sent once, identified by content, and forgotten when nothing refers to them."""

from __future__ import annotations

import functools
import gc
import itertools
import math
import threading
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest
from tests.client.stand_ins import in_threads

from scaler_client.pickling import functions
from scaler_client.pickling.functions import FunctionTable
from scaler_client.pickling.retry_policy import RetryingFunction, TaskPolicy


@pytest.fixture
def forgotten() -> list[int]:
    return []


@pytest.fixture
def table(forgotten: list[int], monkeypatch: pytest.MonkeyPatch) -> FunctionTable:
    """A table that keeps no recent functions alive."""
    monkeypatch.setattr(functions, "_RECENT_FUNCTIONS", 0)
    return FunctionTable(forgotten.append)


@pytest.fixture
def pickled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions that were pickled, in order."""
    names: list[str] = []
    real = functions.serializer.dump_function

    def note(fn: Callable[..., Any], name: str) -> bytes:
        names.append(name)
        return real(fn, name)

    monkeypatch.setattr(functions.serializer, "dump_function", note)
    return names


def adder(amount: int) -> Callable[[int], int]:
    return lambda x: x + amount


class Account:
    def __init__(self, balance: int) -> None:
        self.balance = balance

    def after(self, payment: int) -> int:
        return self.balance + payment

    def __call__(self, payment: int) -> int:
        return self.after(payment)

    @staticmethod
    def fee() -> int:
        return 1

    @classmethod
    def of(cls, balance: int) -> Account:
        return cls(balance)


def loaded(function: functions.Function) -> Any:
    return cloudpickle.loads(function.payload)


@pytest.mark.parametrize(
    ("fn", "name"),
    [
        (math.sqrt, "sqrt"),
        (Account, "Account"),
        (Account.fee, "Account.fee"),
        (functools.partial(pow, 2), "partial(pow)"),
        (functools.partial(functools.partial(pow, 2), 3), "partial(pow)"),
        (dict, "dict"),
        (functools.lru_cache(math.floor), "floor"),
    ],
)
def test_a_function_is_pickled_once(table: FunctionTable, pickled: list[str], fn: Any, name: str) -> None:
    first = table.get(fn)
    assert table.get(fn) is first
    assert pickled == [name] and first.name == name


def test_each_closure_is_a_function_of_its_own_and_pickled_once(table: FunctionTable, pickled: list[str]) -> None:
    one, two = adder(1), adder(2)
    functions_of = [table.get(fn) for fn in (one, two, one, two)]
    assert functions_of[0] is functions_of[2] and functions_of[1] is functions_of[3]
    assert len({function.number for function in functions_of}) == 2 and len(pickled) == 2
    assert [loaded(function)(10) for function in functions_of[:2]] == [11, 12]


def test_equal_bytes_are_one_function(table: FunctionTable, pickled: list[str]) -> None:
    first, second = adder(1), adder(1)
    assert table.get(first) is table.get(second)
    assert len(pickled) == 2


def test_a_bound_method_is_pickled_with_its_current_state(table: FunctionTable) -> None:
    account = Account(5)
    before = table.get(account.after)
    assert table.get(account.after) is before
    account.balance = 50
    after = table.get(account.after)
    assert (loaded(before)(1), loaded(after)(1)) == (6, 51)


def test_a_callable_object_is_pickled_with_its_current_state(table: FunctionTable) -> None:
    account = Account(5)
    before = table.get(account)
    account.balance = 50
    assert (loaded(before)(1), loaded(table.get(account))(1)) == (6, 51)


def test_a_builtin_method_is_pickled_with_its_current_state(table: FunctionTable) -> None:
    numbers = [1, 2]
    count = numbers.count
    before = table.get(count)
    numbers.append(1)
    assert (loaded(before)(1), loaded(table.get(count))(1)) == (1, 2)


@pytest.mark.parametrize("fn", [None, 3, "print", [print]])
def test_objects_that_are_not_callable_are_rejected(table: FunctionTable, fn: Any) -> None:
    with pytest.raises(TypeError, match=f"of type {type(fn).__name__} is not callable"):
        table.get(fn)


def test_a_function_that_cannot_be_pickled_leaves_no_entry(table: FunctionTable, forgotten: list[int]) -> None:
    lock = threading.Lock()
    for _ in range(2):
        with pytest.raises(TypeError, match="function .*lambda.* can't be pickled"):
            table.get(lambda: lock)
    assert forgotten == []


def test_a_function_is_forgotten_with_its_last_reference(table: FunctionTable, forgotten: list[int]) -> None:
    fn = adder(1)
    function = table.get(fn)
    number = function.number
    del function
    gc.collect()
    assert forgotten == []
    del fn
    gc.collect()
    assert forgotten == [number]
    assert table.get(adder(1)).number != number


def test_a_task_keeps_its_function(table: FunctionTable, forgotten: list[int]) -> None:
    function = table.get(adder(1))
    gc.collect()
    assert forgotten == []
    number = function.number
    del function
    gc.collect()
    assert forgotten == [number]


def test_a_new_function_at_the_same_address_is_a_new_function(table: FunctionTable) -> None:
    for amount in range(200):
        fn = adder(amount)
        assert loaded(table.get(fn))(0) == amount
        del fn


def test_recently_used_functions_are_kept() -> None:
    forgotten: list[int] = []
    table = FunctionTable(forgotten.append)
    account = Account(1)
    number = table.get(account.after).number
    assert table.get(account.after).number == number
    for amount in range(functions._RECENT_FUNCTIONS):
        table.get(adder(amount))
    gc.collect()
    assert number in forgotten


def test_many_threads_get_the_same_function(table: FunctionTable) -> None:
    fns = [adder(amount) for amount in range(20)]
    found = in_threads(8, lambda _: [table.get(fn) for fn in fns])
    for row in found:
        assert [loaded(function)(0) for function in row] == list(range(20))
    again = [table.get(fn) for fn in fns]
    assert len({function.number for function in again}) == 20


# ------------------------------------------------------------------------------------------------------------- retry_on


def test_a_function_is_pickled_once_for_each_retry_on(table: FunctionTable, pickled: list[str]) -> None:
    plain = table.get(adder)
    first = table.get_with_policy(adder, TaskPolicy((OSError,)))
    assert table.get_with_policy(adder, TaskPolicy((OSError,))) is first
    other = table.get_with_policy(adder, TaskPolicy((OSError, ValueError)))
    assert table.get(adder) is plain
    assert len({plain.number, first.number, other.number}) == 3
    assert pickled == ["adder"] * 3 == [plain.name, first.name, other.name]


def test_the_wrapper_is_called_like_the_function(table: FunctionTable) -> None:
    def both(*args: int, **kwargs: int) -> tuple[tuple[int, ...], dict[str, int]]:
        return args, kwargs

    shipped = loaded(table.get_with_policy(both, TaskPolicy((OSError,))))
    assert isinstance(shipped, RetryingFunction) and shipped.retry_on == (OSError,)
    assert shipped(1, 2, self=3, fn=4) == ((1, 2), {"self": 3, "fn": 4})


def test_retry_on_works_with_errors_defined_in_main(table: FunctionTable) -> None:
    class OwnError(Exception):
        pass

    def fail() -> None:
        raise OwnError

    shipped = loaded(table.get_with_policy(fail, TaskPolicy((OwnError,))))
    with pytest.raises(shipped.retry_on):
        shipped()


def test_the_retry_wrapper_is_outside_of_a_custom_serializer(forgotten: list[int]) -> None:
    class Pickle:
        serialize = staticmethod(cloudpickle.dumps)
        deserialize = staticmethod(cloudpickle.loads)

    shipped = loaded(FunctionTable(forgotten.append, Pickle()).get_with_policy(abs, TaskPolicy((OSError,))))
    assert isinstance(shipped, RetryingFunction)
    kind, payload = shipped(("int", cloudpickle.dumps(-3)))
    assert kind == "int" and cloudpickle.loads(payload) == 3


def test_a_dead_function_frees_its_wrappers(table: FunctionTable, forgotten: list[int]) -> None:
    number = table.get_with_policy(adder(1), TaskPolicy((OSError,))).number
    gc.collect()
    assert forgotten == [number]
    assert table._by_identity == {}


def test_tables_of_one_connection_share_their_numbers(forgotten: list[int]) -> None:
    numbers = itertools.count(1)
    tables = [FunctionTable(forgotten.append, None, numbers) for _ in range(2)]
    functions = [table.get(fn) for fn in (abs, len) for table in tables]
    assert [function.number for function in functions] == [1, 2, 3, 4]


def test_coroutine_functions_are_rejected(table: FunctionTable) -> None:
    async def later() -> int:
        return 1

    with pytest.raises(TypeError, match=r"later is a coroutine function: submit a plain one"):
        table.get(later)
    with pytest.raises(TypeError, match=r"later\) is a coroutine function"):
        table.get(functools.partial(later))
