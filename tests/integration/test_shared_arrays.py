"""A large numpy array that all workers of a host read takes its size only once, as the system counts memory."""

from __future__ import annotations

import os
import pickle
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import cloudpickle
import numpy
import pytest
from tests.integration import agent_process
from tests.waiting import wait_until
from tests.worker.fake_scheduler import CLIENT, FakeScheduler
from tests.worker.worker_process import joined_worker

from scaler_client.commands.object_directory import ObjectDirectory, make_directory
from scaler_client.commands.object_files import write_object
from scaler_client.pickling import input_lookup
from scaler_worker.fork_server.process_usage import resident_bytes
from scaler_worker.objects.files import read_object

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers can't import the tests

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="this system does not count it")

WORKERS = 4
SIZE = 200 << 20
KEPT_SMALL = SIZE // 10
"""How many bytes a process may need for itself to read the whole array."""


class Ref:
    """In a task's argument, for its first input."""

    def __reduce__(self) -> Any:
        return input_lookup.load_input, (0,)


def look_at(array: Any) -> tuple[int, bool, bool, int]:
    return int(array.sum()), array.flags.writeable, array.flags.aligned, array.ctypes.data % 64


def memory_of(pid: int, path: str) -> tuple[int, int]:
    """Resident bytes of a process that are mapped from files below a path, and its share of them."""
    resident = share = 0
    is_below = False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            is_below = path in line
        elif is_below and line.startswith("Rss:"):
            resident += int(line.split()[1]) << 10
        elif is_below and line.startswith("Pss:"):
            share += int(line.split()[1]) << 10
    return resident, share


def status_of(pid: int, field: str) -> int:
    """Bytes."""
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(f"{field}:")]
    return int(line.split()[1]) << 10


@pytest.fixture
def directory() -> Iterator[ObjectDirectory]:
    directory = make_directory(os.getpid())  # other tests run beside this one
    yield directory
    directory.remove()


def test_workers_share_an_array(directory: ObjectDirectory) -> None:
    array = numpy.arange(SIZE // 8, dtype=numpy.int64)
    buffers: list[pickle.PickleBuffer] = []
    first = pickle.dumps(array, 5, buffer_callback=buffers.append)
    with ExitStack() as stack:
        schedulers, processes = [], []
        for _ in range(WORKERS):
            scheduler = FakeScheduler()
            stack.callback(scheduler.close)
            processes.append(stack.enter_context(joined_worker(scheduler, directory.path)))
            schedulers.append(scheduler)
            scheduler.send_function(3, look_at)
            scheduler.dispatch(3, (10, Ref()), inputs=[7], inputCounts=[1], inputSources=[1])
            scheduler.await_start(10)
        # All wait for the file by now.
        before = [status_of(process.pid, "RssAnon") for process in processes]
        write_object(directory.path, (CLIENT, 7), [first, *buffers])
        expected = (int(array.sum()), False, True, 0)
        for scheduler in schedulers:
            assert scheduler.answers(1) == {10: (0, expected)}
            scheduler.dispatch(3, (11, Ref()), inputs=[7], inputCounts=[1], inputSources=[1])
            assert scheduler.answers(1) == {11: (0, expected)}
        memory = [memory_of(process.pid, directory.path) for process in processes]
        assert all(SIZE <= resident < SIZE + KEPT_SMALL for resident, _ in memory), "each has mapped all of it, once"
        assert sum(share for _, share in memory) < SIZE + KEPT_SMALL, "together they have it once"
        for process, anonymous in zip(processes, before):
            assert status_of(process.pid, "RssAnon") - anonymous < KEPT_SMALL, "no worker has copied it"
        for scheduler in schedulers:
            scheduler.forget_objects(7)
        for process in processes:
            wait_until(lambda process=process: memory_of(process.pid, directory.path) == (0, 0))


def test_the_agent_has_an_object_once_while_it_writes_and_not_after_that(tmp_path: Path) -> None:
    scheduler = agent_process.FakeScheduler()
    try:
        with agent_process.started(tmp_path / "log", scheduler.address) as cluster:
            hello = scheduler.welcome()
            scheduler.receive("heartbeat", agent_process.all_of(2))
            before = status_of(cluster.process.pid, "RssAnon")
            scheduler.say("object", b"pickle", bytes(SIZE), client=CLIENT, id=7, name="x")
            directory = f"/dev/shm/scaler-{hello['incarnation']:016x}"
            wait_until(lambda: read_object(directory, (CLIENT, 7)) is not None)
            wait_until(lambda: status_of(cluster.process.pid, "RssAnon") - before < KEPT_SMALL)
            assert status_of(cluster.process.pid, "VmHWM") - status_of(cluster.process.pid, "VmRSS") < SIZE + KEPT_SMALL
    finally:
        scheduler.close()


def test_a_memory_limit_does_not_count_shared_memory(directory: ObjectDirectory) -> None:
    write_object(directory.path, (CLIENT, 7), [bytes(SIZE)])
    frames = read_object(directory.path, (CLIENT, 7))
    assert frames is not None
    own = resident_bytes(os.getpid())
    assert numpy.frombuffer(frames[0], dtype=numpy.uint8).sum() == 0
    assert abs(resident_bytes(os.getpid()) - own - SIZE) < KEPT_SMALL
    assert abs(resident_bytes(os.getpid(), SIZE) - own) < KEPT_SMALL
    assert abs(resident_bytes(os.getpid(), SIZE // 2) - own - SIZE // 2) < KEPT_SMALL
