"""How worker processes are started, ended and watched: real processes that run test code instead of a worker."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from scaler_worker.fork_server import process, state_page, task_processes
from scaler_worker.fork_server.client import ForkServer, ForkServerLost, SubprocessStarter, WorkerStarter
from scaler_worker.fork_server.process_events import PRELOAD_FAILED_STATUS, ProcessEnded, ProcessEvent, ProcessStarted
from scaler_worker.fork_server.state_page import StatePage, WorkerState
from scaler_worker.fork_server.worker_settings import WorkerSettings

SETTINGS = WorkerSettings(
    address="tcp://127.0.0.1:1",
    name="",
    incarnation=0,
    agent=7,
    heartbeat_interval_seconds=2.0,
    garbage_collect_interval_seconds=30.0,
    trim_memory_threshold_bytes=1 << 30,
    preload="",
    logging_level="INFO",
    logging_paths=("/dev/stderr",),
)
WAIT_SECONDS = 20.0
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork here")


def stand_in(settings: WorkerSettings, words: memoryview) -> None:
    """The settings of a worker that executes its name as code."""
    exec(settings.name, {"words": words, "settings": settings})


def worker(incarnation: int, does: str) -> WorkerSettings:
    return replace(SETTINGS, incarnation=incarnation, name=does)


SLEEP = "import time; time.sleep(600)"


class Events:
    """The events of a fork server."""

    def __init__(self, fork_server: WorkerStarter) -> None:
        self.fork_server = fork_server
        self.seen: list[ProcessEvent] = []

    def wait_for(self, kind: type[ProcessEvent], incarnation: int) -> ProcessEvent:
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            for event in self.seen:
                if isinstance(event, kind) and event.incarnation == incarnation:
                    return event
            select.select([self.fork_server.fileno()], [], [], max(0.0, deadline - time.monotonic()))
            assert time.monotonic() < deadline, f"no {kind.__name__} of {incarnation}, only {self.seen}"
            self.fork_server.flush()
            self.seen += self.fork_server.receive()

    def started(self, incarnation: int) -> int:
        event = self.wait_for(ProcessStarted, incarnation)
        return event.pid

    def ended(self, incarnation: int) -> ProcessEnded:
        event = self.wait_for(ProcessEnded, incarnation)
        assert isinstance(event, ProcessEnded)
        return event


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Poll a condition that has no descriptor to wait for."""
    deadline = time.monotonic() + WAIT_SECONDS
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, what
        pause.wait(0.005)


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def page() -> StatePage:
    return StatePage(4)


@pytest.fixture
def fork_server(page: StatePage) -> Iterator[ForkServer]:
    fork_server = ForkServer(stand_in, page)
    yield fork_server
    fork_server.close()


@pytest.fixture
def events(fork_server: ForkServer) -> Events:
    return Events(fork_server)


pytestmark = needs_fork


def test_an_end_has_exit_code_or_signal_pid_and_peak_memory(fork_server: ForkServer, events: Events) -> None:
    fork_server.start(0, worker(1, ""))
    fork_server.start(1, worker(2, "import sys; sys.exit(3)"))
    fork_server.start(2, worker(3, "import os; os._exit(4)"))
    fork_server.start(3, worker(4, "import os; os.kill(os.getpid(), 9)"))
    causes = [events.ended(incarnation).cause() for incarnation in (1, 2, 3, 4)]
    assert causes == ["exit code 0", "exit code 3", "exit code 4", "signal 9 (SIGKILL)"]
    for incarnation, slot in ((1, 0), (2, 1), (3, 2), (4, 3)):
        ended = events.ended(incarnation)
        assert (ended.slot, ended.pid) == (slot, events.started(incarnation))
        assert 1 << 20 < ended.peak_bytes < 1 << 32


def test_peak_memory_is_the_workers_own(fork_server: ForkServer, events: Events) -> None:
    fork_server.start(0, worker(1, "b = bytearray(200 << 20); del b"))
    fork_server.start(1, worker(2, ""))
    # Both begin with the memory of this process, which is much after other tests.
    assert events.ended(1).peak_bytes - events.ended(2).peak_bytes > 150 << 20


def test_an_exception_is_printed_and_is_exit_code_1(page: StatePage, capfd: pytest.CaptureFixture[str]) -> None:
    fork_server = ForkServer(stand_in, page)  # made here, so that its standard error is captured
    try:
        events = Events(fork_server)
        fork_server.start(0, worker(1, "words[4] = 1; raise ValueError('from the worker')"))
        fork_server.start(1, worker(2, "words[4] = 1; raise SystemExit('on purpose')"))
        assert [events.ended(incarnation).cause() for incarnation in (1, 2)] == ["exit code 1", "exit code 1"]
    finally:
        fork_server.close()
    error = capfd.readouterr().err
    assert "Traceback" in error and "ValueError: from the worker" in error and "on purpose" in error
    assert page.read(0) == page.read(1) == WorkerState(ready=True)


PRELOAD = "import importlib; importlib.import_module('no_such_module')"


@pytest.mark.parametrize(
    "does, start_error",
    [
        ("raise ValueError('two\\nlines')", r"ValueError: two lines \(<string>:1\)"),
        ("\n" + PRELOAD, r"ModuleNotFoundError: No module named 'no_such_module' \(<string>:2\)"),
        ("compile('a b', 'x.py', 'exec')", r'File "x.py", line 1 a b .* SyntaxError: invalid syntax \(<string>:1\)'),
        ("raise SystemExit('no GPU\\nhere')", "no GPU here"),
        ("raise ValueError(1000 * 'e')", r"ValueError: e{288} \(.*\)"),
        ("raise SystemExit(3)", ""),
    ],
)
def test_the_reason_of_a_failed_start_is_in_the_slot(
    page: StatePage, capfd: pytest.CaptureFixture[str], does: str, start_error: str
) -> None:
    fork_server = ForkServer(stand_in, page)
    try:
        fork_server.start(2, worker(1, does))
        assert Events(fork_server).ended(1).cause() == f"exit code {3 if not start_error else 1}"
    finally:
        fork_server.close()
    state = page.read(2)
    assert re.fullmatch(start_error, state.start_error), state
    assert state == WorkerState(start_error=state.start_error)
    page.clear(2)
    assert page.read(2) == WorkerState()
    assert capfd.readouterr().err == ""


def test_a_failed_preload_has_a_status_of_its_own(fork_server: ForkServer, events: Events, page: StatePage) -> None:
    fork_server.start(
        0, worker(1, "from scaler_worker.fork_server.preload import preload\npreload('no_such_module:load')")
    )
    assert events.ended(1).status == PRELOAD_FAILED_STATUS
    assert page.read(0).start_error.startswith("--preload no_such_module:load: ModuleNotFoundError: No module named")


def test_the_task_of_a_killed_worker_is_in_its_slot(fork_server: ForkServer, events: Events, page: StatePage) -> None:
    does = (
        "import os\n"
        "from scaler_worker.fork_server.state_page import ATTEMPT, CLIENT, ID, READY, RUNNING\n"
        "words[READY] = 1; words[CLIENT] = 4; words[ID] = (1 << 63) - 1; words[ATTEMPT] = 2; words[RUNNING] = 1\n"
        "os.kill(os.getpid(), 9)"
    )
    fork_server.start(1, worker(1, does))
    events.ended(1)
    assert page.read(1) == WorkerState(4, (1 << 63) - 1, 2, ready=True)
    assert page.read(0) == page.read(2) == WorkerState()
    assert page.read(1).task == (4, (1 << 63) - 1, 2) and page.read(0).task is None
    page.slot(1)[state_page.RUNNING] = 0
    assert page.read(1) == WorkerState(ready=True)
    page.clear(1)
    assert list(page.slot(1)) == [0] * state_page.SLOT_WORDS


def test_start_errors_of_any_length_and_kind(page: StatePage) -> None:
    page.write_start_error(3, "." + 1000 * "é")
    assert page.read(3).start_error == "." + 255 * "é" + "\ufffd"
    page.write_start_error(2, "\udcff")
    assert (page.read(2).start_error, page.read(1).start_error) == ("?", "")


class Changing:
    """A slot whose worker writes between any two reads of a word."""

    def __init__(self, page: StatePage, changes: int) -> None:
        self._page = page
        self._slot = page.slot(0)
        self._changes = changes

    def __getitem__(self, index: int) -> int:
        if self._changes and index == state_page.ID:
            self._changes -= 1
            self._slot[state_page.ID] += 1
        value: int = self._slot[index]
        return value


@pytest.mark.parametrize("changes, task", [(0, (7, 8, 1)), (1, (7, 9, 1)), (50, (7, 58, 1)), (1 << 62, None)])
def test_a_state_is_valid_if_two_reads_agree(
    page: StatePage, monkeypatch: pytest.MonkeyPatch, changes: int, task: object
) -> None:
    page.slot(0)[:5] = memoryview(array("Q", (7, 8, 1, 1, 1)))
    changing = Changing(page, changes)
    monkeypatch.setattr(page, "slot", lambda number: changing)
    state = page.read(0)
    assert state.task == task and state.ready


def test_settings_arrive_unchanged(fork_server: ForkServer, events: Events) -> None:
    settings = replace(worker(1 << 62, ""), capabilities={"gpu": 2, "linux": 1})
    given = (settings.logging_paths, settings.capabilities)
    does = f"assert (settings.logging_paths, settings.capabilities) == {given!r}"
    fork_server.start(0, replace(settings, name=does))
    assert events.ended(1 << 62).cause() == "exit code 0"


def test_terminate_and_kill(fork_server: ForkServer, events: Events) -> None:
    fork_server.start(0, worker(1, SLEEP))
    fork_server.start(1, worker(2, f"import signal; signal.signal(15, signal.SIG_IGN); words[4] = 1; {SLEEP}"))
    events.started(1)
    fork_server.end(1, kill=False)
    assert events.ended(1).cause() == "signal 15 (SIGTERM)"
    fork_server.end(2, kill=True)
    assert events.ended(2).cause() == "signal 9 (SIGKILL)"
    fork_server.end(2, kill=True)  # has no effect: the worker has ended


def test_a_signal_right_after_the_start_is_not_lost(fork_server: ForkServer, events: Events) -> None:
    for incarnation in range(1, 21):
        fork_server.start(0, worker(incarnation, SLEEP))
        fork_server.end(incarnation, kill=False)
        assert events.ended(incarnation).cause() == "signal 15 (SIGTERM)"


def test_a_worker_has_signals_as_any_python_has_and_no_terminal(fork_server: ForkServer, events: Events) -> None:
    does = (
        "import os, signal, sys\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
        "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n"
        "assert signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL\n"
        "assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()\n"
        "assert signal.set_wakeup_fd(-1) == -1\n"
        "assert os.getpgid(0) == os.getpid() and os.getsid(0) == os.getppid()\n"
        "assert os.read(0, 1) == b''\n"
        "try: signal.raise_signal(signal.SIGINT)\n"
        "except KeyboardInterrupt: sys.exit(0)\n"
        "sys.exit(9)"
    )
    fork_server.start(0, worker(1, does))
    assert events.ended(1).cause() == "exit code 0"


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="no os.waitid here")
@pytest.mark.parametrize("has_marks", [True, False])
def test_processes_started_by_a_task_end_with_its_worker(
    page: StatePage, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, has_marks: bool
) -> None:
    if not has_marks:  # as on other systems than Linux
        for module in (process, task_processes):
            monkeypatch.setattr(module, "can_mark", lambda: False)
    fork_server = ForkServer(stand_in, page)
    request.addfinalizer(fork_server.close)
    events = Events(fork_server)
    does = f"words[0] = subprocess.Popen([sys.executable, '-c', {SLEEP!r}]).pid; os._exit(7)"
    fork_server.start(0, worker(1, f"import os, subprocess, sys; {does}"))
    assert events.ended(1).cause() == "exit code 7"
    wait_until(lambda: is_gone(page.slot(0)[0]), "what a task started outlived its worker")


def test_many_requests_at_once_do_not_block(fork_server: ForkServer, events: Events) -> None:
    fork_server.start(0, worker(1, SLEEP))
    os.kill(fork_server.pid, signal.SIGSTOP)
    for _ in range(5000):
        fork_server.end(10**18, kill=True)
    for incarnation in range(2, 42):
        fork_server.start(1, worker(incarnation, "#" + 10_000 * "x"))
    unsent = fork_server.wants_write
    os.kill(fork_server.pid, signal.SIGCONT)
    while fork_server.wants_write:
        select.select([], [fork_server.fileno()], [], WAIT_SECONDS)
        fork_server.flush()
    assert unsent
    assert {events.ended(incarnation).status for incarnation in range(2, 42)} == {0}


def test_close_ends_workers_and_fork_server(page: StatePage) -> None:
    fork_server = ForkServer(stand_in, page)
    events = Events(fork_server)
    fork_server.start(0, worker(1, SLEEP))
    pid = events.started(1)
    fork_server.close()
    assert is_gone(fork_server.pid) and is_gone(pid)


def test_close_kills_workers_that_ignore_signals(page: StatePage) -> None:
    fork_server = ForkServer(stand_in, page)
    fork_server.start(0, worker(1, f"import signal; signal.signal(15, signal.SIG_IGN); words[4] = 1; {SLEEP}"))
    pid = Events(fork_server).started(1)
    wait_until(lambda: page.read(0).ready, "the worker did not start")
    fork_server.close()
    assert is_gone(fork_server.pid)
    wait_until(lambda: is_gone(pid), "a worker outlived the fork_server")


def test_the_death_of_the_fork_server_kills_its_workers(
    fork_server: ForkServer, events: Events, page: StatePage
) -> None:
    fork_server.start(0, worker(1, f"import signal; signal.signal(15, signal.SIG_IGN); words[4] = 1; {SLEEP}"))
    pid = events.started(1)
    wait_until(lambda: page.read(0).ready, "the worker did not start")
    os.kill(fork_server.pid, signal.SIGKILL)
    with pytest.raises(ForkServerLost, match=str(fork_server.pid)):
        events.ended(1)
    wait_until(lambda: is_gone(pid), "a worker outlived the fork_server")


AGENT = """
import os, sys
from scaler_worker.fork_server.client import ForkServer
from scaler_worker.fork_server.worker_settings import WorkerSettings
from scaler_worker.fork_server.state_page import StatePage

def stand_in(settings, words):
    import signal, time
    signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b"terminated\\n"), sys.exit(0)))
    os.write(1, b"%d\\n" % os.getpid())  # in one write: several processes write here
    time.sleep(600)

fork_server = ForkServer(stand_in, StatePage(2))
print(fork_server.pid, flush=True)
for slot in range(2):
    fork_server.start(slot, WorkerSettings("", "", slot, 7, 2.0, 30.0, 0, "", "INFO", ()))
os.read(0, 1)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_no_process_outlives_a_killed_agent(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as agent:
        try:
            assert agent.stdout is not None
            pids = [int(agent.stdout.readline()) for _ in range(3)]
        finally:
            agent.send_signal(number)
        assert agent.stdout.read().split() == [b"terminated", b"terminated"]  # the file ends: all processes have ended
    wait_until(lambda: all(is_gone(pid) for pid in pids), "a process outlived the agent")


SUBPROCESS_WORKER = (
    "import json, sys\n"
    "from scaler_worker.fork_server.worker_settings import worker_settings_from\n"
    "from scaler_worker.fork_server.parent_watch import exit_at_end_of\n"
    "exit_at_end_of(0)\n"
    "exec(worker_settings_from(json.loads(sys.argv[1])).name)"
)


@pytest.fixture
def subprocess_starter() -> Iterator[SubprocessStarter]:
    fork_server = SubprocessStarter((sys.executable, "-c", SUBPROCESS_WORKER))
    yield fork_server
    fork_server.close()


def test_without_fork_each_worker_is_a_fresh_interpreter(subprocess_starter: SubprocessStarter) -> None:
    fork_server, events = subprocess_starter, Events(subprocess_starter)
    fork_server.start(0, worker(1, "import sys; sys.exit(3)"))
    fork_server.start(1, worker(2, SLEEP))
    fork_server.start(2, worker(3, SLEEP))
    ended = events.ended(1)
    assert (ended.slot, ended.pid, ended.cause()) == (0, events.started(1), "exit code 3")
    fork_server.end(2, kill=True)
    assert events.ended(2).status != 0
    fork_server.end(3, kill=False)
    assert events.ended(3).status != 0


def test_without_fork_a_worker_finds_our_modules(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, subprocess_starter: SubprocessStarter
) -> None:
    (tmp_path / "found_here.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    events = Events(subprocess_starter)
    subprocess_starter.start(0, worker(1, "import found_here, sys; sys.exit(3)"))
    assert events.ended(1).cause() == "exit code 3"


def test_without_fork_a_missing_interpreter_is_reported() -> None:
    fork_server = SubprocessStarter(("/nowhere/python",))
    fork_server.start(0, worker(1, ""))
    ended = Events(fork_server).ended(1)
    assert ended.pid == 0 and "could not be started" in ended.cause()


def test_without_fork_a_worker_ends_with_its_agent(subprocess_starter: SubprocessStarter) -> None:
    fork_server, events = subprocess_starter, Events(subprocess_starter)
    fork_server.start(0, worker(1, SLEEP))
    events.started(1)
    process = fork_server._processes[1]
    assert process.stdin is not None
    process.stdin.close()  # as the end of the agent does
    assert events.ended(1).cause() == "exit code 1"
