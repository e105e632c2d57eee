"""A terminal for tests: a separate tmux server, with functions to type keys and to read the screen."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.integration.commands import environment
from tests.waiting import wait_until

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux: apt-get install tmux")


class Terminal:
    """A shell in a terminal with this number of columns and lines."""

    def __init__(self, folder: Path, columns: int = 80, lines: int = 24, **variables: str) -> None:
        self._tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        size = ["-x", str(columns), "-y", str(lines)]
        shell = "PS1='$ ' exec sh"
        subprocess.run(
            [*self._tmux, "new-session", "-d", *size, shell],
            env=environment(**{"LC_ALL": "C.UTF-8", "TERM": "xterm", **variables}),
            check=True,
            timeout=20,
        )

    def wait_for_shell(self) -> None:
        self.wait_for(r"^\$ ?$")

    def _run(self, *arguments: str) -> str:
        done = subprocess.run([*self._tmux, *arguments], check=True, timeout=20, capture_output=True, text=True)
        return done.stdout

    def type(self, text: str) -> None:
        """Type this text literally."""
        self._run("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Press keys, named as in tmux: Enter, Escape, C-c, PageDown."""
        self._run("send-keys", *keys)

    def enter(self, command: str) -> None:
        self.type(command)
        self.press("Enter")

    def wheel(self, is_down: bool) -> None:
        """Turn the mouse's wheel at the upper left corner, as terminals report it."""
        code = 65 if is_down else 64
        self.type(f"\x1b[<{code};2;14M")

    def screen(self) -> str:
        return self._run("capture-pane", "-p", "-J")  # -J: lines that the terminal has wrapped are one

    def looks(self) -> str:
        """The screen with its colours."""
        return self._run("capture-pane", "-p", "-e")

    def state(self, of: str) -> str:
        """Return a value of tmux about the terminal, such as `alternate_on`."""
        return self._run("display-message", "-p", f"#{{{of}}}").strip()

    def resize(self, columns: int, lines: int) -> None:
        self._run("resize-window", "-x", str(columns), "-y", str(lines))

    def wait_for(self, pattern: str, seconds: float = 20.0) -> str:
        """Wait until the screen matches the pattern; return the screen with its lines."""
        seen = ""

        def has_it() -> bool:
            nonlocal seen
            seen = self.screen()
            return re.search(pattern, seen, re.MULTILINE) is not None

        try:
            wait_until(has_it, seconds, pattern)
        except AssertionError:
            raise AssertionError(f"no {pattern!r} on the screen:\n{seen}") from None
        return seen

    def close(self) -> None:
        if os.path.exists(self._tmux[2]):
            subprocess.run([*self._tmux, "kill-server"], timeout=20, capture_output=True, check=False)
