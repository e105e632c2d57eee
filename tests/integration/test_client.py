"""The client in common use, with real processes."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import gc
import math
import operator
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from tests.client.stand_ins import in_threads
from tests.waiting import wait_until

from scaler_client import Client, ClientClosedError, SchedulerClusterCombo, TaskFuture

# Workers cannot import the tests: functions of this module are pickled by value, as those of __main__ are.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 30


def square(x: int) -> int:
    return x * x


def keywords_only(*, left: int, right: int = 1) -> int:
    return left - right


class Account:
    def __init__(self, balance: int) -> None:
        self.balance = balance

    def after(self, payment: int) -> int:
        return self.balance + payment

    def __call__(self, payment: int) -> int:
        return self.after(payment)

    @staticmethod
    def fee() -> int:
        return 7

    @classmethod
    def of(cls, balance: int) -> Account:
        return cls(balance)


def test_the_example_of_the_readme() -> None:
    cluster = SchedulerClusterCombo(address="tcp://127.0.0.1:*", n_workers=4)
    try:
        with Client(address=cluster.get_address()) as client:
            futures = [client.submit(math.sqrt, i) for i in range(100)]
            assert sum(f.result() for f in futures) == pytest.approx(sum(map(math.sqrt, range(100))))
            assert client.map(square, [(i,) for i in range(1000)]) == [i * i for i in range(1000)]
    finally:
        cluster.shutdown()
        cluster.shutdown()


# ------------------------------------------------------------------------------------------------------------ callables


CALLS = {
    "function": (square, (3,), {}, 9),
    "lambda": (lambda x: x + 1, (3,), {}, 4),
    "builtin": (math.sqrt, (9,), {}, 3.0),
    "builtin method": ("a-b".split, ("-",), {}, ["a", "b"]),
    "builtin type": (int, ("ff",), {"base": 16}, 255),
    "partial": (functools.partial(pow, 2), (5,), {}, 32),
    "bound method": (Account(5).after, (1,), {}, 6),
    "callable object": (Account(6), (1,), {}, 7),
    "static method": (Account.fee, (), {}, 7),
    "keyword-only": (keywords_only, (), {"left": 5, "right": 2}, 3),
    "keyword-only with default": (keywords_only, (), {"left": 5}, 4),
    "keywords named like ours": (lambda **given: given, (), {"fn": 1, "self": 2}, {"fn": 1, "self": 2}),
    "attrgetter": (operator.attrgetter("balance"), (Account(8),), {}, 8),
}


@pytest.mark.parametrize("name", CALLS)
def test_kinds_of_callables(client: Client, name: str) -> None:
    fn, args, kwargs, expected = CALLS[name]
    assert client.submit(fn, *args, **kwargs).result(SECONDS) == expected


def test_classes_and_closures(client: Client) -> None:
    base = 10

    class Local:
        value = 5

    account = client.submit(Account.of, 3).result(SECONDS)
    assert account.after(1) == 4
    assert client.submit(Account, 4).result(SECONDS).balance == 4
    assert client.submit(lambda: base + Local.value).result(SECONDS) == 15


def test_a_bound_method_has_the_state_of_each_call(client: Client) -> None:
    account = Account(1)
    first = client.submit(account.after, 0)
    account.balance = 2
    assert (first.result(SECONDS), client.submit(account.after, 0).result(SECONDS)) == (1, 2)


# ------------------------------------------------------------------------------------------------------------------ map


def test_map_of_nothing(client: Client) -> None:
    assert client.map(square, []) == []
    assert client.map(square, iter(())) == []


def test_map_of_a_generator(client: Client) -> None:
    assert client.map(pow, ((x, 2) for x in range(5000))) == [x * x for x in range(5000)]


def test_map_raises_the_tasks_exception_and_leaves_the_client_usable(client: Client) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        client.map(lambda x: 1 // (x - 1500), [(x,) for x in range(3000)])
    assert "Traceback" in str(raised.value.__cause__)
    assert client.map(square, [(2,)]) == [4]


def test_map_of_items_that_are_no_tuples(client: Client) -> None:
    for wrong in ([1], ["ab"], [(1,), None]):
        with pytest.raises(TypeError, match="map needs a tuple of arguments for each call; item"):
            client.map(square, wrong)  # type: ignore[arg-type]


def test_map_of_a_generator_that_raises(client: Client) -> None:
    def arguments() -> Iterator[tuple[int]]:
        yield from ((x,) for x in range(3000))
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        client.map(square, arguments())
    assert client.submit(square, 3).result(SECONDS) == 9


# -------------------------------------------------------------------------------------------------------------- futures


def test_wait_and_as_completed(client: Client) -> None:
    futures = [client.submit(square, number) for number in range(200)]
    done, not_done = concurrent.futures.wait(futures, timeout=SECONDS)
    assert (len(done), not_done) == (200, set())
    more = {client.submit(square, number): number for number in range(200)}
    assert all(f.result() == more[f] ** 2 for f in concurrent.futures.as_completed(more, timeout=SECONDS))


def test_await(client: Client) -> None:
    async def main() -> list[int]:
        first = await client.submit(square, 2)
        return [first, *await asyncio.gather(*(asyncio.wrap_future(client.submit(square, n)) for n in range(50)))]

    assert asyncio.run(main()) == [4, *(n * n for n in range(50))]


def wait_for(path: str) -> None:
    """Wait until a file exists."""
    while not os.path.exists(path):
        time.sleep(0.01)


def occupy_workers(client: Client, gate: Path) -> list[TaskFuture[None]]:
    """Let both workers wait for the gate."""
    blocking = [client.submit(wait_for, str(gate)) for _ in range(2)]
    wait_until(lambda: all(future.running() for future in blocking))
    return blocking


def test_cancel_of_a_running_task_is_refused(client: Client, gate: Path) -> None:
    future = client.submit(wait_for, str(gate))
    wait_until(future.running)
    assert future.cancel() is False
    gate.touch()
    assert future.result(SECONDS) is None


def test_cancel_of_waiting_tasks(client: Client, gate: Path) -> None:
    blocking = occupy_workers(client, gate)
    waiting = [client.submit(time.sleep, 600) for _ in range(10)]
    assert all(future.cancel() for future in waiting)
    assert all(future.cancelled() for future in waiting)
    gate.touch()
    assert client.gather(blocking) == [None, None]
    assert client.submit(square, 3).result(SECONDS) == 9


def test_two_threads_cancel_the_same_future(client: Client, gate: Path) -> None:
    blocking = occupy_workers(client, gate)
    futures = [client.submit(time.sleep, 600) for _ in range(20)]
    assert in_threads(4, lambda _: [future.cancel() for future in futures]) == [[True] * 20] * 4
    gate.touch()
    assert client.gather(blocking) == [None, None]


def test_callbacks_in_order(client: Client) -> None:
    called: list[int] = []
    done = threading.Event()
    future = client.submit(time.sleep, 0.05)
    for number in range(10):
        future.add_done_callback(lambda _, number=number: called.append(number))
    future.add_done_callback(lambda _: done.set())
    assert done.wait(SECONDS) and called == list(range(10))


def test_a_callback_may_submit_and_wait(client: Client) -> None:
    results: list[int] = []
    done = threading.Event()

    def follow(future: Any) -> None:
        results.append(client.submit(square, future.result()).result(SECONDS))
        done.set()

    client.submit(square, 3).add_done_callback(follow)
    assert done.wait(SECONDS) and results == [81]


# -------------------------------------------------------------------------------------------------------------- threads


def test_several_threads_submit_at_once(client: Client) -> None:
    def run(number: int) -> list[int]:
        futures = [client.submit(square, number * 1000 + i) for i in range(1000)]
        return [future.result(SECONDS) for future in futures]

    for number, results in enumerate(in_threads(6, run, 60)):
        assert results == [(number * 1000 + i) ** 2 for i in range(1000)]


def test_threads_map_and_submit_at_once(client: Client) -> None:
    def run(number: int) -> Any:
        if number % 2:
            return client.map(square, [(i,) for i in range(3000)])
        return [client.submit(operator.neg, i).result(SECONDS) for i in range(100)]

    results = in_threads(4, run, 60)
    assert results[0] == results[2] == [-i for i in range(100)]
    assert results[1] == results[3] == [i * i for i in range(3000)]


def test_two_clients(combo: SchedulerClusterCombo, client: Client) -> None:
    with Client(combo.get_address()) as other:
        pairs = ((client, 0), (other, 7))
        futures = [each.submit(operator.add, i, offset) for i in range(200) for each, offset in pairs]
        results = [future.result(SECONDS) for future in futures]
    assert results == [i + offset for i in range(200) for offset in (0, 7)]
    assert client.submit(square, 2).result(SECONDS) == 4


# -------------------------------------------------------------------------------------------------------- disconnecting


def test_disconnect(combo: SchedulerClusterCombo) -> None:
    client = Client(combo.get_address())
    done = client.submit(square, 3)
    assert done.result(SECONDS) == 9
    pending = client.submit(time.sleep, 0.5)
    client.disconnect()
    client.disconnect()
    assert pending.cancelled() and done.result() == 9
    for use in (lambda: client.submit(square, 1), lambda: client.map(square, [(1,)])):
        with pytest.raises(ClientClosedError, match="disconnected"):
            use()
    assert combo.get_address() in repr(client)


def test_callbacks_have_run_when_disconnect_returns(combo: SchedulerClusterCombo) -> None:
    called: list[str] = []
    with Client(combo.get_address()) as client:
        ended, cancelled = client.submit(square, 3), client.submit(time.sleep, 0.5)
        ended.add_done_callback(lambda _: called.append("ended"))
        ended.result(SECONDS)
        cancelled.add_done_callback(lambda _: (time.sleep(0.1), called.append("cancelled")))  # type: ignore[func-returns-value]
    assert called == ["ended", "cancelled"]


def test_disconnect_in_a_callback(combo: SchedulerClusterCombo) -> None:
    client = Client(combo.get_address())
    left = threading.Event()
    client.submit(square, 3).add_done_callback(lambda _: (client.disconnect(), left.set()))  # type: ignore[func-returns-value]
    assert left.wait(SECONDS)


def test_disconnect_while_threads_submit_cancel_and_wait(combo: SchedulerClusterCombo) -> None:
    def one_round() -> None:
        client = Client(combo.get_address())

        def run(number: int) -> None:
            try:
                if number == 0:
                    client.submit(square, 1).result(SECONDS)
                    client.disconnect()
                    return
                while True:
                    futures = [client.submit(square, i) for i in range(20)]
                    futures[-1].cancel()
                    concurrent.futures.wait(futures, timeout=SECONDS)
                    client.map(square, [(1,)] * 10)
            except (ClientClosedError, concurrent.futures.CancelledError):
                return

        in_threads(5, run)

    for _ in range(15):
        one_round()


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="counts descriptors in /proc")
def test_clients_leave_no_descriptors_behind(combo: SchedulerClusterCombo) -> None:
    def use() -> None:
        with Client(combo.get_address()) as client:
            client.submit(square, 1).result(SECONDS)

    use()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        use()
    wait_until(lambda: gc.collect() >= 0 and len(os.listdir("/proc/self/fd")) <= before + 2, what="descriptors close")


class NeedsTwo(Exception):
    """An exception whose `args` do not fit its `__init__`, so that pickle alone cannot restore it."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")
        self.first = first


def test_an_exception_with_its_own_init_is_returned(client: Client) -> None:
    class Local(NeedsTwo):
        pass

    def fail() -> None:
        raise Local("a", "b")

    with pytest.raises(Exception, match="a b") as caught:
        client.submit(fail).result(30)
    assert type(caught.value).__name__ == "Local"
    assert caught.value.first == "a"  # type: ignore[attr-defined]
    assert 'raise Local("a", "b")' in str(caught.value.__cause__)
