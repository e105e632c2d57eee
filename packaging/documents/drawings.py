"""`python packaging/documents/drawings.py`: draws the states of tasks, values and copies, the layers, and the ports.

The first three are made from the tables in `scaler_scheduler/core/state/`, the layers from `tests/test_house.py`.
Graphviz (`apt-get install graphviz`) makes the pictures in `scheduler_daemon/docs/drawings/`, which are checked in.
`tests/documents/test_drawings.py` compares them with the tables.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from scaler_scheduler.core.state import transitions, value_states

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "scheduler_daemon/docs/drawings"

STYLE = (
    'bgcolor="white" pad=0.2 node [shape=box style=rounded fontname="sans-serif" fontsize=13 height=0.4] '
    'edge [fontname="sans-serif" fontsize=11 color="#57606a" fontcolor="#24292f"]'
)

Edges = dict[tuple[str, str], list[str]]
"""The actions that lead from one state to another one."""

PORTS = {
    ("client", "scheduler"): "ADDRESS of scaler_scheduler",
    ("worker", "scheduler"): "ADDRESS of scaler_scheduler",
    ("host agent", "scheduler"): "ADDRESS of scaler_scheduler",
    ("scaler_client, scaler_top", "scheduler"): "--monitor-address of scaler_scheduler",
    ("scaler_ui", "scheduler"): "--monitor-address of scaler_scheduler",
    ("scaler_exporter", "scheduler"): "--monitor-address of scaler_scheduler",
    ("host agent", "agent of another host"): "--data-address of scaler_cluster",
    ("host agent", "client"): "data_address= of Client",
    ("browser", "scaler_ui"): "--port of scaler_ui",
    ("Prometheus", "scaler_exporter"): "--port of scaler_exporter",
}
"""Who connects to whom, and the option that chooses the address at which the second one listens."""


def edges(states: Sequence[str], actions: Sequence[str], table: Mapping[tuple[int, int], int]) -> Edges:
    """Return the edges of a table of transitions. Actions that change no state are left out."""
    found: Edges = defaultdict(list)
    for (state, action), following in table.items():
        if state != following:
            found[states[state], states[following]].append(actions[action])
    return dict(found)


def state_drawings() -> dict[str, Edges]:
    """The drawings of states, by the name of their file."""
    return {
        "task_states": edges(transitions.STATE_NAMES, transitions.ACTION_NAMES, transitions.TRANSITIONS),
        "value_states": edges(
            value_states.VALUE_STATE_NAMES, value_states.VALUE_ACTION_NAMES, value_states.VALUE_TRANSITIONS
        ),
        "copy_states": edges(
            value_states.COPY_STATE_NAMES, value_states.COPY_ACTION_NAMES, value_states.COPY_TRANSITIONS
        ),
    }


def state_graph(found: Edges) -> str:
    """Return a drawing of states for Graphviz."""
    lines = [f'"{begin}" -> "{end}" [label="{", ".join(actions)}"]' for (begin, end), actions in found.items()]
    return "\n".join(["digraph {", STYLE, "rankdir=LR ranksep=0.9", *lines, "}"])


def layer_graph(layers: Mapping[str, Sequence[set[str]]]) -> str:
    """Return the drawing of the layers for Graphviz: a column for each package, the highest layer on top."""
    lines = ["digraph {", STYLE, "ranksep=0.15 edge [arrowhead=vee arrowsize=0.5]"]
    for package, rooms in layers.items():
        lines.append(f'subgraph "cluster {package}" {{ label="{package}" fontname="sans-serif" color="#9aa3ad"')
        names = [f"{package}: {', '.join(sorted(layer))}" for layer in reversed(rooms)]
        for name, layer in zip(names, reversed(rooms)):
            lines.append(f'"{name}" [label="{_wrapped(sorted(layer))}"]')
        lines += [f'"{above}" -> "{below}"' for above, below in zip(names, names[1:])]
        lines.append("}")
    return "\n".join([*lines, "}"])


def _wrapped(words: Sequence[str], length: int = 34) -> str:
    """Return the words with commas, in lines of about this length."""
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) > length:
            lines.append("")
        lines[-1] += f"{', ' if lines[-1] else ''}{word}"
    return ",\\n".join(lines)


def port_graph() -> str:
    """Return the drawing of the ports for Graphviz."""
    lines = [
        f'"{begin}" -> "{end}" [label="{option.replace(" of ", chr(92) + "nof ")}"]'
        for (begin, end), option in PORTS.items()
    ]
    return "\n".join(["digraph {", STYLE, "rankdir=LR ranksep=1.1", *lines, "}"])


def draw() -> None:
    """Write all drawings."""
    sys.path.insert(0, str(ROOT))
    from tests.test_house import LAYERS  # it needs the environment of the tests

    graphs = {name: state_graph(found) for name, found in state_drawings().items()}
    graphs["layers"] = layer_graph(LAYERS)
    graphs["ports"] = port_graph()
    for name, text in graphs.items():
        subprocess.run(["dot", "-Tsvg", "-o", str(FOLDER / f"{name}.svg")], input=text, text=True, check=True)


if __name__ == "__main__":
    draw()
