"""The process that does one row on one system, in the environment of that system. `run.py` starts it.

    python -m benchmarks.compared.program SYSTEM ROW RESULT BEGAN SIZES

RESULT is the JSON file that it writes, BEGAN when it was started (`time.monotonic()`), SIZES `full` or `quick`. The
result is there before the system ends: a system that does not end loses no figure.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from . import rows
from .catalogue import ROWS, SYSTEMS
from .system import System, UnableError

MEASURES = {
    "submit": rows.submit,
    "map": rows.map_,
    "one": rows.one,
    "sleep": rows.sleep,
    "graph": rows.graph,
    "metg": rows.metg,
    "array": rows.array,
    "result": rows.result,
    "memory": rows.memory,
}


def main(name: str, row: str, result: str, began: str, sizes: str) -> None:
    entry = SYSTEMS[name]
    make = getattr(importlib.import_module(f"benchmarks.compared.systems.{entry.module}"), entry.class_name)
    system: System = make(rows.workers_of(row))
    figures: dict[str, Any]
    try:
        if row == "start":
            figures = rows.start(system, float(began))
        else:
            figures = MEASURES[row](system, rows.QUICK if sizes == "quick" else rows.FULL)
    except UnableError as error:
        figures = {figure.name: str(error) for figure in ROWS[row].figures}
    unfinished = Path(result).with_suffix(".unfinished")
    unfinished.write_text(json.dumps(figures))
    os.replace(unfinished, result)
    system.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
