"""Client programs in their own processes: __main__, exits, Ctrl-C, forks and kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.commands import environment, monitor, monitor_address_of, scheduler
from tests.waiting import wait_until

from scaler_client import SchedulerClusterCombo

SECONDS = 40


@contextmanager
def program(folder: Path, address: str, text: str) -> Iterator[subprocess.Popen[str]]:
    """A Python program that begins with a connected `client`. It ends with the test."""
    path = folder / "program.py"
    path.write_text("import os, sys, threading, time\nfrom scaler_client import *\n" + textwrap.dedent(text))
    process = subprocess.Popen(
        [sys.executable, str(path), address],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def run(folder: Path, address: str, text: str, status: int = 0) -> str:
    """The output of the program. Checks its status, and that it shows no traceback unless one is expected."""
    with program(folder, address, text) as process:
        output, errors = process.communicate(timeout=SECONDS)
        assert process.returncode == status, errors
        assert status or "Traceback" not in errors, errors
        return output


@pytest.fixture(scope="module")
def address(combo: SchedulerClusterCombo) -> str:
    return combo.get_address()


def test_functions_and_classes_of_main(tmp_path: Path, address: str) -> None:
    text = """
        import dataclasses, enum, functools

        FACTOR = 3

        class Colour(enum.Enum):
            RED = 1

        @dataclasses.dataclass
        class Point:
            x: int
            def moved(self, by):
                return Point(self.x + by * FACTOR)

        class OwnError(Exception):
            pass

        def triple(x):
            return x * FACTOR

        def recursive(n):
            return 1 if n < 2 else n * recursive(n - 1)

        def fail():
            raise OwnError("mine")

        if __name__ == "__main__":
            with Client(sys.argv[1]) as client:
                assert client.submit(triple, 2).result() == 6
                assert client.submit(recursive, 5).result() == 120
                assert client.submit(Point(1).moved, 2).result() == Point(7)
                assert client.submit(Point, 4).result() == Point(4)
                assert client.submit(lambda c: c, Colour.RED).result() is Colour.RED
                assert client.map(functools.partial(triple), [(i,) for i in range(5)]) == [0, 3, 6, 9, 12]
                try:
                    client.submit(fail).result()
                except OwnError as error:
                    assert "in fail" in str(error.__cause__)
                    print("all right")
        """
    assert run(tmp_path, address, text) == "all right\n"


@pytest.mark.parametrize("leave", ["", "sys.exit(0)", "client.disconnect()"])
def test_the_interpreter_ends_with_futures_pending(tmp_path: Path, address: str, leave: str) -> None:
    text = f"""
        client = Client(sys.argv[1])
        futures = [client.submit(time.sleep, 0.2) for _ in range(50)]
        futures[0].add_done_callback(lambda _: None)
        print("over")
        {leave}
        """
    assert run(tmp_path, address, text) == "over\n"


def test_the_interpreter_ends_by_an_exception(tmp_path: Path, address: str) -> None:
    text = """
        client = Client(sys.argv[1])
        client.submit(time.sleep, 0.2)
        raise SystemExit(7)
        """
    run(tmp_path, address, text, status=7)


def test_callbacks_have_run_when_the_interpreter_ends(tmp_path: Path, address: str) -> None:
    text = """
        client = Client(sys.argv[1])
        future = client.submit(abs, -3)
        future.add_done_callback(lambda done: (time.sleep(0.2), print("called", done.result(), flush=True)))
        future.result()
        """
    assert run(tmp_path, address, text) == "called 3\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork here")
def test_a_forked_child(tmp_path: Path, address: str) -> None:
    text = """
        def wait_for(path):
            while not os.path.exists(path):
                time.sleep(0.01)

        client, end = Client(sys.argv[1]), os.path.abspath(__file__) + ".end"
        done, pending = client.submit(abs, -3), client.submit(wait_for, end)
        assert done.result() == 3
        pid = os.fork()
        if pid == 0:
            complaints = 0
            uses = (
                lambda: client.submit(abs, 1),
                lambda: client.map(abs, [(1,)]),
                pending.result,
                lambda: pending.cancel(force=True),  # without force, the client itself refuses to cancel a running task
            )
            for use in uses:
                try:
                    use()
                except ClientClosedError as error:
                    complaints += "belongs to the parent process" in str(error)
            assert done.result() == 3 and complaints == 4, complaints
            client.disconnect()
            with Client(sys.argv[1]) as own:
                assert own.submit(abs, -5).result() == 5
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        open(end, "w").close()
        assert pending.result() is None and client.submit(abs, -4).result() == 4
        client.disconnect()
        print("all right")
        """
    assert run(tmp_path, address, text) == "all right\n"


@pytest.mark.parametrize(
    "waiting",
    [
        "client.submit(time.sleep, 600).result()",
        "client.submit(time.sleep, 600).result(600)",
        "client.map(time.sleep, [(0.3,)] * 1000)",
        "concurrent.futures.wait([client.submit(time.sleep, 600)])",
        "[client.submit(abs, -1).result() for _ in range(10**9)]",
        "[client.submit(abs, -1) for _ in range(10**9)]",
        "client.map(abs, ((-i,) for i in range(10**9)))",
    ],
)
def test_ctrl_c_leaves_the_client_usable(tmp_path: Path, waiting: str) -> None:
    text = f"""
        import concurrent.futures
        client = Client(sys.argv[1])
        assert client.submit(abs, -3).result() == 3
        print("waits", flush=True)
        try:
            {waiting}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        other = Client(sys.argv[1])
        assert [other.submit(abs, -i).result(20) for i in range(50)] == list(range(50))
        assert client.submit(abs, -4).result(30) == 4
        client.disconnect()
        other.disconnect()
        print("all right")
        """
    with SchedulerClusterCombo(n_workers=2) as combo, program(tmp_path, combo.get_address(), text) as process:
        assert process.stdout is not None and process.stdout.readline() == "waits\n"
        # Only when the program waits: a task must have begun, or many must have passed.
        with monitor(monitor_address_of(combo.get_address())) as watch:
            wait_until(lambda: (now := watch.next()).dispatched or now.resolved > 100, SECONDS)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, errors
        assert output == "interrupted\nall right\n"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_tasks_of_a_vanished_client_are_dropped_after_its_lease(tmp_path: Path, how: signal.Signals) -> None:
    text = """
        client = Client(sys.argv[1])
        futures = [client.submit(abs, i) for i in range(1000)]
        print("submitted", flush=True)
        sys.stdin.read()
        """
    with scheduler(tmp_path, "--client-timeout-seconds", "1") as daemon, monitor(daemon.monitor_address) as watch:
        with program(tmp_path, daemon.address, text) as process:
            assert process.stdout is not None and process.stdout.readline() == "submitted\n"
            wait_until(lambda: watch.next().waiting == 1000)
            wait_until(lambda: watch.next().uptime_seconds > 3)
            assert watch.next().clients == 1, "a client that lives keeps its lease"
            process.send_signal(how)
            wait_until(lambda: (now := watch.next()).waiting == now.clients == 0)


def test_tasks_of_a_client_that_leaves_are_dropped(tmp_path: Path) -> None:
    text = """
        client = Client(sys.argv[1])
        futures = [client.submit(abs, i) for i in range(1000)]
        print("submitted", flush=True)
        sys.stdin.read()
        """
    with scheduler(tmp_path) as daemon, monitor(daemon.monitor_address) as watch:
        with program(tmp_path, daemon.address, text) as process:
            assert process.stdout is not None and process.stdout.readline() == "submitted\n"
            wait_until(lambda: watch.next().waiting == 1000)
            process.communicate(timeout=SECONDS)
            wait_until(lambda: (now := watch.next()).waiting == now.clients == 0)
