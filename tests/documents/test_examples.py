"""Every Python and shell example of documents and docstrings is run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.documents import examples
from tests.documents.examples import Block

from scaler_client import LocalCluster

PAGES = {name: examples.blocks_of(text) for name, text in examples.documents().items()}
PYTHON = [
    (page, block) for page, blocks in PAGES.items() for block in blocks if block.language == "python" and block.is_run
]
SHELL = [page for page, blocks in PAGES.items() if any(block.language == "sh" and block.is_run for block in blocks)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=2) as cluster:
        yield cluster


@pytest.mark.parametrize(("page", "block"), PYTHON, ids=[f"{page}:{block.line}" for page, block in PYTHON])
def test_python_example_runs(cluster: LocalCluster, tmp_path: Path, page: str, block: Block) -> None:
    examples.write_titled(PAGES[page], tmp_path)
    if ".py:" in page:
        block = replace(block, text=examples.in_a_docstring(block.text, cluster.address))
    examples.run_python(block, tmp_path, cluster.address)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", SHELL)
def test_shell_session_of_a_page_runs(tmp_path: Path, page: str) -> None:
    examples.write_titled(PAGES[page], tmp_path)
    examples.run_shell([block for block in PAGES[page] if block.language == "sh" and block.is_run], tmp_path)


def test_python_that_is_not_run_compiles() -> None:
    for page, blocks in PAGES.items():
        for block in blocks:
            if block.language == "python" and block.not_run:
                compile(block.text, f"{page}:{block.line}", "exec")


def test_docstrings_are_found() -> None:
    source = (
        'class C:\n    """Says.\n\n    ```python\n    x\n    ```\n    """\n    def f(self):\n        """None here."""\n'
    )
    assert examples.docstrings("m.py", source) == {"m.py:C": "Says.\n\n```python\nx\n```"}
    assert any(".py:Client" in name for name in PAGES)


def test_blocks_are_found() -> None:
    text = 'a\n```python title="b.py"\nx = 1\n```\n  ```sh no-run: it asks for root\n  y\n  ```\n````text\n```\n````\n'
    assert examples.blocks_of(text) == [
        Block(2, "python", "x = 1\n", title="b.py"),
        Block(5, "sh", "y\n", not_run="it asks for root"),
        Block(8, "text", "```\n"),
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("```python\nx\n", "line 1: the block has no end"),
        ("a\n```python skip\n```\n", "line 2: 'skip' is neither"),
        ("```sh no-run\n```\n", "line 1: 'no-run' is neither"),
        ("```console\n```\n", "line 1: 'console' is none of"),
    ],
)
def test_wrong_block_is_named(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        examples.blocks_of(text)


def test_ports_are_replaced_alike() -> None:
    first, second = examples.with_free_ports(["a 127.0.0.1:2345 b", "/tmp/127.0.0.1_2345_monitor 12345 2345.0"])
    port = first.split(":")[1].split()[0]
    assert port != "2345"
    assert second == f"/tmp/127.0.0.1_{port}_monitor 12345 {port}.0"


def test_program_that_prints_something_else_fails(cluster: LocalCluster, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        examples.run_python(Block(1, "python", "print(1)  # 2\n"), tmp_path, cluster.address)


def test_shell_session_that_fails_shows_its_output(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="### line 7\nit said this"):
        examples.run_shell([Block(7, "sh", "echo it said this\nfalse\n")], tmp_path)


def test_background_processes_of_a_session_end(tmp_path: Path) -> None:
    examples.run_shell([Block(1, "sh", "sleep 100 & echo $! >number\n"), Block(9, "sh", "cat number\n")], tmp_path)
    number = int((tmp_path / "number").read_text())
    assert not Path(f"/proc/{number}").exists() or "sleep" not in Path(f"/proc/{number}/cmdline").read_text()


def test_session_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="took too long"):
        examples.run_shell([Block(1, "sh", "sleep 100\n")], tmp_path, seconds=0.2)
