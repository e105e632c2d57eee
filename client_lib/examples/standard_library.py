"""Parse this machine's Python standard library in parallel, and print what is in it.

    python client_lib/examples/standard_library.py [FOLDER ...]

starts a scheduler and four workers as real processes, gives them one task a file, and does the same work once more in
this process to compare. Without a FOLDER it takes the standard library of every Python under /usr/lib and of the one
that runs it. `make run` calls it.
"""

import ast
import glob
import heapq
import os
import signal
import sys
import sysconfig
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from scaler_client import Client, SchedulerClusterCombo

WORKERS = 4
LISTED = 10
NOT_ITS_OWN = {"site-packages", "dist-packages", "__pycache__"}

# What a task returns is made of built-in types: (lines, functions, classes, longest functions, imports by module),
# a longest function being (lines, name, file).
Parsed = tuple[int, int, int, list[tuple[int, str, str]], dict[str, int]]


def parse_file(path: str) -> Parsed | None:
    """What is in one Python file; None where it doesn't parse, as some of the library's test data is meant not to."""
    with open(path, "rb") as file:
        source = file.read()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    functions: list[tuple[int, str, str]] = []
    classes = 0
    imports: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions.append(((node.end_lineno or node.lineno) - node.lineno + 1, node.name, path))
        elif isinstance(node, ast.ClassDef):
            classes += 1
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for module in imported_modules(node):
                imports[module] = imports.get(module, 0) + 1
    return len(source.splitlines()), len(functions), classes, heapq.nlargest(LISTED, functions), imports


def imported_modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The top-level names of the modules that a statement imports; none for a relative import."""
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    return [] if node.level or node.module is None else [node.module.partition(".")[0]]


@dataclass
class Totals:
    """The sum over all files. The order in which files are added makes no difference."""

    files: int = 0
    unparsable: int = 0
    lines: int = 0
    functions: int = 0
    classes: int = 0
    longest: list[tuple[int, str, str]] = field(default_factory=list)
    imports: Counter[str] = field(default_factory=Counter)

    def add(self, parsed: Parsed | None) -> None:
        self.files += 1
        if parsed is None:
            self.unparsable += 1
            return
        lines, functions, classes, longest, imports = parsed
        self.lines += lines
        self.functions += functions
        self.classes += classes
        self.longest = heapq.nlargest(LISTED, self.longest + longest)
        self.imports.update(imports)


def library_folders() -> list[str]:
    """The standard libraries of this machine, each once."""
    candidates = [sysconfig.get_path("stdlib"), *glob.glob("/usr/lib/python3.*"), *glob.glob("/usr/lib/pypy3*")]
    found = {os.path.realpath(folder): None for folder in candidates if os.path.exists(os.path.join(folder, "os.py"))}
    return list(found)


def python_files(folders: Iterable[str]) -> list[str]:
    """Every .py file below the folders, largest first: a large file that comes last would leave workers idle."""
    paths = []
    for folder in folders:
        for parent, subfolders, names in os.walk(folder):
            subfolders[:] = [name for name in subfolders if name not in NOT_ITS_OWN]
            paths += [os.path.join(parent, name) for name in names if name.endswith(".py")]
    readable = [path for path in paths if os.path.isfile(path) and os.access(path, os.R_OK)]
    return sorted(readable, key=lambda path: (-os.path.getsize(path), path))


def with_bar(done: Iterable[Any], total: int, label: str) -> Iterator[Any]:
    """Hand on what is done, with a progress bar where somebody watches."""
    watched = sys.stderr.isatty()
    shown = -1
    for count, item in enumerate(done, 1):
        filled = 40 * count // total
        if watched and filled != shown:
            shown = filled
            bar = "#" * filled + "." * (40 - filled)
            print(f"\r{label:<12} [{bar}] {count:,}/{total:,}", end="", file=sys.stderr, flush=True)
        yield item
    if watched:
        print(file=sys.stderr)


def parse_in_parallel(client: Client, paths: Sequence[str]) -> Totals:
    totals = Totals()
    futures = [client.submit(parse_file, path) for path in paths]
    for future in with_bar(as_completed(futures), len(paths), "in parallel"):
        totals.add(future.result())
    return totals


def parse_here(paths: Sequence[str]) -> Totals:
    totals = Totals()
    for parsed in with_bar(map(parse_file, paths), len(paths), "one process"):
        totals.add(parsed)
    return totals


def report(totals: Totals, parallel_seconds: float, single_seconds: float) -> str:
    lines = [
        f"{'files':<12}{totals.files:>12,}" + (f"  ({totals.unparsable:,} don't parse)" if totals.unparsable else ""),
        f"{'lines':<12}{totals.lines:>12,}",
        f"{'functions':<12}{totals.functions:>12,}",
        f"{'classes':<12}{totals.classes:>12,}",
        "",
        "longest functions",
        *(f"  {length:>6,} lines  {name:<32} {path}" for length, name, path in totals.longest),
        "",
        "most imported modules",
        *(f"  {count:>6,} times  {module}" for module, count in most_imported(totals)),
        "",
        f"{WORKERS} workers    {parallel_seconds:8.2f} s",
        f"one process  {single_seconds:8.2f} s",
        "",
        comparison(parallel_seconds, single_seconds),
    ]
    return "\n".join(lines)


def comparison(parallel_seconds: float, single_seconds: float) -> str:
    """The two times in words."""
    gain = single_seconds / parallel_seconds
    if gain >= 1.05:
        return f"the {WORKERS} workers were {gain:.1f} times as fast as one process"
    if gain > 0.95:
        return f"the {WORKERS} workers were about as fast as one process"
    return f"the {WORKERS} workers were slower: they took {1 / gain:.1f} times as long as one process"


def most_imported(totals: Totals) -> list[tuple[str, int]]:
    return sorted(totals.imports.items(), key=lambda entry: (-entry[1], entry[0]))[:LISTED]


@contextmanager
def cluster() -> Iterator[str]:
    """A scheduler and workers for the time of the block; its address."""
    combo = SchedulerClusterCombo(n_workers=WORKERS)
    try:
        yield combo.get_address()
    finally:
        combo.shutdown()


def read_all(paths: Sequence[str]) -> None:
    """Read every file once, so that neither of the two runs pays for the disk alone."""
    for path in paths:
        with open(path, "rb") as file:
            file.read()


def main(folders: Sequence[str]) -> int:
    chosen = list(folders) or library_folders()
    paths = python_files(chosen)
    if not paths:
        print(f"no .py file in {', '.join(chosen)}", file=sys.stderr)
        return 1
    print(f"{len(paths):,} files of {', '.join(chosen)}")
    read_all(paths)
    with cluster() as address, Client(address=address) as client:
        start = time.perf_counter()
        totals = parse_in_parallel(client, paths)
        parallel_seconds = time.perf_counter() - start
    start = time.perf_counter()
    alone = parse_here(paths)
    single_seconds = time.perf_counter() - start
    print(report(totals, parallel_seconds, single_seconds))
    if alone != totals:
        print("the two runs found different things", file=sys.stderr)
        return 1
    return 0


def stop(signal_number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)  # clean up as for Ctrl-C
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        sys.exit(130)
