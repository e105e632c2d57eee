"""The GraphBLAS backend: it finds the same nodes as Python, in a valid order, or says that it is not installed."""

from __future__ import annotations

import importlib.util
import random
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaler_client.commands.install_hints import install_hint
from scaler_client.graphs.nodes import Nodes
from scaler_client.graphs.order import GRAPHBLAS, PYTHON, check_backend, order

needs_graphblas = pytest.mark.skipif(
    importlib.util.find_spec("graphblas") is None, reason="python-graphblas is not installed"
)


def call(*args: Any) -> None: ...


def outcome(graph: Any, wanted: list[int], backend: str) -> set[int] | str:
    """Return the set of ordered nodes, after checking that inputs come first; or the error."""
    nodes = Nodes(graph)
    try:
        ordered = order(nodes, wanted, backend)
    except ValueError as error:
        return str(error)
    seen = {-1}
    for position in ordered:
        assert position not in seen and seen.issuperset(nodes.inputs(position))
        seen.add(position)
    return set(ordered)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, Any], list[int]]:
    """Random graphs of calls, most without cycles."""
    count = draw(st.integers(1, 12))
    positions = st.integers(0, count - 1)
    has_cycles = draw(st.booleans())
    graph: dict[str, Any] = {}
    for number in range(count):
        reads = positions if has_cycles else st.integers(0, max(0, number - 1))
        names = draw(st.lists(reads.map(lambda each: f"k{each}") | st.just("literal"), max_size=3))
        graph[f"k{number}"] = (call, *(name for name in names if has_cycles or name != f"k{number}"))
    return graph, draw(st.lists(positions, max_size=3))


@needs_graphblas
@pytest.mark.main_environment
@given(graphs())
@settings(max_examples=200)
def test_both_backends_agree(drawn: tuple[dict[str, Any], list[int]]) -> None:
    graph, wanted = drawn
    assert outcome(graph, wanted, GRAPHBLAS) == outcome(graph, wanted, PYTHON)


@pytest.mark.main_environment
@needs_graphblas
@pytest.mark.parametrize("width", [1, 50, 500])
def test_both_backends_agree_on_large_graphs(width: int) -> None:
    chance = random.Random(width)
    graph: dict[str, Any] = {f"0-{number}": (call,) for number in range(width)}
    for level in range(1, 20_000 // width):
        for number in range(width):
            graph[f"{level}-{number}"] = (call, *(f"{level - 1}-{chance.randrange(width)}" for _ in range(3)))
    wanted = [len(graph) - 1, len(graph) // 2, 0]
    ordered = outcome(graph, wanted, GRAPHBLAS)
    assert ordered == outcome(graph, wanted, PYTHON) and len(ordered) >= 20_000 // width


@pytest.mark.main_environment
@needs_graphblas
def test_the_backend_is_accepted() -> None:
    check_backend(GRAPHBLAS)
    assert "scaler_client.graphs.graphblas" in sys.modules, "the library is imported once it is asked for"


def test_unknown_backends_raise() -> None:
    with pytest.raises(ValueError, match="^graph_backend must be one of python, graphblas, not 'networkx'$"):
        check_backend("networkx")
    with pytest.raises(TypeError, match="^graph_backend must be a string, not None$"):
        check_backend(None)  # type: ignore[arg-type]


def test_a_backend_without_its_library_raises() -> None:
    """The error says how to install the library."""
    program = (
        "import sys; sys.modules['graphblas'] = None\n"
        "from scaler_client import Client\n"
        "try: Client('tcp://127.0.0.1:1', graph_backend='graphblas')\n"
        "except ImportError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    text = f"graph_backend='graphblas' needs python-graphblas: {install_hint('graphblas')}\n"
    assert run.stdout == text
