"""The findings of a run, right or wrong, each with its section of PROTOCOL.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class WrongError(Exception):
    """The peer under test violates the protocol. The text describes the violation."""


class OverError(Exception):
    """The conversation with this peer can't continue. The findings say why."""


def _print_now(line: str) -> None:
    print(line, flush=True)


class Findings:
    """Collects findings, and shows each at once.

    Args:
        show: called with each line.
    """

    def __init__(self, show: Callable[[str], object] = _print_now) -> None:
        self._show = show
        self.right: list[str] = []
        self.wrong: list[str] = []
        self.left_out: list[str] = []

    @contextmanager
    def check(self, section: str, what: str) -> Iterator[None]:
        """Record the block as right, or as wrong if it raises WrongError. The run continues in both cases."""
        line = f"[{section}] {what}"
        try:
            yield
        except WrongError as error:
            self._note(self.wrong, "WRONG", f"{line}: {error}")
        else:
            self._note(self.right, "right", line)

    def leave_out(self, section: str, what: str, why: str) -> None:
        self._note(self.left_out, "left out", f"[{section}] {what}: {why}")

    def tell(self, text: str) -> None:
        """Show a note that is neither right nor wrong."""
        self._show(f"{'note':<9} {text}")

    def summary(self) -> str:
        return f"{len(self.right)} right, {len(self.wrong)} wrong, {len(self.left_out)} left out"

    def _note(self, where: list[str], verdict: str, line: str) -> None:
        where.append(line)
        self._show(f"{verdict:<9} {line}")


def must(condition: object, text: str) -> None:
    """Check a condition.

    Raises:
        WrongError: it does not hold; with this text.
    """
    if not condition:
        raise WrongError(text)
