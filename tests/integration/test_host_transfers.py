"""Large results go from host to host, or through the scheduler if the hosts cannot reach one another."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import cloudpickle
import numpy
import pytest
from tests.integration.commands import (
    Command,
    SchedulerCommand,
    cluster_command,
    key_command,
    monitor,
    run_once,
    scheduler,
)
from tests.integration.executions import note, notes
from tests.integration.host_files import directory_of
from tests.waiting import wait_until

from scaler_client import Client
from scaler_client.protocol.snapshots import Snapshot
from scaler_worker.objects.host_storage import HostStorage

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers can't import the tests

pytestmark = pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no /dev/shm here")

SECONDS = 60
SIZE = 20 << 20
LARGE = 200 << 20
"""The scheduler expects that a transfer takes two seconds, as long as it has not measured one."""

READERS = 20

UNREACHABLE = """
import sys
from dataclasses import replace
from scaler_worker.agent import data_server
from scaler_worker.cli import main

bind = data_server.DataServer._bind

def bind_elsewhere(self, *arguments):
    bind(self, *arguments)
    self.address = replace(self.address, address="tcp://127.0.0.1:1")

data_server.DataServer._bind = bind_elsewhere
sys.exit(main(sys.argv[1:]))
"""
"""scaler_cluster with a data address where nobody listens."""


def make() -> Any:
    return numpy.arange(SIZE // 8)


def make_large() -> Any:
    return numpy.zeros(LARGE // 8)


def first_of(log: str, number: int, array: Any) -> float:
    note(log, "reads", number)
    return float(array[0])


def stay(log: str) -> None:
    """Run until this file exists."""
    note(log, "stays")
    wait_until(lambda: os.path.exists(log + ".end"), SECONDS)


def meet(log: str, hosts: int, array: Any) -> tuple[int, int]:
    """Wait for the tasks of the other hosts."""
    note(log, "meets")
    wait_until(lambda: len(notes(log, "meets")) == hosts, SECONDS)
    return os.getpid(), int(array[-1])


@contextmanager
def hosts_of(
    folder: Path, *commands: list[str], keys: str = ""
) -> Iterator[tuple[SchedulerCommand, list[Command], Client]]:
    """A scheduler, and hosts with one worker each."""
    with ExitStack() as stack:
        daemon = stack.enter_context(scheduler(folder, *(["--keys", keys] if keys else [])))
        started = []
        for number, command in enumerate(commands):
            arguments = [*command, "-n", "1", daemon.address, "--heartbeat-interval-seconds", "0.2"]
            started.append(Command(arguments + (["--keys", keys] if keys else []), folder / f"cluster{number}.log"))
            stack.callback(started[-1].end)
        with monitor(daemon.monitor_address) as watch:
            wait_until(lambda: watch.next().workers == len(commands), SECONDS, "all workers are there")
        client = stack.enter_context(Client(daemon.address, timeout_seconds=SECONDS, keys=keys or None))
        yield daemon, started, client


def read_everywhere(folder: Path, daemon: SchedulerCommand, client: Client, hosts: int) -> Snapshot:
    """Make a large result, and read it on all hosts. Returns what the scheduler then says."""
    graph: dict[str, Any] = {"made": (make,)}
    readers = [f"reader{number}" for number in range(hosts)]
    graph.update({reader: (meet, str(folder / "log"), hosts, "made") for reader in readers})
    results = client.get(graph, readers)
    assert len({pid for pid, _ in results.values()}) == hosts
    assert {last for _, last in results.values()} == {SIZE // 8 - 1}
    with monitor(daemon.monitor_address) as watch:
        return watch.next()


def test_a_result_goes_from_host_to_host(tmp_path: Path) -> None:
    with hosts_of(tmp_path, *[cluster_command()] * 4) as (daemon, _, client):
        seen = read_everywhere(tmp_path, daemon, client, 4)
    assert seen.sent["transfer_objects"] == seen.received["transferred"] == 3
    assert not seen.sent.get("fetch_objects") and not seen.received.get("object")


def test_with_keys(tmp_path: Path) -> None:
    keys = str(tmp_path / "keys")
    key_command("keygen", keys)
    with hosts_of(tmp_path, *[cluster_command()] * 2, keys=keys) as (daemon, _, client):
        seen = read_everywhere(tmp_path, daemon, client, 2)
    assert seen.sent.get("transfer_objects") == 1 and not seen.sent.get("fetch_objects")


def test_an_unreachable_host_sends_through_the_scheduler(tmp_path: Path) -> None:
    blocked = [sys.executable, "-c", UNREACHABLE]
    with hosts_of(tmp_path, blocked, blocked) as (daemon, _, client):
        seen = read_everywhere(tmp_path, daemon, client, 2)
        assert seen.sent.get("transfer_objects") == seen.sent.get("fetch_objects") == 1
        assert daemon.log().count("go through the scheduler") == 1
        [pair] = seen.unreachable_hosts
        assert " from " in pair
        (tmp_path / "log").unlink()
        seen = read_everywhere(tmp_path, daemon, client, 2)
        assert seen.sent.get("fetch_objects") == 2
        assert daemon.log().count("go through the scheduler") <= 2, "once for each direction"


def test_without_a_data_address_all_goes_through_the_scheduler(tmp_path: Path) -> None:
    with hosts_of(tmp_path, cluster_command(), cluster_command("--data-address", "")) as (daemon, _, client):
        seen = read_everywhere(tmp_path, daemon, client, 2)
    assert seen.sent.get("fetch_objects") == 1 and not seen.sent.get("transfer_objects")


def test_short_readers_wait_for_the_host_and_long_ones_do_not(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    with hosts_of(tmp_path, *[cluster_command()] * 2) as (daemon, _, client):
        made = client.options(keep=True).submit(make_large)
        client.wait([made])
        readers = [client.submit(first_of, log, number, made) for number in range(READERS)]
        assert sum(client.gather(readers)) == 0.0
        with monitor(daemon.monitor_address) as watch:
            assert not watch.next().sent.get("transfer_objects")
        assert len({reader.pid for reader in notes(log, "reads")}) == 1
        met = client.gather([client.submit(meet, log, 2, made) for _ in range(2)])
        assert len({pid for pid, _ in met}) == 2, "the second one does not wait for the end of the first one"
        with monitor(daemon.monitor_address) as watch:
            wait_until(
                lambda: watch.next().sent.get("transfer_objects") == 1, SECONDS, "the file has gone to the other"
            )


def test_a_full_host_gets_no_reader_of_values_that_others_have(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    hosts = [
        cluster_command("--capabilities", "large"),
        cluster_command("--object-memory", "1M", "--spill-limit", "1M"),
    ]
    with hosts_of(tmp_path, *hosts) as (daemon, _, client):
        large = client.options(capabilities={"large": 1})
        made = large.options(keep=True).submit(make)
        client.wait([made])
        busy = large.submit(stay, log)
        wait_until(lambda: bool(notes(log, "stays")), SECONDS, "the first host is busy")
        reader = client.submit(first_of, log, 0, made)

        def reasons() -> str:
            question = [sys.executable, "-m", "scaler_client", "why", f"first_of#{reader.task_id}"]
            return run_once(question, SCALER_MONITOR_ADDRESS=daemon.monitor_address).stdout

        wait_until(lambda: "has no room for its inputs" in reasons(), SECONDS, "the idle host is known to be full")
        assert not notes(log, "reads")
        Path(log + ".end").touch()
        assert reader.result(SECONDS) == 0.0 and busy.result(SECONDS) is None
        assert notes(log, "reads")[0].pid == notes(log, "stays")[0].pid
        with monitor(daemon.monitor_address) as watch:
            assert not watch.next().sent.get("transfer_objects")


ROOM = 8 << 20
"""The limit of a host, in memory and on disk."""


def make_part(number: int) -> Any:
    return numpy.full(ROOM // 64, float(number))


def first_of_all(*parts: Any) -> list[float]:
    return [float(part[0]) for part in parts]


def test_a_host_stays_within_its_limits_while_its_tasks_read_more_than_fits(tmp_path: Path) -> None:
    limits = ["--object-memory", str(ROOM), "--spill-limit", str(ROOM), "--spill-directory", str(tmp_path)]
    hosts = [cluster_command("--capabilities", "large"), cluster_command("--capabilities", "small", *limits)]
    with hosts_of(tmp_path, *hosts) as (daemon, agents, client):
        large, small = (client.options(capabilities={name: 1}) for name in ("large", "small"))
        made = [large.options(keep=True).submit(make_part, number) for number in range(40)]
        storage = HostStorage(str(directory_of(agents[1].process.pid)))
        readers = {small.submit(first_of_all, *made[at : at + 3]): at for at in range(len(made) - 2)}
        most = 0
        for reader in client.as_completed(readers):
            assert reader.result() == [float(readers[reader] + each) for each in range(3)]
            usage = storage.usage()
            assert usage is not None
            assert usage.memory_bytes <= usage.memory_limit and usage.disk_bytes <= usage.disk_limit
            most = max(most, usage.memory_bytes + usage.disk_bytes)
        assert most > ROOM, "its room was used"
        kept = [small.options(keep=True).submit(make_part, number) for number in range(8)]
        assert [part[0] for part in client.gather(kept)] == [float(number) for number in range(8)]
