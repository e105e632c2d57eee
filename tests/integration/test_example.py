"""The example of `make run`: its results are right, and it leaves no files or processes behind."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import ModuleType

import psutil
import pytest
from tests.integration.marked_process import MARK, marked

EXAMPLE = Path(__file__).resolve().parents[2] / "client_lib" / "examples" / "standard_library.py"
PATIENCE_SECONDS = 60

GOOD = """\
import os, sys
import os.path
from collections import Counter
from . import sibling

class Shape:
    def area(self):
        return 1

    async def later(self):
        import json
        return json

def {name}():
    return [
        1,
        2,
    ]
"""


@pytest.fixture(scope="module")
def example() -> ModuleType:
    specification = importlib.util.spec_from_file_location("standard_library", EXAMPLE)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["standard_library"] = module  # dataclasses look up their module there
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A folder with 60 good files in packages, two files that do not parse, and some files to be skipped."""
    folder = tmp_path / "library"
    for number in range(60):
        package = folder / f"package_{number % 3}"
        package.mkdir(parents=True, exist_ok=True)
        (package / f"module_{number}.py").write_text(GOOD.format(name=f"function_{number}"))
    (folder / "old.py").write_text("print 'Python 2'\n")
    (folder / "bytes.py").write_bytes(b"# coding: utf-8\nname = '\xff'\n")
    (folder / "site-packages").mkdir()
    (folder / "site-packages" / "foreign.py").write_text("x = 1\n")
    (folder / "data.txt").write_text("not Python\n")
    return folder


class Run:
    """The example in its own process, on a terminal if requested. All its descendants carry a mark."""

    def __init__(self, temporary: Path, folders: list[str], terminal: int | None = None) -> None:
        temporary.mkdir()
        self.temporary = temporary
        self.mark = uuid.uuid4().hex
        self.shared: set[str] = set()
        self.process = subprocess.Popen(
            [sys.executable, str(EXAMPLE), *folders],
            env={**os.environ, MARK: self.mark, "TMPDIR": str(temporary)},
            stdin=subprocess.DEVNULL if terminal is None else terminal,
            stdout=subprocess.PIPE if terminal is None else terminal,
            stderr=subprocess.PIPE if terminal is None else terminal,
            text=terminal is None,
            start_new_session=True,
            preexec_fn=None if terminal is None else lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def descendants(self) -> list[int]:
        """Return the processes with the mark, including the example itself."""
        return marked(self.mark)

    def finish(self) -> tuple[str, str]:
        """Wait for the end and return the output. Meanwhile, record files that it makes outside TMPDIR."""
        with ThreadPoolExecutor(1) as executor:
            ending = executor.submit(self.process.communicate, timeout=PATIENCE_SECONDS)
            while not ending.done():
                self.shared |= shared_entries(self.descendants())
                wait([ending], 0.05)
            return ending.result()

    def assert_nothing_left(self) -> None:
        wait_until(lambda: not self.descendants(), "its processes end")
        assert list(self.temporary.iterdir()) == []
        assert not [path for path in self.shared if os.path.exists(path)]

    def end(self) -> None:
        for process in self.descendants():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait(PATIENCE_SECONDS)


def shared_entries(processes: list[int]) -> set[str]:
    """Return the monitor sockets and the object directories of these processes."""
    found = set()
    for number in processes:
        try:
            process = psutil.Process(number)
            found |= {connection.laddr for connection in process.net_connections("unix") if connection.laddr}
            found |= {os.readlink(f"/proc/{number}/fd/{each}") for each in locked_descriptors(number)}
        except (psutil.Error, OSError):
            continue  # the process has just ended
    return {path for path in found if path.startswith("/dev/shm/") or path.endswith("_monitor")}


def locked_descriptors(process: int) -> list[str]:
    """Return the descriptors with a lock. A starting agent opens the directories of all agents, but locks its own."""
    infos = Path(f"/proc/{process}/fdinfo").iterdir()
    return [info.name for info in infos if "\nlock:" in info.read_text()]


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_SECONDS} s for: {what}"
        time.sleep(0.02)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def start(*folders: str, terminal: int | None = None) -> Run:
        runs.append(Run(tmp_path / f"tmp-{len(runs)}", list(folders), terminal))
        return runs[-1]

    yield start
    for each in runs:
        each.end()


def test_parse_file_counts_lines_functions_and_classes(example: ModuleType, library: Path) -> None:
    path = str(library / "package_1" / "module_1.py")
    lines, functions, classes, longest, imports = example.parse_file(path)
    assert (lines, functions, classes) == (18, 3, 1)
    assert longest == [(5, "function_1", path), (3, "later", path), (2, "area", path)]
    assert imports == {"os": 2, "sys": 1, "collections": 1, "json": 1}


@pytest.mark.parametrize("name", ["old.py", "bytes.py"])
def test_a_file_that_does_not_parse_is_no_error(example: ModuleType, library: Path, name: str) -> None:
    assert example.parse_file(str(library / name)) is None


def test_too_deep_an_expression_is_no_error(example: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text("(" * 10_000 + ")" * 10_000)
    assert example.parse_file(str(tmp_path / "deep.py")) is None


def test_python_files_skips_other_files(example: ModuleType, library: Path) -> None:
    (library / "dangling.py").symlink_to(library / "nowhere.py")
    names = {os.path.relpath(path, library) for path in example.python_files([str(library)])}
    assert len(names) == 62
    assert {"old.py", "bytes.py", "package_0/module_0.py"} < names


def test_this_machine_has_a_standard_library(example: ModuleType) -> None:
    folders = example.library_folders()
    assert os.path.dirname(os.path.realpath(os.__file__)) in folders
    assert len(folders) == len(set(folders))


def test_totals_do_not_depend_on_the_order(example: ModuleType, library: Path) -> None:
    parsed = [example.parse_file(path) for path in example.python_files([str(library)])]
    forward, backward = example.Totals(), example.Totals()
    for each in parsed:
        forward.add(each)
    for each in reversed(parsed):
        backward.add(each)
    assert forward == backward
    assert len(forward.longest) == example.LIST_LENGTH


@pytest.mark.parametrize(
    "parallel, single, words",
    [
        (10.0, 19.0, "the 4 workers were 1.9 times as fast as one process"),
        (10.0, 10.4, "the 4 workers were about as fast as one process"),
        (10.0, 9.6, "the 4 workers were about as fast as one process"),
        (10.0, 8.0, "the 4 workers were slower: they took 1.2 times as long as one process"),
    ],
)
def test_the_two_times_in_words(example: ModuleType, parallel: float, single: float, words: str) -> None:
    assert example.comparison(parallel, single) == words


def test_the_whole_job(run: Callable[..., Run], library: Path) -> None:
    started = run(str(library))
    output, errors = started.finish()
    assert started.process.returncode == 0, errors
    assert any(path.endswith("_monitor") for path in started.shared), "the search found none"
    assert any(path.startswith("/dev/shm/") for path in started.shared), "the search found none"
    assert output.startswith(f"62 files of {library}\n")
    for figure in ("files +62  \\(2 don't parse\\)", "lines +1,080", "functions +180", "classes +60"):
        assert re.search(f"^{figure}$", output, re.MULTILINE), output
    assert len(re.findall(r"^ +5 lines  function_\d+ ", output, re.MULTILINE)) == 10
    assert re.findall(r"^ +(\d+) times  (\w+)$", output, re.MULTILINE) == [
        ("120", "os"), ("60", "collections"), ("60", "json"), ("60", "sys"),
    ]  # fmt: skip
    assert re.search(r"^4 workers +[\d.]+ s\none process +[\d.]+ s\n\nthe 4 workers were ", output, re.MULTILINE)
    started.assert_nothing_left()


def test_a_folder_without_python_files_is_one_error_line(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    started = run(str(tmp_path / "empty"))
    output, errors = started.process.communicate(timeout=PATIENCE_SECONDS)
    assert started.process.returncode == 1
    assert (output, errors) == ("", f"no .py file in {tmp_path / 'empty'}\n")


def read_terminal(master: int, until: bytes | None) -> bytes:
    """Read a terminal until some text appears; with None, until the last process has closed it."""
    shown = b""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while until is None or until not in shown:
        ready, _, _ = select.select([master], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"waited {PATIENCE_SECONDS} s for {until!r} after {shown!r}"
        try:
            chunk = os.read(master, 65_536)
        except OSError:  # EIO: no process has the terminal open
            return shown
        shown += chunk
    return shown


def test_ctrl_c_leaves_nothing_behind(run: Callable[..., Run]) -> None:
    master, slave = pty.openpty()
    try:
        started = run(terminal=slave)  # the whole standard library, which takes long enough to be interrupted
        os.close(slave)
        read_terminal(master, b"in parallel")
        assert len(started.descendants()) > 1
        started.shared |= shared_entries(started.descendants())
        os.write(master, b"\x03")
        shown = read_terminal(master, None)
    finally:
        os.close(master)
    assert started.process.wait(PATIENCE_SECONDS) == 130
    assert b"interrupted" in shown
    assert b"Traceback" not in shown
    started.assert_nothing_left()
