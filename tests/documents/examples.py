"""The examples of documents and docstrings: fenced blocks, found and run.

A Python block is a program. It runs in a process of its own, in a folder that its page's blocks share, and
`SCALER_ADDRESS` names a cluster. A comment behind a `print` says what the line prints: the program must print exactly
these lines.

The `sh` blocks of a page are one session at a terminal: one shell runs them in order and stops at the first command
that fails. A command that does not end is started with `&`.

The info string of a block may say more:

    ```python title="pricing.py"        the block is also a file of this name in the page's folder
    ```sh no-run: it asks for root      the block is not run, and why

Why no library does this: pytest-examples and mktestdocs run a block within the test's own process, where its functions
are not those of `__main__`, and sybil has no shell session over several blocks.
"""

from __future__ import annotations

import ast
import os
import random
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from tests.integration.commands import environment
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w+-]*) *(?P<rest>.*)$")
TITLE = re.compile(r'title="([^"]+)"')
NOT_RUN = re.compile(r"no-run: (\S.*)$")
PRINTED = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)
PORTS = re.compile(r"(?<![0-9A-Za-z.])(?:2345|2346|5555|8081|9464)(?![0-9A-Za-z])")
"""Ports in examples. A run replaces each by a free one, as tests run side by side. An underscore may stand beside a
port, as in the name of a monitor's socket."""

EXECUTED = {"python", "sh"}
SHOWN = {"", "text", "toml", "ini", "json", "yaml", "capnp", "cpp", "markdown", "promql", "nginx"}
SECONDS = 100.0
SESSION_SECONDS = 240.0
END_SECONDS = 20.0


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    line: int
    language: str
    text: str
    title: str = ""
    not_run: str = ""

    @property
    def is_run(self) -> bool:
        return self.language in EXECUTED and not self.not_run


def documents() -> dict[str, str]:
    """The texts whose examples are run, by their names: the pages, and the docstrings of `scaler_client`."""
    pages = [path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"]
    for folder in (ROOT / "client_lib", ROOT / "scheduler_daemon", ROOT / "worker_lib"):
        pages += folder.rglob("*.md")
    found = {page.relative_to(ROOT).as_posix(): page.read_text("utf-8") for page in sorted(pages)}
    for module in sorted((ROOT / "client_lib" / "scaler_client").rglob("*.py")):
        source = module.read_text("utf-8")
        if "```" in source:
            found.update(docstrings(module.relative_to(ROOT).as_posix(), source))
    return found


def docstrings(module: str, source: str) -> dict[str, str]:
    """The docstrings of a module's classes and functions that have blocks."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, kinds) and "```" in (text := ast.get_docstring(node) or ""):
            found[f"{module}:{node.name}"] = text
    return found


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a page's text.

    Raises:
        ValueError: a block has no end or its info string is wrong; the text names the line.
    """
    found = []
    lines = enumerate(text.splitlines(), 1)
    for number, line in lines:
        fence = FENCE.match(line)
        if fence is None:
            continue
        indent = len(fence["indent"])
        inside = []
        for _, inner in lines:
            if inner.strip() == fence["ticks"]:
                break
            inside.append(inner[indent:] + "\n")
        else:
            raise ValueError(f"line {number}: the block has no end")
        title, not_run = TITLE.search(fence["rest"]), NOT_RUN.search(fence["rest"])
        if fence["rest"] and not (title or not_run):
            raise ValueError(f'line {number}: {fence["rest"]!r} is neither title="..." nor no-run: and a reason')
        language = fence["language"]
        if language not in EXECUTED | SHOWN:
            raise ValueError(f"line {number}: {language!r} is none of {sorted(EXECUTED | SHOWN)}")
        found.append(Block(number, language, "".join(inside), title[1] if title else "", not_run[1] if not_run else ""))
    return found


def free_port() -> int:
    """A port that no one listens at, outside of the range from which the system takes ports for others."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("", port))
            return port


def with_free_ports(texts: Iterable[str]) -> list[str]:
    """The texts with the same free port in place of each port that examples use."""
    free: dict[str, str] = {}

    def replaced(found: re.Match[str]) -> str:
        return free.setdefault(found[0], str(free_port()))

    return [PORTS.sub(replaced, text) for text in texts]


def write_titled(blocks: Iterable[Block], folder: Path) -> None:
    """Write the blocks that are files into a page's folder."""
    for block in blocks:
        if block.title:
            path = folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, "utf-8")


def variables(folder: Path, **others: str) -> dict[str, str]:
    """The environment of an example: this one's commands first, its folder as home."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return environment(HOME=str(folder), PATH=path, SCALER_SCHEDULER_PYTHON=sys.executable, **others)


def in_a_docstring(text: str, address: str) -> str:
    """A docstring's example as a program that uses this scheduler. It may use a `client` that it does not make."""
    if "scaler_client" not in text:
        text = "from scaler_client import Client\nclient = Client()\n" + text
    return text.replace("tcp://127.0.0.1:2345", address)


def run_python(block: Block, folder: Path, address: str) -> None:
    """Run a block as a program, and compare what it prints with its comments."""
    name = block.title or f"line_{block.line}.py"
    (text,) = with_free_ports([block.text])
    (folder / name).write_text(text, "utf-8")
    ended = subprocess.run(
        [sys.executable, name],
        env=variables(folder, SCALER_ADDRESS=address),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert ended.returncode == 0, ended.stderr
    expected = PRINTED.findall(block.text)
    if expected:
        assert ended.stdout.splitlines() == expected


def run_shell(blocks: Iterable[Block], folder: Path, seconds: float = SESSION_SECONDS) -> str:
    """Run blocks as one session of a shell, end what it has left in the background, and return its output."""
    blocks = list(blocks)
    texts = with_free_ports(block.text for block in blocks)
    parts = [f"echo '### line {block.line}'\n{text}" for block, text in zip(blocks, texts)]
    script = folder / "session.sh"
    script.write_text("set -eu -o pipefail\n" + "\n".join(parts), "utf-8")
    log = folder / "session.log"
    with open(log, "w") as output:
        shell = subprocess.Popen(
            ["bash", str(script)],
            env=variables(folder),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            status = shell.wait(seconds)
        except subprocess.TimeoutExpired:
            status = -1
        finally:
            end_group(shell.pid)
            shell.wait()
    text = log.read_text("utf-8", "replace")
    assert status == 0, ("a command took too long\n" if status == -1 else "") + text
    return text


def is_group_alive(group: int) -> bool:
    """Whether a process of the group is left. A zombie, which waits for its parent alone, does not count."""
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                return True
    return False


def end_group(group: int) -> None:
    """End the processes of a group, orderly if they can."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGTERM)
    try:
        wait_until(lambda: not is_group_alive(group), END_SECONDS, "the session's processes end")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
