"""A real worker process for tests, and the tasks that it runs."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import cloudpickle
from tests.worker.fake_scheduler import FakeScheduler

from scaler_client.nested import task_host
from scaler_worker.fork_server.worker_settings import WorkerSettings

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the worker can't import the tests


# ---------------------------------------------------------------------------------------------------- what workers run


def square(x: int) -> int:
    return x * x


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def spin(seconds: float) -> int:
    """Run Python code for this long."""
    end = time.perf_counter() + seconds
    rounds = 0
    while time.perf_counter() < end:
        rounds += 1
    return rounds


def outlast(seconds: float) -> str:
    """Ignore the first stop."""
    try:
        time.sleep(seconds)
    except task_host.TaskStoppedError:
        return "stopped, and went on"
    return "never stopped"


SLOW_MODULE = """
import sys, time
if hasattr(sys, "slow_module_began"):
    raise ImportError("cannot load module more than once per process")
sys.slow_module_began = True
end = time.perf_counter() + SECONDS
while time.perf_counter() < end:
    pass
VALUE = 17
"""
"""Its import is slow, and works only once in a process, as with some C extensions."""


def write_slow_module(folder: pathlib.Path, seconds: float) -> None:
    (folder / "slow_module.py").write_text(f"SECONDS = {seconds}\n{SLOW_MODULE}")


def import_slow_module(folder: str) -> int:
    if folder not in sys.path:
        sys.path.append(folder)
    import slow_module  # type: ignore[import-not-found]

    return int(slow_module.VALUE)


def import_and_spin(folder: str) -> int:
    import_slow_module(folder)
    return spin(60.0)


def import_as_if_it_could_be_stopped(folder: str) -> int:
    """Act as a task that enters an import between the check for a safe point and the exception."""
    from scaler_worker.worker import thread_interruption
    from scaler_worker.worker.safe_points import Place

    look, task = thread_interruption.place_of, threading.get_ident()

    def look_elsewhere(frames: Any) -> Place:
        return look(frames) if threading.get_ident() == task else Place.SAFE

    thread_interruption.place_of = look_elsewhere
    try:
        return import_slow_module(folder)
    finally:
        thread_interruption.place_of = look


def wait_in_threading(_: Any) -> None:
    threading.Event().wait(60.0)


def hold_lock_of_logging(seconds: float) -> None:
    """Log lines at this interval until the task is stopped. Then fail if the lock is still held."""
    handler = logging.FileHandler(os.devnull)
    logger = logging.getLogger("of a task")
    logger.propagate = False
    logger.addHandler(handler)
    try:
        while True:
            logger.error("a line")
            if seconds:
                spin(seconds)
    except task_host.TaskStoppedError:
        pass
    thread = threading.Thread(target=logger.error, args=("another one",))
    thread.start()
    thread.join(5.0)
    assert not thread.is_alive(), "the lock is held"


def latches() -> dict[Any, Any]:
    """Latches by name, shared by the tasks of this process."""
    shared: dict[Any, Any] = task_host.__dict__.setdefault("latches_of_the_test", {})
    return shared


def wait_for(name: Any) -> None:
    """Give up the slot until a task releases the latch of this name."""
    current = task_host.host.current()  # type: ignore[union-attr]
    assert current is not None
    latch = latches()[name] = threading.Lock()
    latch.acquire()
    current.suspend()
    try:
        current.wait(latch, None)
    finally:
        current.resume()


def parent(name: Any) -> str:
    wait_for(name)
    return f"{name} on"


def parent_with_an_alarm(_: Any) -> list[str]:
    class AlarmError(Exception):
        pass

    def ring(_number: int, _frame: Any) -> None:
        raise AlarmError

    signal.signal(signal.SIGALRM, ring)
    current = task_host.host.current()  # type: ignore[union-attr]
    assert current is not None
    child_runs = latches()["child runs"] = threading.Lock()
    child_runs.acquire()
    rung = []
    current.suspend()
    current.wait(child_runs, None)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        current.wait(child_runs, None)
    except AlarmError:
        rung.append("in the wait")
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        current.resume()
    except AlarmError:
        rung.append("in the return")
    return rung


def child_that_takes_long(_: Any) -> None:
    child("child runs")
    spin(0.4)


def say(word: str) -> None:
    print(word)
    print("and half", end="")


def say_while_waiting(name: Any) -> None:
    """Print while the parent waits, as a progress bar does."""
    current = task_host.host.current()  # type: ignore[union-attr]
    assert current is not None
    latch = latches()[name] = threading.Lock()
    latch.acquire()
    current.suspend()
    current.wait(latch, None)
    print(f"{name} waits")
    current.resume()
    print("goes on")


def child(name: Any) -> str:
    latches()[name].release()
    return f"{name} released"


def link_of_chain(number: int) -> int:
    """Wait for the next task of the chain, which resumes this one at its end."""
    if number < CHAIN:
        wait_for(number)
    if number:
        child(number - 1)
    return number


CHAIN = 300


def thread_of_task(_: Any) -> str:
    return "main" if threading.current_thread() is threading.main_thread() else "other"


def grow(megabytes: int) -> int:
    data = bytearray(megabytes << 20)
    spin(0.05)
    return len(data)


def fork_a_child_that_waits(_: Any) -> int:
    """Send SIGTERM. Returns the exit status."""
    is_up, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(tell, b"up")
            time.sleep(30)
        finally:
            os._exit(99)
    os.read(is_up, 2)
    os.kill(pid, signal.SIGTERM)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def fork_a_child_that(what_and_log: tuple[str, str]) -> int:
    """The exit status. Standard error goes into the file."""
    what, log = what_and_log
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), 2)
    if what == "raises":
        raise ValueError("in the child")
    if what == "exits":
        sys.exit(7)
    if what == "exits with a text":
        sys.exit("the child is over")
    return 99


def count_forks_that_survive_sigterm(times: int) -> int:
    """Fork processes and send each SIGTERM at once. Returns how many do not end by it."""
    survivors = 0
    for _ in range(times):
        pid = os.fork()
        if not pid:
            time.sleep(5)
            os._exit(0)
        os.kill(pid, signal.SIGTERM)
        survivors += not os.WIFSIGNALED(os.waitpid(pid, 0)[1])
        if survivors:
            break
    return survivors


def run_in_a_pool(numbers: list[int]) -> list[int]:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(abs, numbers)


@contextlib.contextmanager
def joined_worker(scheduler: FakeScheduler, objects: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A worker that has joined, with the functions 1 (square) and 2 (sleep). `objects`: the directory of object
    files."""
    settings = WorkerSettings(scheduler.address, "w", 77, 5, 60.0, 30.0, 1 << 40, "", "INFO", (), objects=objects)
    command = [sys.executable, "-m", "scaler_worker.worker.process", json.dumps(dataclasses.asdict(settings))]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    try:
        scheduler.welcome()
        scheduler.send_function(1, square)
        scheduler.send_function(2, sleep)
        yield process
    finally:
        process.kill()
        process.communicate()
