"""Parse the Python standard library of this machine in parallel, and print statistics.

    python client_lib/examples/standard_library.py [FOLDER ...]

This program starts a scheduler and four workers as real processes, and submits one task for each file. Then it does the
same work in this process, to compare the times. Without a FOLDER it parses the standard libraries of all Pythons under
/usr/lib and of the Python that runs the program. `make run` calls it.
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
LIST_LENGTH = 10
SKIPPED_FOLDERS = {"site-packages", "dist-packages", "__pycache__"}

# The result of a task, made of built-in types: (lines, functions, classes, longest functions, imports by module).
# A longest function is (lines, name, file).
Parsed = tuple[int, int, int, list[tuple[int, str, str]], dict[str, int]]


def parse_file(path: str) -> Parsed | None:
    """Parse a Python file. Returns None if it cannot be parsed, like some test data of the standard library."""
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
    return len(source.splitlines()), len(functions), classes, heapq.nlargest(LIST_LENGTH, functions), imports


def imported_modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the top-level names of the modules that a statement imports; none for a relative import."""
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    return [] if node.level or node.module is None else [node.module.partition(".")[0]]


@dataclass
class Totals:
    """The sum over all files. It does not depend on the order in which files are added."""

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
        self.longest = heapq.nlargest(LIST_LENGTH, self.longest + longest)
        self.imports.update(imports)


def library_folders() -> list[str]:
    """Return the folders of the standard libraries of this machine, each once."""
    candidates = [sysconfig.get_path("stdlib"), *glob.glob("/usr/lib/python3.*"), *glob.glob("/usr/lib/pypy3*")]
    found = {os.path.realpath(folder): None for folder in candidates if os.path.exists(os.path.join(folder, "os.py"))}
    return list(found)


def python_files(folders: Iterable[str]) -> list[str]:
    """Return all .py files in the folders, largest first: a large file at the end would leave workers idle."""
    paths = []
    for folder in folders:
        for parent, subfolders, names in os.walk(folder):
            subfolders[:] = [name for name in subfolders if name not in SKIPPED_FOLDERS]
            paths += [os.path.join(parent, name) for name in names if name.endswith(".py")]
    readable = [path for path in paths if os.path.isfile(path) and os.access(path, os.R_OK)]
    return sorted(readable, key=lambda path: (-os.path.getsize(path), path))


def with_progress_bar(done: Iterable[Any], total: int, label: str) -> Iterator[Any]:
    """Yield the items, and show a progress bar on a terminal."""
    is_terminal = sys.stderr.isatty()
    last_filled = -1
    for count, item in enumerate(done, 1):
        filled = 40 * count // total
        if is_terminal and filled != last_filled:
            last_filled = filled
            bar = "#" * filled + "." * (40 - filled)
            print(f"\r{label:<12} [{bar}] {count:,}/{total:,}", end="", file=sys.stderr, flush=True)
        yield item
    if is_terminal:
        print(file=sys.stderr)


def parse_in_parallel(client: Client, paths: Sequence[str]) -> Totals:
    totals = Totals()
    futures = [client.submit(parse_file, path) for path in paths]
    for future in with_progress_bar(as_completed(futures), len(paths), "in parallel"):
        totals.add(future.result())
    return totals


def parse_serially(paths: Sequence[str]) -> Totals:
    totals = Totals()
    for parsed in with_progress_bar(map(parse_file, paths), len(paths), "one process"):
        totals.add(parsed)
    return totals


def report(totals: Totals, parallel_seconds: float, serial_seconds: float) -> str:
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
        f"one process  {serial_seconds:8.2f} s",
        "",
        comparison(parallel_seconds, serial_seconds),
    ]
    return "\n".join(lines)


def comparison(parallel_seconds: float, serial_seconds: float) -> str:
    """Compare the two times in words."""
    gain = serial_seconds / parallel_seconds
    if gain >= 1.05:
        return f"the {WORKERS} workers were {gain:.1f} times as fast as one process"
    if gain > 0.95:
        return f"the {WORKERS} workers were about as fast as one process"
    return f"the {WORKERS} workers were slower: they took {1 / gain:.1f} times as long as one process"


def most_imported(totals: Totals) -> list[tuple[str, int]]:
    return sorted(totals.imports.items(), key=lambda entry: (-entry[1], entry[0]))[:LIST_LENGTH]


@contextmanager
def cluster() -> Iterator[str]:
    """Run a scheduler and workers during the block; yields the address of the scheduler."""
    combo = SchedulerClusterCombo(n_workers=WORKERS)
    try:
        yield combo.get_address()
    finally:
        combo.shutdown()


def read_all(paths: Sequence[str]) -> None:
    """Read every file once, so that the first run does not pay for the disk."""
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
    serial = parse_serially(paths)
    serial_seconds = time.perf_counter() - start
    print(report(totals, parallel_seconds, serial_seconds))
    if serial != totals:
        print("the two runs have different results", file=sys.stderr)
        return 1
    return 0


def stop(signal_number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)  # clean up, as after Ctrl-C
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        sys.exit(130)
