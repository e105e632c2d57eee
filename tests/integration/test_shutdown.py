"""A client shuts down the scheduler and its clusters, if the scheduler allows it."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import cloudpickle
import pytest
from tests.integration.commands import STOP_SECONDS, Command, cluster, is_alive, monitor, scheduler
from tests.integration.host_files import directory_of, files_of
from tests.waiting import wait_until

from scaler_client import AsyncClient, Client, ClientClosedError, ProtectedSchedulerError, SchedulerLostError

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 60
REFUSAL = r"^protected: clients may not end this scheduler \(scaler_scheduler --no-protected\)$"


def until_there(path: str) -> None:
    while not os.path.exists(path):
        time.sleep(0.005)


def shut_down(client: Client) -> None:
    client.shutdown()


def shut_down_view(client: Client) -> None:
    client.options(priority=1).shutdown()


def shut_down_in_loop(client: Client) -> None:
    async def main() -> None:
        async with AsyncClient(client.address) as own:
            await own.shutdown()
            with pytest.raises(ClientClosedError):
                own.submit(abs, 1)

    asyncio.run(main())
    client.disconnect()


@pytest.mark.parametrize("way", [shut_down, shut_down_view, shut_down_in_loop])
def test_shutdown_ends_scheduler_and_clusters(tmp_path: Path, way: Callable[[Client], None]) -> None:
    second = tmp_path / "second"
    second.mkdir()
    with scheduler(tmp_path, "--no-protected") as daemon:
        with cluster(tmp_path, daemon.address, 2) as one, cluster(second, daemon.address, 1) as two:
            with monitor(daemon.monitor_address) as watch:
                wait_until(lambda: watch.next().workers == 3)  # a host that joins later would not get the order
            with Client(daemon.address) as client, Client(daemon.address, timeout_seconds=1) as other:
                lost = other.submit(until_there, str(tmp_path / "never"))
                running = client.submit(until_there, str(tmp_path / "never"))
                ref = client.send_object(bytes(1 << 20))
                assert client.submit(len, ref).result(SECONDS) == 1 << 20
                wait_until(lambda: lost.running() and running.running())
                directories = [directory_of(each.process.pid) for each in (one, two)]
                for each in (one, two):
                    each.descendants()
                way(client)
                assert running.cancelled()
                for ended in (daemon, one, two):
                    assert ended.process.wait(2 * STOP_SECONDS) == 0, ended.log()
                wait_until(lambda: not any(map(is_alive, [*one.seen.values(), *two.seen.values()])))
                assert not any(map(Path.exists, directories))
                with pytest.raises(ClientClosedError):
                    client.submit(abs, 1)
                with pytest.raises(ClientClosedError):
                    client.shutdown()
                with pytest.raises(SchedulerLostError):
                    lost.result(SECONDS)


def test_a_protected_scheduler_refuses_the_shutdown(client: Client) -> None:
    ref = client.send_object([1, 2])
    for each in (client, client.options(priority=1)):
        with pytest.raises(ProtectedSchedulerError, match=REFUSAL):
            each.shutdown()
    assert client.submit(sum, ref).result(SECONDS) == 3

    async def main() -> None:
        async with AsyncClient(client.address) as own:
            with pytest.raises(ProtectedSchedulerError, match=REFUSAL):
                await own.shutdown()
            assert await own.submit(abs, -1) == 1

    asyncio.run(main())


def test_shutdown_from_a_task(tmp_path: Path) -> None:
    def ends() -> None:
        Client().shutdown()

    with scheduler(tmp_path, "--no-protected") as daemon, cluster(tmp_path, daemon.address, 1) as host:
        with Client(daemon.address, timeout_seconds=1) as client:
            future = client.submit(ends)
            for ended in (daemon, host):
                assert ended.process.wait(2 * STOP_SECONDS) == 0, ended.log()
            assert isinstance(future.exception(SECONDS), (SchedulerLostError, type(None)))


def test_a_protected_scheduler_refuses_the_shutdown_of_a_task(client: Client) -> None:
    def ends() -> str:
        try:
            Client().shutdown()
        except ProtectedSchedulerError as error:
            return str(error)
        return ""

    assert "clients may not end" in client.submit(ends).result(SECONDS)


def test_a_disconnect_leaves_the_cluster_running(tmp_path: Path) -> None:
    """A disconnect ends only the client."""

    def objects(host: Command) -> int:
        return len(files_of(host))

    with scheduler(tmp_path, "--no-protected") as daemon, cluster(tmp_path, daemon.address, 1) as host:
        with Client(daemon.address) as client:
            ref = client.send_object(bytes(1 << 20))
            assert client.submit(len, ref).result(SECONDS) == 1 << 20
            assert objects(host) == 1
        wait_until(lambda: not objects(host))
        with Client(daemon.address) as client:
            assert client.submit(abs, -1).result(SECONDS) == 1
