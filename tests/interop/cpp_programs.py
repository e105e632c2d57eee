"""Builds and runs the C++ client and worker of tests/interop/cpp."""

from __future__ import annotations

import fcntl
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.commands import Command

FOLDER = Path(__file__).parent / "cpp"
BUILD = FOLDER / "build"
PACKAGES = "g++ make pkg-config libzmq3-dev libcapnp-dev capnproto"
SECONDS = 30.0


def build() -> Path:
    """Build the programs `client` and `worker`; return their folder. Skip the test if a tool or library is missing."""
    tools = ("g++", "make", "pkg-config", "capnp")
    missing = [tool for tool in tools if shutil.which(tool) is None]
    libraries = ["pkg-config", "--exists", "libzmq", "capnp-json"]
    if missing or subprocess.run(libraries, capture_output=True).returncode:
        pytest.skip(f"C++ needs {' '.join(missing) or 'libzmq, capnp'}: apt-get install {PACKAGES}")
    BUILD.mkdir(exist_ok=True)
    with open(BUILD / "lock", "w") as lock:  # tests of several files may come at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["make", "-C", str(FOLDER), "CXXFLAGS=-O0"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return BUILD


@contextmanager
def cpp_worker(folder: Path, address: str, *options: str, name: str = "c++") -> Iterator[Command]:
    command = Command([str(build() / "worker"), address, "--name", name, *options], folder / f"{name}.log")
    try:
        yield command
    finally:
        command.end()


class CppClient:
    """The C++ client as a process: one line per command, one line per event."""

    def __init__(self, address: str, *options: str) -> None:
        command = [str(build() / "client"), address, *options]
        both = subprocess.STDOUT
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=both, text=True)
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.resolved: dict[int, tuple[str, str]] = {}
        """By task id: the outcome and the first line of the payload."""
        self.seen: list[str] = []

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def say(self, *commands: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("".join(f"{command}\n" for command in commands))
        self._process.stdin.flush()

    def expect(self, start: str) -> str:
        """Return the next line with this beginning. Lines before it are recorded."""
        while True:
            line = self._lines.get(timeout=SECONDS)
            assert line is not None, f"the client ended without this line: {start}"
            self._note(line)
            if line.startswith(start):
                return line

    def expect_all(self, *starts: str) -> None:
        """Wait until there is a line with each of these beginnings, in any order."""
        missing = set(starts)
        while missing:
            line = self.expect("")
            missing = {start for start in missing if not line.startswith(start)}

    def end(self) -> None:
        """Close its input, and record its lines until it has ended."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self.status() == 0, self.seen

    def status(self) -> int:
        """Wait until it ends by itself, record its lines, and return its exit status."""
        while (line := self._lines.get(timeout=SECONDS)) is not None:
            self._note(line)
        return self._process.wait(SECONDS)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _note(self, line: str) -> None:
        self.seen.append(line)
        words = line.split(" ", 3)
        if words[0] == "resolved":
            assert int(words[1]) not in self.resolved, f"resolved twice: {line}"
            self.resolved[int(words[1])] = (words[2], words[3])


@contextmanager
def cpp_client(address: str, *options: str) -> Iterator[CppClient]:
    client = CppClient(address, *options)
    try:
        yield client
    finally:
        client.kill()
