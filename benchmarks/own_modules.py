"""A program's own modules: the first task with 20 changed modules, and the same again, in turn with a program that has
no modules."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from scaler_client import LocalCluster

from .figures import Figure, at_most, ratios
from .interpreters import scheduler_python
from .processes import PATIENCE_SECONDS

RUNS = 5
QUICK_RUNS = 1
PAIRS = 5
"""Of programs with and without modules, after each change of the modules."""
MODULES = 20
LINES = 2_000
"""Of each module: 0.9 MB in all."""
WORKERS = 2
MOST_SECONDS_OF_CHANGED = 1.0
MOST_RATIO_AGAIN = 1.1

IMPORT_ALL = f"[__import__(f'module{{number}}') for number in range({MODULES})] and None"
PROGRAM = """
import sys, time
from scaler_client import Client
began, used = time.perf_counter(), time.process_time()
with Client(sys.argv[1], modules=sys.argv[3:]) as client:
    client.submit(eval, sys.argv[2]).result(60)
    print(time.time(), time.perf_counter() - began, time.process_time() - used)
"""


@dataclass(frozen=True)
class ProgramSeconds:
    """How long a program took to its first result."""

    whole: float
    """From the start of its process."""
    client: float
    """From `Client(...)`."""
    processor: float
    """The processor time of the program's process since `Client(...)`."""


def figures_of_modules(is_quick: bool) -> list[Figure]:
    """Measure with modules that no earlier run has sent."""
    first, again, plain = [], [], []
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=WORKERS, scheduler_python=scheduler_python(), environment_cache=str(Path(folder, "cache"))
        ) as cluster,
    ):
        _run_program(cluster, "None")  # the host is warm
        for run in range(QUICK_RUNS if is_quick else RUNS):
            modules = make_modules(Path(folder, f"modules{run}"), run)
            first.append(_run_program(cluster, IMPORT_ALL, str(modules)))
            for _ in range(QUICK_RUNS if is_quick else PAIRS):
                plain.append(_run_program(cluster, "None"))
                again.append(_run_program(cluster, IMPORT_ALL, str(modules)))
    without = "beside a program without modules"
    return [
        Figure(
            "environments.changed",
            f"first task with {MODULES} changed modules: from `Client(...)` to its result",
            "s",
            [each.client for each in first],
            at_most(MOST_SECONDS_OF_CHANGED),
        ),
        Figure("environments.again", "the same again: from the program's start", "s", [each.whole for each in again]),
        Figure(
            "environments.again_ratio",
            f"the same again, {without}",
            "x",
            ratios([each.whole for each in again], [each.whole for each in plain]),
            at_most(MOST_RATIO_AGAIN),
        ),
        Figure(
            "environments.again_client",
            f"the same again: from `Client(...)`, {without}",
            "x",
            ratios([each.client for each in again], [each.client for each in plain]),
        ),
        Figure(
            "environments.again_processor",
            "the same again: processor time from `Client(...)`, beyond a program without modules",
            "ms",
            [(with_modules.processor - alone.processor) * 1e3 for with_modules, alone in zip(again, plain)],
        ),
    ]


def make_modules(folder: Path, version: int) -> Path:
    """Make a folder of modules, all different from those of other versions."""
    folder.mkdir()
    for number in range(MODULES):
        lines = (f"value_{version}_{line} = {line * number}\n" for line in range(LINES))
        (folder / f"module{number}.py").write_text("".join(lines))
    return folder


def _run_program(cluster: LocalCluster, expression: str, *modules: str) -> ProgramSeconds:
    began = time.time()
    command = [sys.executable, "-c", PROGRAM, cluster.address, expression, *modules]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_SECONDS)
    ended, client, processor = map(float, done.stdout.split())
    return ProgramSeconds(ended - began, client, processor)
