"""AsyncClient, with a fake scheduler that runs tasks in this process."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from tests.client.gates import PATIENCE_SECONDS, gates, wait_at_gate
from tests.client.running_scheduler import RunningScheduler
from tests.waiting import POLL_SECONDS
from tqdm.asyncio import tqdm

from scaler_client import AsyncClient, AsyncTaskFuture, ClientClosedError, TaskFuture

Body = Callable[[AsyncClient], Coroutine[Any, Any, Any]]


def divide_by(x: int) -> float:
    return 10 / x


def stop_iteration() -> None:
    raise StopIteration("no more")


def keywords(**given: Any) -> dict[str, Any]:
    return given


async def wait_until_async(condition: Callable[[], object]) -> None:
    """Wait until a condition holds, without blocking the loop."""

    async def look() -> None:
        while not condition():
            await asyncio.sleep(POLL_SECONDS)

    await asyncio.wait_for(look(), PATIENCE_SECONDS)


async def raises_in_time(awaitable: Awaitable[Any], error: type[BaseException]) -> bool:
    """Return whether awaiting it raises this error in time."""
    try:
        await asyncio.wait_for(awaitable, PATIENCE_SECONDS)
    except error:
        return True
    return False


def run(scheduler: RunningScheduler, body: Body, **arguments: Any) -> Any:
    async def main() -> Any:
        async with AsyncClient(scheduler.address, timeout_seconds=20, **arguments) as client:
            try:
                return await body(client)
            finally:
                gates.close_down()

    return asyncio.run(main())


def test_await_a_task(running: RunningScheduler) -> None:
    async def body(client: AsyncClient) -> Any:
        future = client.submit(pow, 2, 5)
        assert isinstance(future, AsyncTaskFuture) and asyncio.isfuture(future)
        assert "pow" in repr(future) and "pow" in future._repr_html_()
        return await future, await future, await client.submit(keywords, fn=1, self=2)

    assert run(running, body) == (32, 32, {"fn": 1, "self": 2})


def test_many_tasks_at_once(running: RunningScheduler) -> None:
    async def body(client: AsyncClient) -> list[int]:
        return list(await asyncio.gather(*(client.submit(abs, -i) for i in range(500))))

    assert run(running, body) == list(range(500))


def test_exceptions(running: RunningScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        with pytest.raises(ZeroDivisionError) as raised:
            await client.submit(divide_by, 0)
        assert "remote frames" in str(raised.value.__cause__)
        with pytest.raises(RuntimeError, match="the task raised StopIteration") as stopped:
            await client.submit(stop_iteration)
        assert isinstance(stopped.value.__cause__, StopIteration)

    run(running, body)


def test_map(running: RunningScheduler, capsys: pytest.CaptureFixture[str]) -> None:
    async def body(client: AsyncClient) -> None:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(others())
        assert await client.map(pow, ((i, 2) for i in range(3000))) == [i * i for i in range(3000)]
        assert turns > 3, "the loop goes on"
        other.cancel()
        assert await client.map(abs, [(-1,)], progress=True) == [1]
        with pytest.raises(ZeroDivisionError):
            await client.map(divide_by, [(1,), (0,)])
        with pytest.raises(TypeError, match="item 1 is int"):
            await client.map(abs, [(1,), 2])  # type: ignore[list-item]

    run(running, body)
    assert "1/1" in capsys.readouterr().err


def test_gather(running: RunningScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        slow = client.submit(wait_at_gate, "slow")
        with pytest.raises(ZeroDivisionError):
            await client.gather([slow, client.submit(divide_by, 0)])
        gates.open("slow")
        assert await client.gather([slow, client.submit(abs, -1)]) == ["slow", 1]
        assert await client.gather([]) == []

    run(running, body)


def test_as_completed(running: RunningScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        slow, quick = client.submit(wait_at_gate, "slow"), client.submit(abs, -1)
        seen = []
        async for future in client.as_completed([slow, quick, slow]):
            seen.append(future)
            assert future.done()
            gates.open("slow")
        assert seen == [quick, slow] and await slow == "slow"
        assert [future async for future in client.as_completed(seen)] == seen
        shown = io.StringIO()
        futures = [client.submit(abs, i) for i in range(5)]
        total = [await future async for future in tqdm(client.as_completed(futures), total=5, file=shown)]
        assert sorted(total) == [0, 1, 2, 3, 4] and "5/5" in shown.getvalue()

    run(running, body)


def test_options_of_a_view_apply(running: RunningScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        view = client.options(priority=3).options(name="mine")
        assert type(view) is AsyncClient and view.address == client.address
        assert await view.submit(abs, -1) == 1
        await client.submit(abs, -1)
        with pytest.raises(ValueError, match="retries"):
            client.options(retries=-1)

    run(running, body)
    assert [(each.get("priority"), each.get("name")) for each in running.options] == [(3, "mine"), (None, None)]


# -------------------------------------------------------------------------------------------------------- cancelling


@pytest.mark.parametrize("way", ["submit", "map", "get", "imap"])
def test_cancelling_the_awaiting_coroutine_stops_the_task(running: RunningScheduler, way: str) -> None:
    async def body(client: AsyncClient) -> None:
        async def waits() -> None:
            if way == "submit":
                await client.submit(wait_at_gate, "never")
            elif way == "map":
                await client.map(wait_at_gate, [("never",)])
            elif way == "get":
                await client.get({"node": (wait_at_gate, "never")}, ["node"])
            else:
                async for _ in client.imap(wait_at_gate, [("never",)]):
                    pass

        task = asyncio.create_task(waits())
        await wait_until_async(lambda: gates.passed)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await wait_until_async(lambda: not running.open_tasks)

    run(running, body)


def test_a_cancelled_future_says_why(running: RunningScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        for given, text in ((None, r"^task wait_at_gate.* was cancelled$"), ("no need", "^no need$")):
            future = client.submit(wait_at_gate, "never")
            assert future.cancel(given)
            with pytest.raises(asyncio.CancelledError, match=text):
                await future

    run(running, body)


def test_a_waiting_task_that_is_cancelled_never_runs(running: RunningScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        blocking = [client.submit(wait_at_gate, key) for key in "ab"]
        waiting = client.submit(wait_at_gate, "c")
        await wait_until_async(lambda: len(running.names) == 3)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(waiting, 0.05)
        assert waiting.cancelled() and not waiting.cancel()
        await wait_until_async(lambda: running.open_tasks == 2)
        gates.open(*"abc")
        assert await client.gather(blocking) == ["a", "b"]
        assert sorted(gates.passed) == ["a", "b"]

    run(running, body)


@pytest.mark.parametrize("way", ["map", "gather"])
def test_cancelling_a_coroutine_that_waits_for_many_futures(running: RunningScheduler, way: str) -> None:
    async def body(client: AsyncClient) -> None:
        if way == "map":
            waits = asyncio.ensure_future(client.map(wait_at_gate, [(i,) for i in range(10)]))
        else:
            waits = asyncio.ensure_future(client.gather([client.submit(wait_at_gate, i) for i in range(10)]))
        await wait_until_async(lambda: len(gates.passed) == 2 and len(running.names) == 10)
        waits.cancel()
        assert await raises_in_time(waits, asyncio.CancelledError)
        await wait_until_async(lambda: not running.waiting_tasks)
        gates.open(*range(10))
        assert await client.submit(abs, -1) == 1
        assert len(gates.passed) == 2

    run(running, body)


def test_clear(running: RunningScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        blocking = [client.submit(wait_at_gate, key) for key in "ab"]
        waiting = [client.submit(wait_at_gate, "never") for _ in range(5)]
        await wait_until_async(lambda: len(gates.passed) == 2)
        await client.clear()
        await wait_until_async(lambda: all(future.cancelled() for future in waiting))
        gates.open("a", "b")
        assert await client.gather(blocking) == ["a", "b"]

    run(running, body)


# ------------------------------------------------------------------------------------------- connecting and leaving


def test_connecting_does_not_block_the_loop() -> None:
    async def main() -> None:
        connecting = asyncio.ensure_future(AsyncClient("tcp://127.0.0.1:1", timeout_seconds=0.3).connect())
        turns = 0
        while not connecting.done():
            turns += 1
            await asyncio.sleep(0.01)
        assert turns > 3
        with pytest.raises(ConnectionError, match="no scheduler answers at tcp://127.0.0.1:1"):
            await connecting

    asyncio.run(main())


def test_a_cancelled_connect_leaves_no_connection(running: RunningScheduler) -> None:
    async def main() -> None:
        connecting = asyncio.ensure_future(AsyncClient(running.address).connect())
        await asyncio.sleep(0)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await wait_until_async(
            lambda: not [thread for thread in threading.enumerate() if thread.name.startswith("scaler-client")]
        )

    asyncio.run(main())
    assert len(running.hellos) == 1


def test_disconnect_cancels_open_tasks(running: RunningScheduler) -> None:
    async def main() -> None:
        client = AsyncClient(running.address)
        await client.connect()
        with pytest.raises(RuntimeError, match="connected already"):
            await client.connect()
        future = client.submit(wait_at_gate, "never")
        await client.disconnect()
        await client.disconnect()
        assert await raises_in_time(future, asyncio.CancelledError)
        with pytest.raises(ClientClosedError, match="disconnected"):
            client.submit(abs, 1)
        async with client:
            assert await client.submit(abs, -1) == 1

    asyncio.run(main())


def test_a_closed_loop_is_not_called(running: RunningScheduler) -> None:
    async def leave(client: AsyncClient) -> TaskFuture[Any]:
        await client.connect()
        return client.submit(wait_at_gate, "slow")._task

    client = AsyncClient(running.address)
    task = asyncio.run(leave(client))
    gates.open("slow")
    assert task.result(PATIENCE_SECONDS) == "slow"
    asyncio.run(client.disconnect())


def test_a_client_that_is_not_connected_raises(running: RunningScheduler) -> None:
    client = AsyncClient(running.address)
    uses: list[Callable[[], object]] = [lambda: client.submit(abs, 1), client.options, lambda: client.address]
    for use in uses:
        with pytest.raises(RuntimeError, match="not connected: use it in 'async with'"):
            use()
    assert "not connected" in repr(client) and "not connected" in client._repr_html_()


def test_bad_input(running: RunningScheduler) -> None:
    for arguments in ({"address": 3}, {"profiling": 1}, {"timeout_seconds": "1"}, {"serializer": object()}):
        with pytest.raises(TypeError, match=next(iter(arguments))):
            AsyncClient(**arguments)

    async def body(client: AsyncClient) -> None:
        for wrong in (3, [TaskFuture]):
            with pytest.raises(TypeError, match="future"):
                client.as_completed(wrong)  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="future"):
                await client.gather(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="not callable"):
            client.submit(3)  # type: ignore[arg-type]

    run(running, body)


def test_profiling(running: RunningScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        future = client.submit(abs, -1)
        with pytest.raises(ValueError, match="^the task is not done"):
            future.profiling_info()
        await future
        with pytest.raises(ValueError, match="submit it with profiling=True"):
            future.profiling_info()
        await client.submit(abs, -1, profiling=True)

    run(running, body)
    assert [each.get("profiling") for each in running.options] == [None, True]
