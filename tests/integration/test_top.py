"""scaler_top in a real terminal, with a real scheduler and cluster under load."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tests.integration.commands import SchedulerCommand, cluster, environment, run_once, scheduler
from tests.integration.terminal import Terminal, needs_tmux

from scaler_client import Client

TOP = [sys.executable, "-m", "scaler_client.top"]
WORKERS = 3
HOSTILE = "tasks\x1b]0;title\x07\x1b[2J"


def wait_for_gate(path: str) -> None:
    import os
    import time

    while not os.path.exists(path):
        time.sleep(0.05)


class Load:
    """Tasks without end, from a thread, until the end of the block; and two long ones, one with a hostile name."""

    def __init__(self, address: str, gate: Path) -> None:
        self._client = Client(address, timeout_seconds=60)
        self._is_over = threading.Event()
        self._gate = gate
        named = [self._client.options(name=name) for name in ("a long one", HOSTILE)]
        self._long = [client.submit(wait_for_gate, str(gate)) for client in named]
        self._thread = threading.Thread(target=self._submit)
        self._thread.start()

    def _submit(self) -> None:
        while not self._is_over.is_set():
            self._client.submit(abs, -1).result(60)
            self._is_over.wait(0.02)

    def close(self) -> None:
        self._is_over.set()
        self._gate.touch()
        self._thread.join(60)
        for future in self._long:
            future.result(60)
        self._client.disconnect()


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerCommand]:
    """A scheduler with busy workers."""
    folder = tmp_path_factory.mktemp("busy")
    with scheduler(folder) as started, cluster(folder, started.address, WORKERS):
        load = Load(started.address, folder / "gate")
        yield started
        load.close()


@pytest.fixture
def open_terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def open_one(columns: int = 80, lines: int = 24, **variables: str) -> Terminal:
        opened.append(Terminal(tmp_path, columns, lines, **variables))
        opened[-1].wait_for_shell()
        return opened[-1]

    yield open_one
    for terminal in opened:
        terminal.close()


def start(terminal: Terminal, address: str) -> None:
    terminal.enter(f"clear; {' '.join(TOP)} {address}; echo status $?")


def names(screen: str) -> list[str]:
    """The visible rows of the table of workers."""
    return re.findall(r"^ *(\S+-\d+) .* [A-]", screen, re.MULTILINE)


def top_process(address: str) -> psutil.Process:
    """scaler_top of this scheduler in a terminal."""
    [process] = [each for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"] == [*TOP, address]]
    return process


@needs_tmux
def test_keys_sort_filter_scroll_and_open(busy: SchedulerCommand, open_terminal: Callable[..., Terminal]) -> None:
    terminal = open_terminal()
    start(terminal, busy.monitor_address)
    terminal.wait_for(rf"Total {WORKERS} worker")
    screen = terminal.wait_for("HeartbeatEcho")
    assert "[cpu]" in screen and "worker[n] agt_cpu[C]" in screen
    assert re.search(r"rss +\d+\.\dm", screen) and busy.address in screen
    terminal.type("n")
    screen = terminal.wait_for(r"\[worker\]")
    in_order = names(screen)
    assert len(in_order) == WORKERS
    terminal.type("n")
    terminal.wait_for(rf"\[worker\].*\n.*{in_order[-1][-3:]} ")
    for key, column in {"C": "agt_cpu", "M": "agt_rss", "m": "rss", "f": "free", "w": "sent", "d": "queued"}.items():
        terminal.type(key)
        terminal.wait_for(rf"\[{column}\]")
    terminal.type("l")
    terminal.wait_for(r"\[lag\]")
    terminal.type("nn/" + in_order[1][-3:])
    terminal.wait_for(r"Filter workers: .*_")
    terminal.press("Enter")
    screen = terminal.wait_for(rf"1 of them with '{in_order[1][-3:]}'")
    assert names(screen) == [in_order[1]]
    terminal.press("Enter")
    screen = terminal.wait_for("^Worker ")
    for wanted in (" host", " pid", " capabilities", "Runs", " version"):
        assert wanted in screen
    terminal.press("Escape")
    terminal.wait_for("1 of them with")
    terminal.press("Escape")
    terminal.wait_for(rf"Total {WORKERS} worker\(s\) *$")
    terminal.press("Tab")
    screen = terminal.wait_for(r"function +\[tasks\]")
    assert "wait_for_gate" in screen
    terminal.type("/long one")
    terminal.wait_for("Filter functions: long one_")
    terminal.press("Enter")
    terminal.wait_for("filter: long one  Enter detail")
    terminal.press("Enter")
    terminal.wait_for("Function wait_for_gate *\n +called .*a long one")
    terminal.press("Escape")
    terminal.wait_for("filter: long one  Enter detail")
    terminal.press("Tab")
    terminal.wait_for(r"client +\[tasks\]")
    terminal.type("?")
    terminal.wait_for("State of a worker")
    terminal.type("q")
    terminal.wait_for("status 0")


@needs_tmux
def test_hostile_task_names_are_harmless(busy: SchedulerCommand, open_terminal: Callable[..., Terminal]) -> None:
    terminal = open_terminal(160, 40)
    start(terminal, busy.monitor_address)
    terminal.wait_for(r"a long one \d")
    terminal.wait_for(r"tasks\?\]0;title\?\?\[2J \d")
    terminal.type("/a long one")
    terminal.press("Enter")
    terminal.wait_for("1 of them with 'a long one'")
    terminal.press("Enter")
    screen = terminal.wait_for("for  ")
    assert re.search(r"task  a long one", screen) and re.search(r"for  \d[\d.:]*m?s? *$", screen, re.MULTILINE)
    assert terminal.state("pane_title") != "title"
    terminal.type("q")
    terminal.wait_for("status 0")


@needs_tmux
def test_scrolling(busy: SchedulerCommand, open_terminal: Callable[..., Terminal]) -> None:
    terminal = open_terminal(80, 24)
    start(terminal, busy.monitor_address)
    terminal.wait_for("Total")
    terminal.resize(80, 15)  # two rows are visible
    assert len(names(terminal.wait_for(rf"1-2 of {WORKERS}"))) == 2
    terminal.press("Down", "Down")
    terminal.wait_for(rf"2-3 of {WORKERS}")
    terminal.press("Home")
    terminal.wait_for(rf"1-2 of {WORKERS}")
    terminal.press("PageDown")
    terminal.wait_for(rf"2-3 of {WORKERS}")
    terminal.wheel(is_down=False)
    terminal.wait_for(rf"1-2 of {WORKERS}")
    terminal.press("End")
    terminal.wait_for(rf"2-3 of {WORKERS}")
    terminal.resize(200, 50)
    terminal.wait_for(rf"Total {WORKERS} worker\(s\) +\| .*Total \d function")
    terminal.type("q")
    terminal.wait_for("status 0")


@needs_tmux
@pytest.mark.parametrize("way", ["q", "C-c", "SIGTERM", "SIGHUP", "exception"])
def test_terminal_is_restored(way: str, busy: SchedulerCommand, open_terminal: Callable[..., Terminal]) -> None:
    terminal = open_terminal()
    terminal.enter("clear; echo it was here; stty -g")
    [_, before] = re.findall(r"^(it was here|[0-9a-f]+:\S+)$", terminal.wait_for("^[0-9a-f]+:"), re.MULTILINE)
    if way == "exception":
        broken = (
            "import scaler_client.top.screen as s, sys; s._title = None; from scaler_client.top.cli import main; main()"
        )
        terminal.enter(f"{sys.executable} -c '{broken}' {busy.monitor_address}; echo status $?")
        assert "TypeError" in terminal.wait_for("status 1")
    else:
        terminal.enter(f"{' '.join(TOP)} {busy.monitor_address}; echo status $?")
        assert "it was here" not in terminal.wait_for("HeartbeatEcho")
        if way.startswith("SIG"):
            top_process(busy.monitor_address).send_signal(getattr(signal, way))
        else:
            terminal.press(way)
        assert "it was here" in terminal.wait_for("status 0")
    assert (terminal.state("alternate_on"), terminal.state("cursor_flag")) == ("0", "1")
    assert (terminal.state("mouse_any_flag"), terminal.state("keypad_flag")) == ("0", "0")
    terminal.enter("clear; stty -g")
    assert before in terminal.wait_for("^[0-9a-f]+:")


@needs_tmux
def test_suspend_and_resume_by_ctrl_z(busy: SchedulerCommand, open_terminal: Callable[..., Terminal]) -> None:
    terminal = open_terminal()
    terminal.enter("set -m; clear")
    start(terminal, busy.monitor_address)
    terminal.wait_for("HeartbeatEcho")
    terminal.press("C-z")
    terminal.wait_for("Stopped|Suspended")
    assert terminal.state("alternate_on") == "0"
    terminal.enter("fg; echo at last $?")
    terminal.wait_for("HeartbeatEcho")
    terminal.type("q")
    terminal.wait_for("at last 0")
    assert terminal.state("alternate_on") == "0"


@needs_tmux
@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "vt100", "LC_ALL": "C"}])
def test_without_colours(
    variables: dict[str, str], busy: SchedulerCommand, open_terminal: Callable[..., Terminal]
) -> None:
    terminal = open_terminal()
    exports = " ".join(f"{name}={value}" for name, value in variables.items())
    terminal.enter(f"{exports} {' '.join(TOP)} {busy.monitor_address}")
    terminal.wait_for("HeartbeatEcho")
    looks = terminal.looks()
    assert not re.search(r"\x1b\[[0-9;]*\b(3[0-7]|4[0-7]|9[0-7])\b", looks) and "\x1b[7m" in looks
    terminal.type("q")


@needs_tmux
def test_scheduler_disappears_and_returns(tmp_path: Path, open_terminal: Callable[..., Terminal]) -> None:
    terminal = open_terminal()
    address = f"ipc://{tmp_path}/scheduler"
    start(terminal, f"{address}_monitor")
    terminal.wait_for(r"waiting for a scheduler since \d+ s: /")
    with scheduler(tmp_path, address=address) as first:
        terminal.wait_for("Total 0 worker")
        first.process.kill()
        first.process.wait()
        assert "Total 0 worker" in terminal.wait_for(r"no scheduler for \d+ s")
    with scheduler(tmp_path, address=address):
        terminal.wait_for(r"scheduler back after \d+ s, restarted")
    terminal.type("q")
    terminal.wait_for("status 0")


def test_once_and_json(busy: SchedulerCommand, tmp_path: Path) -> None:
    printed = run_once([*TOP, busy.monitor_address, "--once"], LC_ALL="C.UTF-8")
    assert printed.returncode == 0 and printed.stderr == ""
    assert f"Total {WORKERS} worker(s)" in printed.stdout and "\x1b" not in printed.stdout
    assert max(map(len, printed.stdout.splitlines())) <= 120
    configured = run_once([*TOP, "--json"], SCALER_MONITOR_ADDRESS=busy.monitor_address)
    known = json.loads(configured.stdout)
    assert len(known["workers"]) == WORKERS and known["scheduler"]["address"] == busy.address
    derived = run_once([*TOP, "--once", "--columns", "80"], SCALER_ADDRESS=busy.address)
    assert derived.returncode == 0 and max(map(len, derived.stdout.splitlines())) <= 80


def test_json_needs_no_urwid(busy: SchedulerCommand, tmp_path: Path) -> None:
    (tmp_path / "urwid.py").write_text("raise ModuleNotFoundError('No module named urwid')")
    without = {"SCALER_MONITOR_ADDRESS": busy.monitor_address, "PYTHONPATH": str(tmp_path)}
    assert json.loads(run_once([*TOP, "--json"], **without).stdout)["workers"]
    failed = run_once([*TOP, "--once"], **without)
    assert failed.returncode == 2 and failed.stderr.count("\n") == 1
    assert "it needs urwid, which is not installed" in failed.stderr


def test_without_a_scheduler_once_and_json_fail(tmp_path: Path) -> None:
    for way in ("--once", "--json"):
        done = run_once([*TOP, f"ipc://{tmp_path}/x", way, "--timeout", "0.2"])
        assert (done.returncode, done.stdout) == (1, "")
        assert re.fullmatch(
            r"scaler_top: nothing was heard at ipc://\S+ for 0.2 s: \S+ does not exist yet: .*\n", done.stderr
        )
    (tmp_path / "file").touch()
    done = run_once([*TOP, f"ipc://{tmp_path}/file"])
    file = f"{tmp_path}/file"
    assert (done.returncode, done.stderr) == (2, f"scaler_top: ipc://{file}: {file} is not a socket\n")
    done = run_once([*TOP, f"ipc://{tmp_path}/x"])
    assert done.returncode == 2 and "not a terminal" in done.stderr


def test_closed_pipe(busy: SchedulerCommand) -> None:
    command = f"{' '.join(TOP)} {busy.monitor_address} --json | head -c 1"
    done = subprocess.run(
        ["sh", "-c", command], env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("{", "")


@pytest.mark.skipif(not os.environ.get("SCALER_SCHEDULER_PYTHON"), reason="SCALER_SCHEDULER_PYTHON names no PyPy")
def test_runs_under_pypy(busy: SchedulerCommand) -> None:
    python = os.environ["SCALER_SCHEDULER_PYTHON"]
    library = str(Path(sys.modules["scaler_client"].__file__ or "").parents[1])
    done = run_once([python, "-m", "scaler_client.top", busy.monitor_address, "--once"], PYTHONPATH=library)
    if "No module named 'urwid'" in done.stderr:
        pytest.skip(f"urwid is missing: {python} -m pip install urwid")
    assert done.returncode == 0, done.stderr
    assert f"Total {WORKERS} worker(s)" in done.stdout
