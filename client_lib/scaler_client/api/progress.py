"""A progress bar for `map`. It needs tqdm, which is an extra."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sized
from typing import Any

from ..commands.install_hints import install_hint

REFRESH_SECONDS = 0.1
"""The time between two updates of the bar."""


class ProgressBar:
    """A bar that counts tasks. In a notebook it is a widget.

    Args:
        iterable: the arguments of the tasks; its length is the total, if it has one.

    Raises:
        ImportError: tqdm is not installed.
    """

    def __init__(self, iterable: Iterable[Any]) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise ImportError(f"progress=True needs tqdm: {install_hint('progress')}") from error
        total = len(iterable) if isinstance(iterable, Sized) else None
        self._bar = tqdm(total=total, unit=" tasks")

    def show(self, done: int) -> None:
        """Show the number of tasks that are done."""
        self._bar.update(done - self._bar.n)

    def show_total(self, total: int) -> None:
        """Set the total, if the iterable has no length."""
        if self._bar.total != total:
            self._bar.total = total
            self._bar.refresh()

    def close(self) -> None:
        self._bar.close()


@contextlib.contextmanager
def progress_bar(progress: bool, iterable: Iterable[Any]) -> Iterator[ProgressBar | None]:
    """Show a bar during the block if `progress` is True.

    Raises:
        ImportError: `progress` is True, but tqdm is not installed.
    """
    if not progress:
        yield None
        return
    bar = ProgressBar(iterable)
    try:
        yield bar
    finally:
        bar.close()
