"""Completion of options in real shells."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

CASES = {
    "options": ("scaler_scheduler --ev", {"--event-loop"}),
    "several options": (
        "scaler_cluster --logging-",
        {"--logging-level", "--logging-paths", "--logging-config-file"},
    ),
    "of the alias": ("scaler_worker --num", {"--num-of-workers"}),
    "both sides of a switch": ("scaler_scheduler --no-p", {"--no-protected", "--no-priority-across"}),
    "choices": ("scaler_scheduler --event-loop ", {"zmq", "builtin", "uvloop"}),
    "choices that begin so": ("scaler_cluster -n 4 --logging-level W", {"WARNING"}),
    "files": ("scaler_scheduler --config sch", {"scheduler.toml"}),
    "files to log to": ("scaler_cluster --logging-paths sch", {"scheduler.toml"}),
    "of scaler_ui": ("scaler_ui --window-", {"--window-seconds", "--window-tasks"}),
    "commands": ("scaler_client sta", {"status"}),
    "options of a command": ("scaler_client story --j", {"--json"}),
    "choices of a command": ("scaler_client workers --sort me", {"memory"}),
    "files of a command": ("scaler_client dump oth", {"other.toml"}),
    "the script of the doctor": ("scaler_client doctor --script oth", {"other.toml"}),
    "of the exporter": ("scaler_exporter --po", {"--port"}),
    "commands for keys": ("scaler_scheduler key", {"keygen"}),
    "options behind an address": ("scaler_scheduler tcp://127.0.0.1:1 --ev", {"--event-loop"}),
    "options of a command for keys": ("scaler_scheduler authorize --n", {"--name"}),
    "roles": ("scaler_scheduler keygen keys --as ", {"client", "worker", "monitor"}),
    "a role behind a folder and a file": ("scaler_scheduler authorize keys other.toml --as mo", {"monitor"}),
    "folders to make keys in": ("scaler_scheduler keygen ke", {"keys"}),
    "folders of keys": ("scaler_scheduler list ", {"keys", "kin"}),
    "folders of a cluster's keys": ("scaler_cluster --keys ki", {"kin"}),
    "files with a key": ("scaler_scheduler authorize keys oth", {"other.toml"}),
    "names of keys": ("scaler_scheduler revoke keys ", {"alice", "bob"}),
    "names with a prefix": ("scaler_scheduler revoke keys al", {"alice"}),
    "files to check": ("scaler_cluster --check-config clu", {"cluster.toml"}),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("scheduler.toml", "cluster.toml", "other.toml"):
        (tmp_path / name).touch()
    for name in ("keys", "kin"):
        (tmp_path / name).mkdir()
    strange = f"client {'2' * 64} $(touch${{IFS}}touched)\n"  # a name with a command substitution
    text = f"# Who may connect\nclient {'0' * 64} alice\nworker {'1' * 64} bob\n{strange}"
    (tmp_path / "keys" / "authorized").write_text(text)
    return tmp_path


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(("typed", "wanted"), CASES.values(), ids=CASES)
def test_bash(documents: Path, folder: Path, typed: str, wanted: set[str]) -> None:
    words = typed.split(" ")
    program = words[0]
    script = f"""
        source {shlex.quote(str(documents / "completions" / "bash" / program))}
        COMP_WORDS=({" ".join(word or "''" for word in words)}) COMP_CWORD={len(words) - 1}
        complete=$(complete -p {program} | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
        $complete {program} "${{COMP_WORDS[-1]}}" "${{COMP_WORDS[-2]}}"
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    ran = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=60)
    assert {word.removesuffix("/") for word in ran.stdout.split()} == wanted, ran.stderr
    assert not (folder / "touched").exists()


class Terminal:
    """A zsh on a pseudo terminal."""

    def __init__(self, folder: Path, completions: Path) -> None:
        self._text = ""
        self.pid, self._screen = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            environ = {"PATH": os.environ["PATH"], "TERM": "dumb", "HOME": str(folder), "COLUMNS": "200"}
            os.execvpe("zsh", ["zsh", "-f", "-i"], environ)
        self.type(
            f"fpath=({shlex.quote(str(completions))} $fpath); autoload -U compinit; compinit -u -D; unsetopt beep\n"
        )
        self.type("bindkey '^I' complete-word; setopt listpacked; PS1=; print rea''dy\n")
        self.read_until("ready")

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def read_until(self, *wanted: str) -> str:
        """The output since the last call, until it contains all wanted texts."""
        deadline = time.monotonic() + 30
        while not all(word in self._text for word in wanted):
            assert time.monotonic() < deadline, f"{wanted} did not come: {self._text}"
            if select.select([self._screen], [], [], 1)[0]:
                self._text += os.read(self._screen, 65536).decode(errors="replace")
        text, self._text = self._text, ""
        return text

    def close(self) -> None:
        os.close(self._screen)  # ends the shell by a hangup
        os.waitpid(self.pid, 0)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed (Debian: zsh)")
@pytest.mark.parametrize(("typed", "wanted"), CASES.values(), ids=CASES)
def test_zsh(documents: Path, folder: Path, typed: str, wanted: set[str]) -> None:
    terminal = Terminal(folder, documents / "completions" / "zsh")
    try:
        terminal.type(f"{typed}\t\t")
        if len(wanted) == 1:
            wanted = {typed.rpartition(" ")[0] + " " + word for word in wanted}  # the line that was typed
        terminal.read_until(*wanted)
        assert not (folder / "touched").exists()
    finally:
        terminal.close()
