"""The README's Python, run as it stands there.

A block is a program: it runs in a process of its own, with SCALER_ADDRESS naming a local cluster. Where comments behind
its prints say what they print, that is what it must print. A comment `<!-- not run: why -->` before a block spares it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.commands import environment

from scaler_client import LocalCluster

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCK = re.compile(r"^(<!-- not run: .+ -->\n+)?```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)
SECONDS = 100


def blocks(text: str) -> dict[str, str]:
    """The blocks that can be run, by the line on which they begin."""
    return {
        f"line {text.count(chr(10), 0, found.start(2))}": found[2] for found in BLOCK.finditer(text) if not found[1]
    }


BLOCKS = blocks(README.read_text("utf-8"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=2) as cluster:
        yield cluster


def test_blocks_are_found() -> None:
    text = "a\n```python\nx = 1\n```\n<!-- not run: it needs a GPU -->\n```python\ny\n```\n```sh\nz\n```\n"
    assert blocks(text) == {"line 2": "x = 1\n"}
    assert len(BLOCKS) > 5


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block(cluster: LocalCluster, tmp_path: Path, name: str) -> None:
    program = tmp_path / "example.py"
    program.write_text(BLOCKS[name], "utf-8")
    ended = subprocess.run(
        [sys.executable, str(program)],
        env=environment(SCALER_ADDRESS=cluster.address, SCALER_SCHEDULER_PYTHON=sys.executable),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert ended.returncode == 0, ended.stderr
    expected = PRINTED.findall(BLOCKS[name])
    if expected:
        assert ended.stdout.splitlines() == expected
