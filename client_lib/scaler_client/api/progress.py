"""A progress bar for `map`: tqdm's, which is an extra."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sized
from typing import Any

from ..commands.install_hints import install_hint

REFRESH_SECONDS = 0.1
"""Between two looks at how many tasks are done."""


class ProgressBar:
    """A bar that counts tasks; in a notebook it is a widget.

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
        """So many are done."""
        self._bar.update(done - self._bar.n)

    def show_total(self, total: int) -> None:
        """So many there are, if the iterable could not tell."""
        if self._bar.total != total:
            self._bar.total = total
            self._bar.refresh()

    def close(self) -> None:
        self._bar.close()


@contextlib.contextmanager
def progress_bar(progress: bool, iterable: Iterable[Any]) -> Iterator[ProgressBar | None]:
    """A bar for the time of the block, if one is wanted. Raises as ProgressBar does."""
    if not progress:
        yield None
        return
    bar = ProgressBar(iterable)
    try:
        yield bar
    finally:
        bar.close()
