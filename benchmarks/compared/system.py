"""What a system is asked to do. Each module of `systems/` does it as the documents of its library recommend."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

from ..graph_shapes import Graph
from ..workload import spin


class UnableError(Exception):
    """The system cannot do this work. The text says why, as the end of a sentence about the system."""


class System(ABC):
    """A running system with a number of worker processes."""

    scheduler_is = "it has no scheduler: waiting tasks are in the program"
    """Why there are no `scheduler_processes`."""

    @abstractmethod
    def __init__(self, workers: int) -> None:
        """Start the system; return when all workers can run tasks."""

    @abstractmethod
    def close(self) -> None:
        """End all processes of the system."""

    @abstractmethod
    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Submit one call; return its handle."""

    @abstractmethod
    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """Wait for all calls; return their results in order."""

    def map(self, function: Callable[[int], Any], items: Sequence[int]) -> list[Any]:
        """Return the result of each item, by the way that the documents recommend for many short calls."""
        raise UnableError("it has no map")

    def get(self, graph: Graph, keys: Sequence[Hashable]) -> list[Any]:
        """Run a graph (a dict of tuples: a function, then values and keys of inputs); return the values of the keys."""
        raise UnableError("it has no dependencies between tasks")

    def share(self, function: Callable[[Any], Any], array: Any, tasks: int) -> list[Any]:
        """Run the function so many times on an array; return the results."""
        return self.gather([self.submit(function, array) for _ in range(tasks)])

    def stencil(self, width: int, steps: int, seconds: float) -> None:
        """Run a stencil: each task computes for some seconds, and reads its own and both neighbours' previous values.

        A system without dependencies between tasks gathers each step before it submits the next.
        """
        values = [0] * width
        for _ in range(steps):
            values = self.gather([self.submit(spin, seconds, *values[max(0, n - 1) : n + 2]) for n in range(width)])

    def scheduler_processes(self) -> list[int]:
        """The ids of the processes that keep waiting tasks, besides the program. Empty: the program keeps them."""
        return []


def child_processes(*names: str) -> list[int]:
    """The ids of the processes below this one whose command line has one of the names."""
    found = []
    waiting = [os.getpid()]
    while waiting:
        for task in Path(f"/proc/{waiting.pop()}/task").iterdir():
            for child in (task / "children").read_text().split():
                waiting.append(int(child))
                command = Path(f"/proc/{child}/cmdline").read_bytes().decode()
                if any(name in command for name in names):
                    found.append(int(child))
    return found
