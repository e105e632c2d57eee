"""The object files of a real host agent: how long they exist, and when they are removed."""

from __future__ import annotations

import os
import resource
import stat
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from tests.integration.agent_process import IDLE, SHUTDOWN_SECONDS, Cluster, FakeScheduler, all_of, is_gone, started
from tests.waiting import wait_until

from scaler_client.commands.object_directory import remove_stale
from scaler_client.commands.object_files import DISK_LINK, STORAGE_FILES, write_object
from scaler_worker.objects.files import ObjectLostError, read_object
from scaler_worker.objects.host_storage import HostStorage

pytestmark = pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no /dev/shm here")

CLIENT = 1 << 40
FRAMES = [b"pickle", b"x" * 1_000_000]
DEAF = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nwords[4] = 1\ntime.sleep(600)"


def send(scheduler: FakeScheduler, number: int, *frames: bytes) -> None:
    scheduler.say("object", *(frames or FRAMES), client=CLIENT, id=number, name="x")


def joined(scheduler: FakeScheduler, cluster: Cluster, workers: int = 2) -> Path:
    """Welcome the agent, wait for its workers, and send an object. Returns the directory of its objects."""
    hello = scheduler.welcome()
    scheduler.receive("heartbeat", all_of(workers))
    cluster.workers()
    send(scheduler, 7)
    directory = Path(f"/dev/shm/scaler-{hello['incarnation']:016x}")
    wait_until(lambda: read_object(str(directory), (CLIENT, 7)) is not None)
    return directory


def files(directory: Path) -> list[int]:
    """The ids of the objects in the directory, as files or as links to a reason."""
    ids = [name.partition("-")[2] for name in os.listdir(directory) if name not in STORAGE_FILES]
    return sorted(int(number, 16) for number in ids if not number.endswith(".part"))


def test_an_object_is_a_file_until_it_is_forgotten(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address, does=f"print(settings.objects, flush=True)\n{IDLE}") as cluster:
        directory = joined(scheduler, cluster)
        assert cluster.log().count(str(directory)) == 2, "the workers get the directory"
        send(scheduler, 8, b"one frame")
        wait_until(lambda: files(directory) == [7, 8])
        frames = read_object(str(directory), (CLIENT, 7))
        assert frames is not None and list(map(bytes, frames)) == FRAMES
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir() if path.name != DISK_LINK} == {0o600}
        scheduler.say("forgetObjects", clients=[CLIENT], ids=[7, 99])
        wait_until(lambda: files(directory) == [8])
        cluster.process.terminate()
        assert cluster.wait_for_exit(SHUTDOWN_SECONDS) == 0
        assert not directory.exists()


def test_a_new_scheduler_makes_all_files_removed(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address) as cluster:
        directory = joined(scheduler, cluster)
        scheduler.say("helloWanted")
        scheduler.welcome()
        send(scheduler, 8)
        wait_until(lambda: files(directory) == [7, 8])
        scheduler.say("helloWanted")
        scheduler.welcome(incarnation=6000)
        wait_until(lambda: files(directory) == [])
        send(scheduler, 7)
        wait_until(lambda: files(directory) == [7])


@pytest.mark.parametrize("who", ["agent", "fork_server", "agent and workers"])
def test_no_file_is_left_after_a_kill(scheduler: FakeScheduler, log: Path, who: str) -> None:
    with started(log, scheduler.address) as cluster:
        directory = joined(scheduler, cluster)
        workers = list(cluster.workers().values())
        if who == "fork_server":
            cluster.fork_server().kill()
            scheduler.receive("goodbye")
        else:
            cluster.process.kill()
            for worker in workers if who == "agent and workers" else []:
                with suppress(psutil.NoSuchProcess):  # they may have ended already, because the agent has ended
                    worker.kill()
        cluster.wait_for_exit()
        assert not directory.exists()


HOLDS_THE_LOCK = """
import os, signal
from scaler_worker.objects.host_storage import HostStorage
words[4] = 1
if settings.name.endswith("-0"):
    with HostStorage(settings.objects)._locked():
        print("holds the lock", os.getpid(), flush=True)
        signal.pause()
signal.pause()
"""


def test_an_agent_never_waits_for_a_worker_that_holds_the_lock(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address, does=HOLDS_THE_LOCK) as cluster:
        hello = scheduler.welcome()
        wait_until(lambda: "holds the lock" in cluster.log())
        scheduler.receive("heartbeat", all_of(2))
        directory = Path(f"/dev/shm/scaler-{hello['incarnation']:016x}")
        for number in (7, 8):
            send(scheduler, number)
        scheduler.say("forgetObjects", clients=[CLIENT], ids=[8])
        workers = cluster.workers()
        first = workers.pop(int(cluster.log().split("holds the lock")[1].split()[0]))
        next(iter(workers.values())).kill()  # what it has left unfinished is looked for
        scheduler.receive("workerDied")
        scheduler.receive("heartbeat", all_of(2))
        sequence = scheduler.receive("heartbeat")["sequence"]
        scheduler.receive("heartbeat", lambda beat: bool(beat.sequence > sequence))
        assert files(directory) == []
        first.kill()
        wait_until(lambda: files(directory) == [7])


def test_workers_that_outlive_the_agent_keep_their_mappings(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address, does=DEAF) as cluster:
        directory = joined(scheduler, cluster)
        workers = list(cluster.workers().values())
        cluster.process.kill()
        cluster.process.wait()
        remove_stale()  # as another agent does at its start
        assert files(directory) == [7]
        wait_until(lambda: not directory.exists())
        assert all(map(is_gone, workers)), "who still lives may still look for a file"


def test_the_next_cluster_removes_files_of_a_killed_one(scheduler: FakeScheduler, log: Path, tmp_path: Path) -> None:
    with started(log, scheduler.address) as cluster:
        directory = joined(scheduler, cluster)
        fork_server = cluster.fork_server()
        fork_server.suspend()
        cluster.process.kill()
        fork_server.kill()
        cluster.wait_for_exit()
        with suppress(FileNotFoundError):  # a cluster of another test may have started meanwhile, and removed them
            assert files(directory) == [7]
        with started(tmp_path / "second", scheduler.address) as second:
            other = joined(scheduler, second)
            assert not directory.exists() and files(other) == [7]


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="other processes' limits can't be set here")
def test_without_space_workers_find_the_reason(scheduler: FakeScheduler, log: Path) -> None:
    """A limit on the size of files takes the place of a full /dev/shm."""
    with started(log, scheduler.address) as cluster:
        directory = joined(scheduler, cluster)
        resource.prlimit(cluster.process.pid, resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
        for number in (8, 9):
            send(scheduler, number, b"pickle", b"x" * 3_000_000)
        send(scheduler, 10)
        wait_until(lambda: files(directory) == [7, 8, 9, 10])
        for number in (8, 9):
            with pytest.raises(
                ObjectLostError, match=r"^3,000,128 bytes fit neither into memory nor onto disk: --object-memory"
            ):
                read_object(str(directory), (CLIENT, number))
        assert read_object(str(directory), (CLIENT, 10)) is not None
        assert cluster.log().count("can't be shared among the workers") == 1
        cluster.process.terminate()
        assert cluster.wait_for_exit(SHUTDOWN_SECONDS) == 0
        assert not directory.exists()


def fetch(scheduler: FakeScheduler, *numbers: int) -> dict[int, list[bytes] | None]:
    """Ask the agent for these objects. Returns the frames of each, None for a missing object."""
    scheduler.say("fetchObjects", clients=[CLIENT], ids=list(numbers))
    found: dict[int, list[bytes] | None] = {}
    while len(found) < len(numbers):
        kind, fields, frames = scheduler.receive_any("object", "forgetObjects")
        if kind == "object":
            assert fields["client"] == CLIENT
            found[fields["id"]] = frames
        else:
            found.update(dict.fromkeys(fields["ids"]))
    return found


def test_files_of_workers_are_sent_and_removed(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address) as cluster:
        directory = joined(scheduler, cluster)
        for number in range(20, 40):
            write_object(str(directory), (CLIENT, number), [b"%d" % number, b"y" * 1_000_000])
        found = fetch(scheduler, 7, 99, *range(20, 40))
        assert found == {
            7: FRAMES,
            99: None,
            **{number: [b"%d" % number, b"y" * 1_000_000] for number in range(20, 40)},
        }
        scheduler.say("forgetObjects", clients=[CLIENT], ids=list(range(21, 40)))
        wait_until(lambda: files(directory) == [7, 20])
        scheduler.say("helloWanted")
        scheduler.welcome(incarnation=6000)
        # A worker may have written the other file for the new scheduler, which says whether it needs it (decision 93).
        wait_until(lambda: files(directory) == [20])
        scheduler.say("forgetObjects", clients=[CLIENT], ids=[20])
        wait_until(lambda: files(directory) == [])


def test_unfinished_files_of_a_killed_worker_are_removed(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address) as cluster:
        directory = joined(scheduler, cluster)
        one, other = cluster.workers().values()
        for worker in (one, other):
            (directory / f"{CLIENT:016x}-{50:016x}.{worker.pid}.part").write_bytes(b"half of it")
        one.kill()
        wait_until(lambda: len(set(os.listdir(directory)).difference(STORAGE_FILES)) == 2)
        assert f"{CLIENT:016x}-{50:016x}.{other.pid}.part" in os.listdir(directory)


def test_objects_beyond_the_limit_are_files_on_disk(scheduler: FakeScheduler, log: Path, tmp_path: Path) -> None:
    options = ["--object-memory", "3M", "--spill-directory", str(tmp_path)]
    with started(log, scheduler.address, *options) as cluster:
        directory = joined(scheduler, cluster)
        send(scheduler, 8, b"pickle", b"y" * 4_000_000)
        wait_until(lambda: files(directory) == [7, 8])
        assert HostStorage(str(directory)).disk_path((CLIENT, 8)).startswith(str(directory))
        assert fetch(scheduler, 7, 8) == {7: FRAMES, 8: [b"pickle", b"y" * 4_000_000]}
        scheduler.say("forgetObjects", clients=[CLIENT], ids=[8])
        (on_disk,) = tmp_path.glob("scaler-*")
        wait_until(lambda: os.listdir(on_disk) == [])
        send(scheduler, 9, b"pickle", b"y" * 4_000_000)
        scheduler.say("forgetObjects", clients=[CLIENT], ids=[9])  # while it is written
        send(scheduler, 10)
        wait_until(lambda: files(directory) == [7, 10])
        wait_until(lambda: os.listdir(on_disk) == [])
        cluster.process.terminate()
        assert cluster.wait_for_exit(SHUTDOWN_SECONDS) == 0
        assert not on_disk.exists()
