"""Reads the nodes of a graph: finds the other nodes that each node needs.

The rules are those of dask. A tuple whose first item is callable is a call. A hashable value that is a key of the graph
stands for the value of that node. Keys count in the arguments of calls, at any depth of lists, tuples, values of dicts
and further calls. Everything else is a literal.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import accumulate, chain, compress, repeat
from operator import itemgetter, lt
from typing import Any

from ..futures.future import TaskFuture
from ..futures.kept_results import KeptFuture
from ..pickling.references import ObjectRef

RESULT_FUTURES = frozenset({TaskFuture, KeptFuture})
REFERENCES = frozenset({ObjectRef}) | RESULT_FUTURES
"""Types of values that stand for an object or a result."""

_DEEP = frozenset({list, tuple, dict}) | REFERENCES
"""Types of values that may contain keys or references."""

MAX_NAMED_KEYS = 10
"""The most keys that an error names."""

BLOCK_BITS = 9
"""Nodes are read in blocks of 2**BLOCK_BITS neighbours, which are likely to be needed together."""

CALL = 1
"""Shape of a node: a call whose arguments are keys and literals."""
ALIAS = 2
"""Shape of a node: the key of another node."""
LITERAL = 3
"""Shape of a node: a value that contains no keys."""
TREE = 4
"""Shape of a node: a call or container with keys or references at some depth, but no calls."""
TREE_OF_CALLS = 5
"""Shape of a node: a call or container with further calls at some depth."""


class Nodes:
    """The nodes of a graph. Positions in the graph identify nodes."""

    # All data of a node are numbers in long lists. With a list or tuple for each node, the garbage collector would
    # visit them again and again. That took longer than all other work on a graph.

    def __init__(self, graph: Mapping[Hashable, Any]) -> None:
        self.keys = list(graph)
        self.values = list(graph.values())
        self.shapes = bytearray(len(self.keys))
        """The shape of each node; 0: the node is not read yet."""
        self._positions = dict(zip(self.keys, range(len(self.keys))))
        self._find = self._positions.get
        self.flat_inputs: list[int] = []
        """The inputs of all nodes that were read, one node after the other."""
        self.begins = [0] * len(self.keys)
        """For each node where its inputs begin in `flat_inputs`."""
        self.ends = [0] * len(self.keys)
        """For each node where its inputs end in `flat_inputs`."""
        self._tried_blocks = bytearray((len(self.keys) >> BLOCK_BITS) + 1)

    def __len__(self) -> int:
        return len(self.keys)

    def read(self, position: int) -> list[int]:
        """Read a node; returns the positions of the nodes that it needs, possibly with repetitions.

        For a CALL the list has one position for each argument; -1: the argument is a literal.

        Raises:
            ValueError: the node is nested too deep; the text names it.
        """
        if not self.shapes[position]:
            block = position >> BLOCK_BITS
            if self._tried_blocks[block] or not self._read_block(block << BLOCK_BITS):
                self._tried_blocks[block] = 1
                self._read_one(position)
        return self.flat_inputs[self.begins[position] : self.ends[position]]

    def read_all(self) -> None:
        """Read every node.

        Raises:
            ValueError: a node is nested too deep; the text names it.
        """
        for position in range(0, len(self.keys), 1 << BLOCK_BITS):
            self.read(position)
        position = self.shapes.find(0)
        while position >= 0:
            self.read(position)
            position = self.shapes.find(0, position)

    def inputs(self, position: int) -> list[int]:
        """Return the inputs of a node that was read, as `read` does."""
        return self.flat_inputs[self.begins[position] : self.ends[position]]

    def positions(self, keys: Sequence[Hashable]) -> list[int]:
        """Return the positions of these keys.

        Raises:
            ValueError: keys are not in the graph; the text names them.
        """
        positions = list(map(self._find, keys, repeat(-1)))
        if -1 in positions:
            missing = [key for key, position in zip(keys, positions) if position < 0]
            raise ValueError(f"the graph has no {_keys_text(missing, ', ')}")
        return positions

    def position_of(self, value: Any) -> int:
        """Return the position of the node with this key; -1 if there is none."""
        try:
            return self._find(value, -1)
        except TypeError:  # not hashable
            return -1

    def are_literals(self, values: Collection[Any]) -> bool:
        """Return whether all values are literals, without keys or containers."""
        try:
            positions = list(map(self._find, values, repeat(-1)))
        except TypeError:
            return False
        return positions.count(-1) == len(positions) and _DEEP.isdisjoint(map(type, values))

    def names(self, positions: Iterable[int], separator: str) -> str:
        """Return the keys of these nodes, for the text of an error."""
        return _keys_text([self.keys[position] for position in positions], separator)

    def _read_block(self, begin: int) -> bool:
        """Read a block of nodes at once; returns False if one of them is not a CALL."""
        values = self.values[begin : begin + (1 << BLOCK_BITS)]
        try:
            if set(map(type, values)) != {tuple} or not all(map(callable, map(itemgetter(0), values))):
                return False
            items = list(chain.from_iterable(values))
            found = list(map(self._find, items, repeat(-1)))
        except (IndexError, TypeError):  # an empty tuple, or a value that is not hashable
            return False
        if not _DEEP.isdisjoint(map(type, compress(items, map(lt, found, repeat(0))))):
            return False
        ends = list(accumulate(map(len, values), initial=len(self.flat_inputs)))
        self.flat_inputs += found
        end = begin + len(values)
        self.begins[begin:end] = [each + 1 for each in ends[:-1]]  # after the function
        self.ends[begin:end] = ends[1:]
        self.shapes[begin:end] = bytes([CALL]) * len(values)
        return True

    def _read_one(self, position: int) -> None:
        value = self.values[position]
        shape, found = self._read_call(position, value) if is_call(value) else self._read_other(position, value)
        self.shapes[position] = shape
        self.begins[position] = len(self.flat_inputs)
        self.flat_inputs += found
        self.ends[position] = len(self.flat_inputs)

    def _read_call(self, position: int, value: tuple[Any, ...]) -> tuple[int, list[int]]:
        arguments = value[1:]
        try:
            found = list(map(self._find, arguments, repeat(-1)))
        except TypeError:
            return self._read_tree(position, arguments)
        if -1 in found:
            for argument, referenced in zip(arguments, found):
                if referenced < 0 and type(argument) in _DEEP:
                    return self._read_tree(position, arguments)
        return CALL, found

    def _read_other(self, position: int, value: Any) -> tuple[int, list[int]]:
        referenced = self.position_of(value)
        if referenced >= 0:
            return ALIAS, [referenced]
        if type(value) not in _DEEP or type(value) in REFERENCES:
            return LITERAL, []
        search = self._scan(position, [value])
        if search.inputs or search.has_calls or search.has_references:
            return TREE_OF_CALLS if search.has_calls else TREE, search.inputs
        return LITERAL, []

    def _read_tree(self, position: int, arguments: Sequence[Any]) -> tuple[int, list[int]]:
        search = self._scan(position, arguments)
        return TREE_OF_CALLS if search.has_calls else TREE, search.inputs

    def _scan(self, position: int, parts: Sequence[Any]) -> _Scan:
        search = _Scan(self)
        try:
            search.scan(parts)
        except RecursionError:
            name = self.names([position], "")
            raise ValueError(f"node {name} of the graph is nested too deep, or contains itself") from None
        return search


class _Scan:
    """Finds the keys, calls and references inside containers and calls."""

    def __init__(self, nodes: Nodes) -> None:
        self.inputs: list[int] = []
        self.has_calls = False
        self.has_references = False
        self._nodes = nodes

    def scan(self, values: Collection[Any]) -> None:
        if self._nodes.are_literals(values):
            return
        for value in values:
            kind = type(value)
            if is_call(value):
                self.has_calls = True
                self.scan(value[1:])
                continue
            position = self._nodes.position_of(value)
            if position >= 0:
                self.inputs.append(position)
            elif kind is list or kind is tuple:
                self.scan(value)
            elif kind is dict:
                self.scan(value.values())
            elif kind in REFERENCES:
                self.has_references = True


def is_call(value: Any) -> bool:
    """Return whether the value stands for the result of a call."""
    return type(value) is tuple and len(value) > 0 and callable(value[0])


def _keys_text(keys: Sequence[Hashable], separator: str) -> str:
    """Return the first keys as text."""
    shown = separator.join(map(repr, keys[:MAX_NAMED_KEYS]))
    return shown if len(keys) <= MAX_NAMED_KEYS else f"{shown}{separator}... ({len(keys):,} in all)"
