"""scaler_autoscaler with real hosts: processes of this machine, an operator's commands, OpenSSH servers."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from tests.integration.commands import Command, SchedulerCommand, is_alive, key_command, monitor, run_once, scheduler
from tests.integration.ssh_server import needs_sshd, ssh_hosts
from tests.waiting import wait_until

from scaler_client import Client, LocalCluster
from scaler_client.protocol.snapshots import PoolState, Snapshot
from scaler_worker.autoscaler.local import find_hosts

SECONDS = 60.0
LOCAL = "name=here provider=local workers=1 boot_seconds=20 retire_seconds=60"
LEASE = ("--worker-timeout-seconds", "10")
"""So long do tasks of a killed host wait."""

AUTOSCALER = [sys.executable, "-m", "scaler_worker.autoscaler"]


class Hosts:
    """Ends the local hosts of a pool that a test leaves."""

    def __init__(self, address: str) -> None:
        self._address = address

    def there(self, pool: str = "here") -> dict[str, psutil.Process]:
        return find_hosts(pool, self._address)

    def end(self, *pools: str) -> None:
        for pool in pools:
            for process in self.there(pool).values():
                for each in [process, *process.children(recursive=True)]:
                    with suppress(psutil.NoSuchProcess):
                        each.kill()


@contextmanager
def autoscaler(folder: Path, there: SchedulerCommand, *options: str, log: str = "autoscaler.log") -> Iterator[Command]:
    timing = ("--target-seconds", "2", "--idle-seconds", "2")
    command = Command([*AUTOSCALER, there.address, "--monitor-address", there.monitor_address, *timing, *options],
                      folder / log)  # fmt: skip
    try:
        yield command
    finally:
        command.end()
        Hosts(there.address).end("here", "commands", "gpu")


def mark(folder: str, number: int, seconds: float) -> int:
    """A task that leaves a line for each of its runs."""
    with open(os.path.join(folder, "runs"), "a") as file:
        file.write(f"{number}\n")
    time.sleep(seconds)
    return number


def wait_for_file(path: str) -> None:
    while not os.path.exists(path):
        time.sleep(0.01)


def wait_for_snapshot(address: str, condition: Callable[[Snapshot], object], what: str) -> Snapshot:
    found: list[Snapshot] = []
    with monitor(address) as subscriber:

        def is_there() -> bool:
            found.append(subscriber.next())
            return bool(condition(found[-1]))

        wait_until(is_there, SECONDS, what)
    return found[-1]


def pool_of(snapshot: Snapshot) -> PoolState:
    """The only pool; one without hosts until the autoscaler has reported it."""
    (pool,) = snapshot.pools or [PoolState("", 0, 0, 0, 0)]
    return pool


def nothing_there(snapshot: Snapshot) -> bool:
    return snapshot.agents == 0 and [(each.there, each.draining) for each in snapshot.pools] == [(0, 0)]


def nothing_there_of_pools(snapshot: Snapshot) -> bool:
    return snapshot.agents == 0 and len(snapshot.pools) == 2 and not any(p.there + p.draining for p in snapshot.pools)


def visible_gpus(seconds: float) -> str:
    time.sleep(seconds)
    return os.environ.get("CUDA_VISIBLE_DEVICES", "")


def test_burst_on_local_hosts(tmp_path: Path) -> None:
    """The pool grows from no host to four and back, and no task runs twice."""
    with scheduler(tmp_path) as there, autoscaler(tmp_path, there, "--pool", f"{LOCAL} most=4") as command:
        with Client(there.address) as client:
            futures = [client.submit(mark, str(tmp_path), number, 0.3) for number in range(60)]
            grown = wait_for_snapshot(there.monitor_address, lambda each: pool_of(each).there == 4, "four hosts")
            assert grown.agents == 4 and pool_of(grown) == PoolState("here", 4, 0, 4, 0)
            assert [future.result(SECONDS) for future in futures] == list(range(60))
            snapshot = wait_for_snapshot(there.monitor_address, nothing_there, "no host")
        runs = [int(line) for line in (tmp_path / "runs").read_text().split()]
        assert sorted(runs) == list(range(60)) and snapshot.retries == 0 and snapshot.deaths == {}
        assert (pool_of(snapshot).wanted, pool_of(snapshot).failed) == (0, 0)
        assert "start 4 hosts of pool here: 60 tasks wait" in command.log()


def test_pool_with_resources(tmp_path: Path) -> None:
    """Tasks that ask for a GPU start hosts of the pool that has GPUs, one for each, and no others."""
    gpus = "name=gpu provider=local workers=2 resources=gpu:1+license:0.5 cost=9 boot_seconds=20 retire_seconds=60"
    pools = ("--pool", f"{LOCAL} most=2", "--pool", f"{gpus} most=3")
    with scheduler(tmp_path) as there, autoscaler(tmp_path, there, *pools) as command:
        with Client(there.address) as client:
            asking = client.options(resources={"gpu": 1})
            futures = [asking.submit(visible_gpus, 0.5) for _ in range(12)]
            wait_for_snapshot(
                there.monitor_address,
                lambda each: [(pool.name, pool.there) for pool in each.pools if pool.there] == [("gpu", 3)],
                "three hosts with a GPU",
            )
            assert [future.result(SECONDS) for future in futures] == ["0"] * 12
            snapshot = wait_for_snapshot(there.monitor_address, nothing_there_of_pools, "no host")
        assert snapshot.retries == 0 and "hosts of pool here" not in command.log()


def test_killed_host_is_replaced(tmp_path: Path) -> None:
    gate = str(tmp_path / "gate")
    with scheduler(tmp_path, *LEASE) as there, autoscaler(tmp_path, there, "--pool", f"{LOCAL} most=2"):
        with Client(there.address) as client:
            futures = [client.options(retries=3).submit(wait_for_file, gate) for _ in range(4)]
            wait_for_snapshot(there.monitor_address, lambda each: each.agents == 2, "two hosts")
            hosts = Hosts(there.address).there()
            victim = next(iter(hosts))
            for each in [*hosts[victim].children(recursive=True), hosts[victim]]:
                each.kill()
            wait_until(lambda: len(set(Hosts(there.address).there()) - set(hosts)) == 1, SECONDS, "another host")
            Path(gate).touch()
            assert [future.result(SECONDS) for future in futures] == [None] * 4
            snapshot = wait_for_snapshot(there.monitor_address, nothing_there, "no host")
        assert pool_of(snapshot).failed == 1


def test_killed_autoscaler_finds_its_hosts(tmp_path: Path) -> None:
    options = ("--pool", f"{LOCAL} most=3")
    with scheduler(tmp_path) as there, Client(there.address) as client:
        with autoscaler(tmp_path, there, *options) as first:
            futures = [client.submit(mark, str(tmp_path), number, 0.3) for number in range(30)]
            wait_for_snapshot(there.monitor_address, lambda each: each.agents == 3, "three hosts")
            names = set(Hosts(there.address).there())
            first.process.send_signal(signal.SIGKILL)
            first.process.wait()
            with autoscaler(tmp_path, there, *options, log="second.log") as second:
                assert [future.result(SECONDS) for future in futures] == list(range(30))
                wait_for_snapshot(there.monitor_address, nothing_there, "no host")
                assert set(Hosts(there.address).there()) == set()
                log = second.log()
                assert "start " not in log and all(name in log for name in names)
    assert sorted(map(int, (tmp_path / "runs").read_text().split())) == list(range(30))


def test_dry_run_starts_nothing(tmp_path: Path) -> None:
    with scheduler(tmp_path) as there, autoscaler(tmp_path, there, "--dry-run", "--pool", f"{LOCAL} most=3") as command:
        with Client(there.address) as client:
            futures = [client.submit(pow, 2, 3) for _ in range(10)]
            command.logged(r"(would start 3 hosts of pool here: 10 tasks wait)")
            client.submit(pow, 2, 4)
            wait_for_snapshot(there.monitor_address, lambda each: each.waiting == 11, "eleven waiting tasks")
            wait_for_snapshot(there.monitor_address, lambda each: each.sequence, "the next snapshot")
            for future in futures:
                future.cancel()
        assert Hosts(there.address).there() == {}
        assert command.log().count("would start") == 1  # once, as long as the numbers are the same


def test_provider_that_hangs_stops_no_other(tmp_path: Path) -> None:
    hanging = "name=bad provider=command most=3 cost=0 start='sleep 1000' stop=true list=true"
    with scheduler(tmp_path) as there:
        options = ("--pool", hanging, "--pool", f"{LOCAL} most=1", "--call-seconds", "3")
        with autoscaler(tmp_path, there, *options) as command, Client(there.address) as client:
            futures = [client.submit(time.sleep, 0.1) for _ in range(8)]
            assert [future.result(SECONDS) for future in futures] == [None] * 8
            command.logged(r"(hosts of pool bad could not be started: sleep did not end within 3 s)")
            text = "hosts could not be started: sleep did not end within 3 s"
            wait_for_snapshot(
                there.monitor_address,
                lambda each: [(pool.name, pool.problem) for pool in each.pools] == [("bad", text), ("here", "")],
                "the problem of a pool",
            )


def test_commands_of_the_operator(tmp_path: Path) -> None:
    """Three shell commands: they run agents as local processes, and keep their ids in files."""
    folder = tmp_path / "cloud"
    folder.mkdir()
    (tmp_path / "start").write_text(
        f"cd {os.getcwd()}; for name in $SCALER_NAMES; do $SCALER_COMMAND --agent-name $name >{folder}/$name.log 2>&1 "
        f"</dev/null & echo $! >{folder}/$name; done; "
        f"echo $SCALER_POOL $SCALER_NUMBER $SCALER_WORKERS >>{folder}/started"
    )
    (tmp_path / "stop").write_text(
        f"cd {folder}; for name in $SCALER_NAMES; do kill $([ $SCALER_FORCE = 1 ] && echo -KILL) $(cat $name); done"
    )
    (tmp_path / "list").write_text(
        f"cd {folder}; for name in commands-*[!g]; do [ -e $name ] && kill -0 $(cat $name) 2>/dev/null && echo $name; "
        "done; true"
    )
    (tmp_path / "autoscaler.toml").write_text(
        f"""
        [[pool]]
        name = "commands"
        provider = "command"
        workers = 2
        most = 2
        program = ["{sys.executable}", "-m", "scaler_worker"]
        start = "sh {tmp_path}/start"
        stop = "sh {tmp_path}/stop"
        list = "sh {tmp_path}/list"
        boot_seconds = 20
        """
    )
    with scheduler(tmp_path) as there:
        options = ("--config", str(tmp_path / "autoscaler.toml"))
        with autoscaler(tmp_path, there, *options) as command, Client(there.address) as client:
            futures = [client.submit(mark, str(tmp_path), number, 0.2) for number in range(30)]
            assert [future.result(SECONDS) for future in futures] == list(range(30)), command.log()
            wait_for_snapshot(there.monitor_address, nothing_there, "no host")
    assert (folder / "started").read_text() == "commands 2 2\n"
    assert sorted(map(int, (tmp_path / "runs").read_text().split())) == list(range(30))


@needs_sshd
def test_hosts_by_ssh(tmp_path: Path) -> None:
    """Grows from none to four hosts and back under load, with a host killed and another one unreachable."""
    with ssh_hosts(tmp_path, "h0", "h1", "h2", "h3", "h4") as hosts, scheduler(tmp_path, *LEASE) as there:
        pool = (
            f"name=nodes provider=ssh hosts=h0+h1+h2+h3+h4 boot_seconds=20 retire_seconds=60 "
            f"program='{sys.executable} -m scaler_worker' options=-F+{hosts.configuration}"
        )
        hosts.by_name["h0"].end()
        with autoscaler(tmp_path, there, "--pool", pool) as command, Client(there.address) as client:
            futures = [client.options(retries=3).submit(time.sleep, 0.5) for _ in range(120)]
            wait_for_snapshot(there.monitor_address, lambda each: each.agents == 4, "four hosts")
            (pid,) = hosts.by_name["h1"].agents().values()
            for each in [*psutil.Process(pid).children(recursive=True), psutil.Process(pid)]:
                each.kill()
            assert [future.result(SECONDS) for future in futures] == [None] * 120
            wait_for_snapshot(there.monitor_address, nothing_there, "no host")
            assert "could not be started: ssh ended with status 255" in command.log()


def test_elastic_local_cluster(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with LocalCluster(n_workers=(0, 4), capabilities={"gpu": 1}) as cluster, Client(cluster) as client:
        assert cluster.n_workers == (0, 4) and ", 0 to 4 workers>" in repr(cluster)
        address = str(cluster.address)
        futures = [client.options(capabilities={"gpu": 1}).submit(mark, str(tmp_path), n, 0.2) for n in range(40)]
        assert [future.result(SECONDS) for future in futures] == list(range(40))
        left = Hosts(address).there("local")
        assert 1 <= len(left) <= 4
        wait_until(lambda: not Hosts(address).there("local"), SECONDS, "no host")
        assert client.submit(pow, 2, 10).result(SECONDS) == 1024
        left = Hosts(address).there("local")
    assert Hosts(address).there("local") == {} and not any(process.is_running() for process in left.values())
    assert sorted(map(int, (tmp_path / "runs").read_text().split())) == list(range(40))
    assert "does not exist yet" not in capfd.readouterr().err


def test_hosts_end_with_the_application(tmp_path: Path) -> None:
    """A killed application leaves neither an autoscaler nor hosts."""
    script = tmp_path / "program.py"
    script.write_text(
        "import time\n"
        "from scaler_client import Client, LocalCluster\n"
        "if __name__ == '__main__':\n"
        "    cluster = LocalCluster(n_workers=(1, 2))\n"
        "    with Client(cluster) as client:\n"
        "        client.submit(pow, 2, 3).result()\n"
        "        print('address', cluster.address, flush=True)\n"
        "        time.sleep(1000)\n"
    )
    command = Command([sys.executable, str(script)], tmp_path / "program.log")
    try:
        address = command.logged(r"address (\S+)")
        hosts = Hosts(address).there("local")
        assert hosts
        command.descendants()
        command.process.kill()
        command.process.wait()
        wait_until(lambda: not any(process.is_running() for process in hosts.values()), 20.0, "the hosts' end")
        wait_until(lambda: not any(map(is_alive, command.seen.values())), 20.0, "the end of the others")
        path = Path(address.removeprefix("ipc://"))
        assert not [found for found in path.parent.iterdir() if found.name.startswith(path.name)]
    finally:
        command.end()


def test_with_keys(tmp_path: Path) -> None:
    """The autoscaler reads with a monitor's key and reports with a worker's key, which its hosts use too."""
    keys = tmp_path / "keys"
    key_command("keygen", str(keys))
    monitor_option = ("--monitor-address", "tcp://127.0.0.1:*", "--keys", str(keys))
    with scheduler(tmp_path, *monitor_option) as there:
        options = ("--keys", str(keys), "--pool", f"{LOCAL} most=1")
        with autoscaler(tmp_path, there, *options) as command, Client(there.address, keys=str(keys)) as client:
            assert client.submit(pow, 2, 10).result(SECONDS) == 1024, command.log()
        assert "autoscaler-" in there.log()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "no pool: give --pool, or a table [[pool]] in the file"),
        (["--pool", "name=a provider=local"], "pool 'a': most is missing"),
        (["--pool", "name=a provider=cloud most=1"], "pool 'a': provider 'cloud' is not one of local, ssh, slurm"),
    ],
)
def test_wrong_options_are_one_line(arguments: list[str], text: str) -> None:
    done = run_once([*AUTOSCALER, "tcp://127.0.0.1:1", *arguments])
    assert done.returncode == 2 and done.stderr.startswith("scaler_autoscaler: ") and text in done.stderr
    assert done.stderr.count("\n") == 1
