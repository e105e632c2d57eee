"""A one-file program like the scheduler's, with a shell script instead of PyPy."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

PACKAGING = Path(__file__).resolve().parents[2] / "packaging"
NAME = "scaler_scheduler"
PROGRAM = """#!/bin/sh
[ "$4" = -c ] && exit 0
echo "pid $$"
echo "folder ${0%/bin/*}"
shift 4
printf 'argument %s\\n' "$@"
[ "${1-}" = echo ] && cat
exit 7
"""
MISFIT = """#!/bin/sh
echo "$0: /lib/libc.so.6: version \\`GLIBC_9.9' not found (required by $0)" >&2
exit 1
"""


def make_file(folder: Path, program: str = PROGRAM, version: str = "1.2.3", padding: int = 1000) -> Path:
    """A file that runs `program`, with `padding` further bytes in its archive."""
    tree = folder / f"tree-{version}"
    (tree / "bin").mkdir(parents=True)
    (tree / "app").mkdir()
    (tree / "bin" / NAME).write_text(program)
    (tree / "bin" / NAME).chmod(0o755)
    (tree / "app" / "__main__.py").write_text(f"# {version}\n")
    (tree / "app" / "padding").write_bytes(os.urandom(padding))
    file = folder / f"{NAME}-{version}"
    subprocess.run(
        [str(PACKAGING / "one_file" / "pack.sh"), str(tree), NAME, version, str(file)],
        check=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "NURSERY": "32M", "GROWTH": "1.4", "GLIBC": "2.36"},
        timeout=60,
    )
    return file


class Starter:
    """Starts a file with only the given variables, and a temporary folder of its own."""

    def __init__(self, file: Path, temporary: Path) -> None:
        self.file = file
        self.temporary = temporary
        temporary.mkdir()

    def start(self, *arguments: str, before: tuple[str, ...] = (), **variables: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*before, str(self.file), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                "PATH": os.environ["PATH"],
                "TMPDIR": str(self.temporary),
                **{name: str(value) for name, value in variables.items()},
            },
        )

    def run(self, *arguments: str, before: tuple[str, ...] = (), **variables: object) -> Outcome:
        return Outcome(self.start(*arguments, before=before, **variables))


class Outcome:
    """The result of a start that has ended."""

    def __init__(self, process: subprocess.Popen[str], text: str = "") -> None:
        with process:
            self.output, self.errors = process.communicate(text, timeout=60)
        self.status = process.returncode
        self.process = process.pid
        lines = [line.partition(" ") for line in self.output.splitlines()]
        self.said = {key: value for key, _, value in lines}

    @property
    def folder(self) -> Path:
        return Path(self.said["folder"])
