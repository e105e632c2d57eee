"""The systems that are compared, and the rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A system."""

    name: str
    title: str
    environment: str
    """The folder in `.venv-peers`."""
    module: str
    """In `systems/`; its class is the one of the name `class_name`."""
    class_name: str
    distribution: str
    """Whose version is shown; empty means Python's."""
    how: str
    """What of the system is used: a sentence or two."""


SYSTEMS = {
    entry.name: entry
    for entry in (
        Entry(
            "scaler", "Scaler", "scaler", "ours", "Scaler", "scaler-client",
            "`SchedulerClusterCombo`, the scheduler under PyPy if there is one. The array is sent by `send_object`.",
        ),
        Entry(
            "pool", "multiprocessing.Pool", "standard", "pools", "MultiprocessingPool", "",
            "`apply_async`, and `map` with its own chunk size. The array is in `SharedMemory`.",
        ),
        Entry(
            "executor", "ProcessPoolExecutor", "standard", "pools", "StandardExecutor", "",
            "`submit`, and `map` with the chunk size of `multiprocessing.Pool`. The array is in `SharedMemory`.",
        ),
        Entry(
            "loky", "loky", "loky", "loky_executor", "Loky", "loky",
            "`get_reusable_executor`, with the same chunk size. The array is an argument of each task.",
        ),
        Entry(
            "dask", "Dask distributed", "dask", "dask_distributed", "Dask", "distributed",
            "A scheduler and workers of one thread. `map` sends 4 batches a worker; the array is sent by `scatter`.",
        ),
        Entry(
            "ray", "Ray", "ray", "ray_tasks", "Ray", "ray",
            "Remote functions on one node. `map` is `ray.util.multiprocessing.Pool`; the array is sent by `put`. The "
            "program itself keeps most of a waiting task.",
        ),
        Entry(
            "ipyparallel", "ipyparallel", "ipyparallel", "ipyparallel_views", "Ipyparallel", "ipyparallel",
            "A load-balanced view, `map` in chunks. The array is pushed to each engine.",
        ),
        Entry(
            "opengris", "opengris-scaler", "opengris", "opengris", "Opengris", "opengris-scaler",
            "`SchedulerClusterCombo`. The array is sent by `send_object`. Its memory is that of its scheduler and its "
            "object storage.",
        ),
        Entry(
            "hyperqueue", "HyperQueue", "hyperqueue", "hyperqueue_jobs", "HyperQueue", "hyperqueue",
            "`LocalCluster` of its Python library, one worker of 4 cores. A task is a program: `true`, `sleep`, or "
            "Python. `map` is one job of many tasks. The library asks once a second whether a job has "
            "ended.",
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """A line of the table."""

    name: str
    title: str
    unit: str
    is_more_better: bool = False


@dataclass(frozen=True)
class Row:
    """One kind of work, which one process of each system does, with its figures."""

    name: str
    figures: tuple[Figure, ...]
    seconds: float = 60.0
    """The time limit of one system's process."""
    processes: int = 1
    """How many processes do it, one after the other; each gives all its figures."""
    is_new: bool = False
    """Whether the last whole run, which the page shows, may lack it."""


ROWS = {
    row.name: row
    for row in (
        Row("submit", (Figure("submit", "no-op tasks, submitted one by one", "tasks/s", True),)),
        Row("map", (Figure("map", "no-op tasks by map", "tasks/s", True),)),
        Row(
            "one",
            (
                Figure("one", "one task at a time, from submit to result: median", "ms"),
                Figure("one_p99", "one task at a time: 99 of 100 take at most", "ms"),
            ),
        ),
        Row("sleep", (Figure("sleep", "1,000 tasks of 10 ms: share of the ideal speed", "%", True),), 90.0),
        Row("graph", (Figure("graph", "a graph of 10,000 nodes with 3 inputs each", "nodes/s", True),), 90.0),
        Row("metg", (Figure("metg", "METG(50 %) of a stencil of width 8", "ms"),), 150.0),
        Row("array", (Figure("array", "an array of 100 MB to 16 tasks, which sum it", "s"),)),
        Row(
            "result",
            (
                Figure("result_8", "an array of 8 MB that a task makes: until the program has it", "ms"),
                Figure("result_80", "an array of 80 MB that a task makes: until the program has it", "ms"),
            ),
            is_new=True,
        ),
        Row("start", (Figure("start", "from nothing to the first result", "s"),), processes=3),
        Row(
            "memory",
            (
                Figure("memory", "scheduler's memory for each of 100,000 waiting tasks", "bytes"),
                Figure("program_memory", "the program's memory for each of 100,000 waiting tasks", "bytes"),
            ),
            90.0,
        ),
    )
}
