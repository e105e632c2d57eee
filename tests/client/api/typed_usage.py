"""The types that type checkers infer for the client. mypy checks this file in tests/run.sh; it is never run.

mypy must reject each line with an ignore comment: it reports a comment that is not needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future

from typing_extensions import assert_type

from scaler_client import AsyncClient, AsyncTaskFuture, Client, LocalCluster, SchedulerClusterCombo, TaskFuture


def square(x: int) -> int:
    return x * x


def describe(x: int, *, digits: int = 2) -> str:
    return f"{x:.{digits}f}"


class Account:
    def __init__(self, owner: str) -> None:
        self.owner = owner

    def after(self, payment: float) -> float:
        return payment


def submitted(client: Client) -> None:
    assert_type(client.submit(square, 3), TaskFuture[int])
    assert_type(client.submit(square, 3).result(), int)
    assert_type(client.submit(square, 3).exception(), BaseException | None)
    assert_type(client.submit(describe, 3, digits=1), TaskFuture[str])
    assert_type(client.submit(describe, 3, digits=1, profiling=True), TaskFuture[str])
    assert_type(client.submit(Account, "me"), TaskFuture[Account])
    assert_type(client.submit(Account("me").after, 2.0), TaskFuture[float])
    assert_type(client.submit(lambda: 3), TaskFuture[int])
    assert_type(client.options(priority=1).options(name="x"), Client)
    assert_type(client.options(priority=1).submit(square, 3), TaskFuture[int])
    client.submit(3)  # type: ignore[arg-type]
    client.options(priorities=1)  # type: ignore[call-arg]


def mapped(client: Client) -> None:
    assert_type(client.map(square, [(1,), (2,)]), list[int])
    assert_type(client.map(describe, ((i,) for i in range(3)), progress=True), list[str])
    client.map(square, [1, 2])  # type: ignore[list-item]
    client.map(square, [(1,)], [(2,)])  # type: ignore[arg-type]


def collected(client: Client) -> None:
    futures = [client.submit(square, x) for x in range(3)]
    assert_type(client.gather(futures), list[int])
    assert_type(client.as_completed(futures), Iterator[Future[int]])
    assert_type(client.wait(futures), tuple[set[Future[int]], set[Future[int]]])


def executed(client: Client) -> None:
    with client.executor() as executor:
        assert_type(executor.submit(describe, 3, digits=1), TaskFuture[str])
        assert_type(executor.map(square, [1, 2]), Iterator[int])
        executor.submit(describe, "3")  # type: ignore[arg-type]
        executor.submit(describe, 3, digit=1)  # type: ignore[call-arg]


async def awaited(client: AsyncClient) -> None:
    assert_type(client.submit(square, 3), AsyncTaskFuture[int])
    assert_type(await client.submit(square, 3), int)
    assert_type(await client.submit(describe, 3, profiling=True), str)
    assert_type(await client.map(square, [(1,)]), list[int])
    assert_type(await client.gather([client.submit(square, 3)]), list[int])
    async for future in client.as_completed([client.submit(square, 3)]):
        assert_type(await future, int)


def made() -> None:
    with LocalCluster(n_workers=2) as cluster, Client(cluster) as client:
        assert_type(cluster, LocalCluster)
        assert_type(client, Client)
    with SchedulerClusterCombo(n_workers=2) as combo:
        assert_type(combo, SchedulerClusterCombo)
        AsyncClient(combo)
    Client(2345)  # type: ignore[arg-type]
