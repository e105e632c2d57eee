"""What a run has found right and wrong, each by the part of PROTOCOL.md that says it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class WrongError(Exception):
    """What came is not what the protocol says; the text says what did."""


class OverError(Exception):
    """With this peer there is nothing more to find out; why is among the findings."""


def _print_now(line: str) -> None:
    print(line, flush=True)


class Findings:
    """
    Args:
        show: is given each line as it comes.
    """

    def __init__(self, show: Callable[[str], object] = _print_now) -> None:
        self._show = show
        self.right: list[str] = []
        self.wrong: list[str] = []
        self.left_out: list[str] = []

    @contextmanager
    def check(self, section: str, what: str) -> Iterator[None]:
        """The block finds out about this; what it raises of WrongError is noted, and the run goes on."""
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
        """For whoever waits: it is neither right nor wrong."""
        self._show(f"{'note':<9} {text}")

    def summary(self) -> str:
        return f"{len(self.right)} right, {len(self.wrong)} wrong, {len(self.left_out)} left out"

    def _note(self, where: list[str], verdict: str, line: str) -> None:
        where.append(line)
        self._show(f"{verdict:<9} {line}")


def must(condition: object, text: str) -> None:
    """Raise WrongError with the text where the condition does not hold."""
    if not condition:
        raise WrongError(text)
