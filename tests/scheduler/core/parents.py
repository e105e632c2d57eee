"""A task that waits for tasks of its own, as its worker's nested client submits them. Runs under PyPy and CPython."""

from __future__ import annotations

from tests.scheduler.core.harness import SECOND, C, W, joined, running

N, N2 = b"nested", b"nested 2"
PARENT = (11, 1, 1)


def child(task_id, attempt=1):
    return (99, task_id, attempt)


def nested(core):
    """A parent runs on the worker, and its nested client has the same function 1, which takes long, so that nothing is
    prefetched."""
    joined(core)
    core.teach(C, W, 1, b"f", SECOND, 0)
    running(core)
    core.client(N, 99, worker=22)
    core.function(N, 1, b"f")


def parent_waits(core, *ids):
    """The parent has submitted these tasks and waits for them."""
    nested(core)
    core.submit(N, ids, depth=1)
    core.suspended(N, PARENT)


def held(core, incarnation=22):
    return core.scheduler.tables.workers.find(incarnation).task_count
