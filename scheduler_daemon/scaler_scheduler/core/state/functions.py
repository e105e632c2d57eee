"""Functions and their table. Each function is kept once, under the digest of its bytes, even if several clients send
it."""

from __future__ import annotations

from collections.abc import Iterator

UNKNOWN_NS = -1
"""The mean run time of a function that has not returned yet."""

MINIMUM_NS = 500
"""The least cost of a task for a worker, even if its clock measured less."""

UNKNOWN_SIZE = 0
TINY = 1
SMALL = 2
LARGE = 3
"""The size class of a function's largest kept result. UNKNOWN_SIZE: none was seen yet."""

LARGE_BYTES = 64 * 1024
"""Shared bytes of at least this size are a file on the host."""

SMALL_BYTES = 4 * 1024
"""While the scheduler's memory is scarce, kept results of at least this size are files too. The record of a smaller
one takes about as much memory as its bytes."""

KEPT_WEIGHT = 4
"""The last kept result counts as one of so many in the mean of their sizes."""

KEPT_TASK_NAMES = 4
"""The number of user-given task names that a function remembers."""

HARMLESS_RESULTS = 1000
"""A function that has ended a worker counts as harmless again after so many results."""

DEADLY_FUNCTIONS = 1000
"""So many functions that have ended workers are remembered after their clients have left."""

MOST_ROW_NS = 20_000_000
"""A row of several calls counts with at most this run time in the mean. One call of a second says nothing about the
rows behind it. The client bounds its mean in the same way (`CallTime` of scaler_client)."""

RESULT_BYTE_NS = 1
"""What a byte of a result adds to the mean, in nanoseconds: about the time to pickle and send it. So the results of
the tasks that a worker holds are bounded like their run time, also for a client that does not read."""

_SAMPLE_LIMIT = 64
"""The weight limit of the mean. Run times may drift, and one unusual task must not distort the mean for long."""


class Function:
    """A function with its run times, its clients and its open tasks."""

    __slots__ = (
        "digest",
        "done_tasks",
        "failed_tasks",
        "task_names",
        "clients",
        "ends_workers",
        "environment",
        "further_calls",
        "kept_bytes",
        "kept_size",
        "kind",
        "mean_ns",
        "name",
        "number",
        "payload",
        "run_ns",
        "tasks",
        "sample_count",
    )

    def __init__(self, number: int, digest: bytes, name: str, kind: str, payload: bytes, environment: str = "") -> None:
        self.number = number
        self.digest = digest
        self.name = name
        self.kind = kind
        """The kind of function, with its environment (`kind_in`). Workers that list this kind can run it, and workers
        that list none."""
        self.environment = environment
        self.payload = payload
        self.clients: dict[int, int] = {}
        """The clients that may still submit tasks of it, by incarnation. The value counts the client's numbers for this
        function."""
        self.tasks = 0
        """Its open tasks."""
        self.further_calls = 0
        """Calls of its open tasks, beyond one a task."""
        self.done_tasks = 0
        """The number of its results that a task waited for."""
        self.run_ns = 0
        """The total run time of these results in nanoseconds."""
        self.failed_tasks = 0
        """Its tasks that ended without a value."""
        self.ends_workers = 0
        """Above 0: a worker's process has ended while it ran a task of it. So many more results must come until this
        does not count any more."""
        self.task_names: tuple[str, ...] = ()
        """User-given names of its tasks, the newest first."""
        self.mean_ns = UNKNOWN_NS
        """The mean cost of a call: its run time, and the bytes of its result (RESULT_BYTE_NS)."""
        self.sample_count = 0
        self.kept_size = UNKNOWN_SIZE
        """The size class of its kept results."""
        self.kept_bytes = 0
        """About the mean size of its last kept results."""

    def add_task_name(self, name: str) -> None:
        """Remember a user-given name of its tasks."""
        if not self.task_names or self.task_names[0] != name:
            others = [given for given in self.task_names if given != name]
            self.task_names = (name, *others[: KEPT_TASK_NAMES - 1])

    def count_results(self, total_ns: int, count: int, excess_ns: int, size: int) -> None:
        """Count results and learn from their total run time, without the excess of rows over MOST_ROW_NS, and from
        their bytes."""
        self.done_tasks += count
        self.run_ns += total_ns
        if self.ends_workers:
            self.ends_workers = max(0, self.ends_workers - count)
        self.observe(total_ns - excess_ns + size * RESULT_BYTE_NS, count)

    def observe(self, total_ns: int, count: int) -> None:
        """Learn from `count` tasks that took `total_ns` together."""
        mean = max(MINIMUM_NS, total_ns // count)
        if self.mean_ns < 0:
            self.mean_ns = mean
            self.sample_count = min(count, _SAMPLE_LIMIT)
            return
        weight = self.sample_count + count
        self.mean_ns += (mean - self.mean_ns) * count // weight
        self.sample_count = min(weight, _SAMPLE_LIMIT)

    def observe_kept_size(self, size: int, may_be_small: bool) -> None:
        """Learn from the size of a kept result. `may_be_small`: whether also a small one may be a file."""
        self.kept_bytes += (size - self.kept_bytes) // KEPT_WEIGHT if self.kept_size else size
        size_class = LARGE if size >= LARGE_BYTES else SMALL if size >= SMALL_BYTES else TINY
        self.kept_size = max(self.kept_size, size_class)
        if may_be_small:
            self.store_small()

    def store_small(self) -> None:
        """Let small results be files from now on. It is not taken back, because the workers of lost attempts may have
        written files at any time."""
        if self.kept_size == SMALL:
            self.kept_size = LARGE

    @property
    def may_store(self) -> bool:
        """Whether a kept result may be a file of its host. False if they are too small: the flag costs a column."""
        return self.kept_size == LARGE or self.kept_size == UNKNOWN_SIZE

    @property
    def is_unused(self) -> bool:
        return not self.tasks and not self.clients


class FunctionTable:
    """The functions by digest."""

    def __init__(self) -> None:
        self._by_digest: dict[bytes, Function] = {}
        self._next_number = 1
        self._unused: list[Function] = []
        self._deadly: dict[str, None] = {}
        """The names of the last functions that have ended workers. They outlive the functions: the client of a task
        ends with the task's worker, and the task that runs again has another one. The digests differ: a function that a
        task submits is pickled differently than in its program, though it is the same."""

    def __iter__(self) -> Iterator[Function]:
        return iter(list(self._by_digest.values()))

    def __len__(self) -> int:
        return len(self._by_digest)

    def find(self, digest: bytes) -> Function | None:
        """Return the function with this digest."""
        return self._by_digest.get(digest)

    def add(self, digest: bytes, name: str, kind: str, payload: bytes, environment: str = "") -> Function:
        """Return the function with this digest. It is added if it is new."""
        function = self._by_digest.get(digest)
        if function is None:
            function = Function(self._next_number, digest, name, kind, payload, environment)
            function.ends_workers = HARMLESS_RESULTS if name in self._deadly else 0
            self._next_number += 1
            self._by_digest[digest] = function
        return function

    def note_end_of_worker(self, function: Function) -> None:
        """Note that a worker's process has ended while it ran a task of this function. All functions of its name count
        as such."""
        for each in self._by_digest.values():
            if each.name == function.name:
                each.ends_workers = HARMLESS_RESULTS
        self._deadly[function.name] = None
        if len(self._deadly) > DEADLY_FUNCTIONS:
            del self._deadly[next(iter(self._deadly))]

    def add_client(self, function: Function, client: int) -> None:
        """Note that one more number of this client names the function."""
        function.clients[client] = function.clients.get(client, 0) + 1

    def remove_client(self, function: Function, client: int) -> None:
        """Note that one number of this client no longer names the function."""
        held = function.clients.pop(client) - 1
        if held:
            function.clients[client] = held
        elif function.is_unused:
            self._unused.append(function)

    def remove_task(self, function: Function) -> None:
        """Note that one of its tasks has ended."""
        function.tasks -= 1
        if function.is_unused:
            self._unused.append(function)

    def remove_unused(self) -> list[Function]:
        """Drop and return the functions that no client holds and no open task names."""
        if not self._unused:
            return []
        # A function may be in the list twice: unused, used, and unused again.
        removed = [function for function in dict.fromkeys(self._unused) if function.is_unused]
        self._unused = []
        for function in removed:
            del self._by_digest[function.digest]
        return removed
