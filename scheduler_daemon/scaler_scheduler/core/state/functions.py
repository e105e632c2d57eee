"""Functions and their table: each once, named by the digest of its bytes, whoever brought it."""

from typing import Dict, Iterator, List, Tuple

UNKNOWN_NS = -1
"""Mean run time of a function that has not returned yet."""

MINIMUM_NS = 500
"""What a task costs a worker at least, whatever its clock said."""

UNKNOWN_SIZE = 0
SMALL = 1
LARGE = 2
"""How large the kept results of a function are: none was seen yet; all were small; one was large."""

LARGE_BYTES = 256 * 1024
"""From this size on bytes that workers share are a file of their host."""

TASK_NAMES = 4
"""Names given to its tasks that a function remembers."""

_HISTORY = 64
"""Results that the mean remembers: a function's run time may drift, and one odd task must not mislead for long."""


class Function:
    __slots__ = (
        "digest",
        "done_tasks",
        "failed_tasks",
        "task_names",
        "clients",
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

    def __init__(self, number: int, digest: bytes, name: str, kind: str, payload: bytes) -> None:
        self.number = number
        self.digest = digest
        self.name = name
        self.kind = kind
        """Which workers can run it: those that have named this kind, and those that have named none."""
        self.payload = payload
        self.clients: Dict[int, int] = {}
        """Clients that may still submit tasks of it, by incarnation, with how many of their own numbers name it."""
        self.tasks = 0
        """Its unresolved tasks."""
        self.done_tasks = 0
        """Results of it that somebody waited for."""
        self.run_ns = 0
        """Nanoseconds that these have taken in all."""
        self.failed_tasks = 0
        """Tasks of it that ended without a value."""
        self.task_names: Tuple[str, ...] = ()
        """Names of their own that tasks of it came with, the newest first."""
        self.mean_ns = UNKNOWN_NS
        self.sample_count = 0
        self.kept_size = UNKNOWN_SIZE
        """Of its results that are kept: one of the three sizes."""

    def add_task_name(self, name: str) -> None:
        """Tasks of it have come with a name of their own."""
        if not self.task_names or self.task_names[0] != name:
            others = [given for given in self.task_names if given != name]
            self.task_names = (name, *others[: TASK_NAMES - 1])

    def count_results(self, total_ns: int, count: int) -> None:
        """So many results have come, which took that much together."""
        self.done_tasks += count
        self.run_ns += total_ns
        self.observe(total_ns, count)

    def observe(self, total_ns: int, count: int) -> None:
        """Learn from `count` tasks that took `total_ns` together."""
        mean = max(MINIMUM_NS, total_ns // count)
        if self.mean_ns < 0:
            self.mean_ns = mean
            self.sample_count = min(count, _HISTORY)
            return
        weight = self.sample_count + count
        self.mean_ns += (mean - self.mean_ns) * count // weight
        self.sample_count = min(weight, _HISTORY)

    def observe_kept_size(self, size: int) -> None:
        """Learn from a result that is kept."""
        if size >= LARGE_BYTES:
            self.kept_size = LARGE
        elif not self.kept_size:
            self.kept_size = SMALL

    @property
    def is_unused(self) -> bool:
        return not self.tasks and not self.clients


class FunctionTable:
    def __init__(self) -> None:
        self._by_digest: Dict[bytes, Function] = {}
        self._next_number = 1
        self._unused: List[Function] = []

    def __iter__(self) -> Iterator[Function]:
        return iter(list(self._by_digest.values()))

    def __len__(self) -> int:
        return len(self._by_digest)

    def add(self, digest: bytes, name: str, kind: str, payload: bytes) -> Function:
        """The function of this digest, kept from now on."""
        function = self._by_digest.get(digest)
        if function is None:
            function = Function(self._next_number, digest, name, kind, payload)
            self._next_number += 1
            self._by_digest[digest] = function
        return function

    def add_client(self, function: Function, client: int) -> None:
        """One more number of the client, which is named by its incarnation, names this function."""
        function.clients[client] = function.clients.get(client, 0) + 1

    def remove_client(self, function: Function, client: int) -> None:
        """One of these names it no longer."""
        held = function.clients.pop(client) - 1
        if held:
            function.clients[client] = held
        elif function.is_unused:
            self._unused.append(function)

    def remove_task(self, function: Function) -> None:
        """One of its tasks is over."""
        function.tasks -= 1
        if function.is_unused:
            self._unused.append(function)

    def remove_unused(self) -> List[Function]:
        """Drop, and return, the functions that no client holds and no task names any more."""
        if not self._unused:
            return []
        # Once each: a function may have been unused, taken up and unused again meanwhile.
        removed = [function for function in dict.fromkeys(self._unused) if function.is_unused]
        self._unused = []
        for function in removed:
            del self._by_digest[function.digest]
        return removed
