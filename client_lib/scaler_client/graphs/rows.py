"""Turns the nodes of a graph into rows to submit: functions, payloads and inputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from ..futures.open_graphs import GraphRows
from ..futures.result_references import check_serializer, reference_to
from ..io import objects
from ..pickling.call_pickles import (
    CALL_BEGIN,
    CALL_END,
    INPUT_PICKLES,
    SHARED_INPUT_PICKLES,
    SIMPLE_TYPES,
    simple_pickle,
)
from ..pickling.custom_serializer import Serializer
from ..pickling.functions import Function
from ..pickling.object_frames import holds_references
from ..pickling.references import Call, CallWithInputs, NodeRef, ObjectRef, Reference, call_payload
from .expressions import CallPart, DictPart, Expression, ListPart, Part, TuplePart, identity
from .nodes import ALIAS, CALL, LITERAL, REFERENCES, RESULT_FUTURES, TREE_OF_CALLS, Nodes, is_call

SHARED_LITERAL_BYTES = 4096
"""A literal of at least this size that several nodes read is sent once, as an object."""

MAX_INLINE_ARGUMENTS = 16
"""The most arguments of a call whose payload is built here, without a pickler."""

_CONTAINERS = (list, tuple, dict)


class CallEncoder(Protocol):
    """The part of a client that turns functions and arguments into bytes."""

    @property
    def _io_thread(self) -> objects.ObjectSender: ...

    _serializer: Serializer | type | None
    _dump_call: Callable[[tuple[Any, ...], Mapping[str, Any]], Call]

    @property
    def _shares_inputs(self) -> bool:
        """Whether the tasks of a worker share the values of their inputs."""

    def _function(self, fn: Callable[..., Any]) -> Function: ...


class RowBuilder:
    """Builds the rows of a graph.

    Args:
        encoder: the client.
        nodes: the nodes of the graph; those to add have been read.
    """

    def __init__(self, encoder: CallEncoder, nodes: Nodes) -> None:
        self.rows = GraphRows({}, [], [], [], [], [])
        self.locations: list[int | None] = [None] * len(nodes)
        """For each node its row, `~k` for the k-th object, or None for a literal."""
        self.new_objects: list[ObjectRef] = []
        """The objects to hand over before the rows."""
        self._encoder = encoder
        self._nodes = nodes
        self._has_default_serializer = encoder._serializer is None
        self._input_pickles = SHARED_INPUT_PICKLES if encoder._shares_inputs else INPUT_PICKLES
        self._function_numbers: dict[Any, int] = {}
        """The numbers of functions by identity; the graph keeps the functions alive."""
        self._references: dict[int, NodeRef] = {}
        self._object_locations: dict[ObjectRef, int] = {}

    def add(self, order: Sequence[int]) -> None:
        """Add these nodes, with inputs before their readers.

        Raises:
            TypeError: a function or an argument cannot be pickled; the text names it and the node.
            ObjectNotFoundError: the object of a reference was freed.
            ValueError: a reference belongs to another client.
        """
        nodes, locations = self._nodes, self.locations
        shapes, values = nodes.shapes, nodes.values
        flat_inputs, begins, ends = nodes.flat_inputs, nodes.begins, nodes.ends
        large = self._large_literals(order)
        add_call = self._add_inline if self._has_default_serializer else self._add_flat
        position = -1
        try:
            for position in order:
                shape = shapes[position]
                value = values[position]
                if shape == CALL:
                    locations[position] = add_call(value, flat_inputs[begins[position] : ends[position]])
                elif shape == LITERAL:
                    if type(value) in RESULT_FUTURES:
                        check_serializer(value, self._encoder._io_thread, self._encoder._serializer)
                        value = values[position] = reference_to(value)
                    if type(value) is ObjectRef:
                        locations[position] = self._object_location(value)
                    elif position in large:
                        locations[position] = self._object_location(large[position])
                elif shape == ALIAS:
                    (other,) = nodes.inputs(position)
                    locations[position] = locations[other]
                    values[position] = values[other]
                else:
                    locations[position] = self._add_tree(value, shape == TREE_OF_CALLS)
        except TypeError as error:
            self._add_node_name(error, position)
            raise

    def _add_node_name(self, error: TypeError, position: int) -> None:
        error.args = (f"node {self._nodes.keys[position]!r} of the graph: {error}",)

    def names(self) -> Callable[[int], str]:
        """Return a function that names a row in the text of an error."""
        return _RowNames(self._nodes, self.locations)

    def add_literal(self, value: Any, position: int) -> int:
        """Add a row that returns the value of a literal. The literal is a reference, or contains references.

        Args:
            value: the literal, or the reference that stands for it.
            position: the position of its node.

        Raises:
            TypeError: the literal can't be pickled; the text names the node.
            ObjectNotFoundError: the object of a reference was freed.
            ValueError: a reference belongs to another client.
        """
        try:
            return self._add_call(identity, (value,))
        except TypeError as error:
            self._add_node_name(error, position)
            raise

    # ------------------------------------------------------------------------------------------------------------ calls

    def _add_inline(self, value: tuple[Any, ...], positions: list[int]) -> int:
        """Add a call of keys and literals; build the payload here if all literals have simple types."""
        if len(positions) > MAX_INLINE_ARGUMENTS:
            return self._add_flat(value, positions)
        locations = self.locations
        input_pickles = self._input_pickles
        parts = [CALL_BEGIN]
        inputs: list[int] = []
        index = 0
        for position in positions:
            index += 1
            if position < 0:
                argument = value[index]
            else:
                location = locations[position]
                if location is not None:
                    if location < 0 and self.rows.objects[~location].stored.is_shared:
                        return self._add_flat(value, positions)
                    if location not in inputs:
                        inputs.append(location)
                    parts.append(input_pickles[inputs.index(location)])
                    continue
                argument = self._nodes.values[position]
            if type(argument) not in SIMPLE_TYPES:
                return self._add_flat(value, positions)
            parts.append(simple_pickle(argument))
        parts.append(CALL_END)
        fn = value[0]
        number = self._function_numbers.get(id(fn))
        rows = self.rows
        rows.payloads.append(b"".join(parts))
        rows.numbers.append(self._function_number(fn, id(fn)) if number is None else number)
        rows.input_counts.append(len(inputs))
        rows.inputs.extend(inputs)
        return len(rows.numbers) - 1

    def _add_flat(self, value: tuple[Any, ...], positions: list[int]) -> int:
        """Add a call of keys and literals."""
        arguments = [each if position < 0 else self._value_of(position) for each, position in zip(value[1:], positions)]
        return self._add_call(value[0], tuple(arguments))

    def _add_tree(self, value: Any, has_calls: bool) -> int:
        if has_calls or not self._has_default_serializer:
            return self._add_expression(value)
        if is_call(value):
            return self._add_call(value[0], tuple(map(self._substituted, value[1:])))
        return self._add_call(identity, (self._substituted(value),))

    def _add_expression(self, value: Any) -> int:
        """Add a node with nested calls as a call of an Expression.

        Custom serializers cannot serialize references. So with a custom serializer, every node that contains references
        becomes an Expression.
        """
        arguments: list[Any] = []
        fn = value[0] if is_call(value) else identity
        part, key = self._part(value, arguments)
        number = self._function_numbers.get(key)
        if number is None:
            number = self._function_number(Expression(part, getattr(fn, "__qualname__", type(fn).__qualname__)), key)
        return self._add_dumped(number, tuple(arguments))

    def _add_call(self, fn: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
        return self._add_dumped(self._function_number(fn, id(fn)), arguments)

    def _add_dumped(self, number: int, arguments: tuple[Any, ...]) -> int:
        payload = self._encoder._dump_call(arguments, {})
        references = payload.inputs if isinstance(payload, CallWithInputs) else ()
        rows = self.rows
        rows.payloads.append(call_payload(payload))
        rows.numbers.append(number)
        rows.input_counts.append(len(references))
        rows.inputs.extend(map(self._location, references))
        return len(rows.numbers) - 1

    def _function_number(self, fn: Callable[..., Any], key: Any) -> int:
        number = self._function_numbers.get(key)
        if number is None:
            function = self._encoder._function(fn)
            if function.named_function is not None:
                raise TypeError(f"{fn!r} can't be a node of a graph: other nodes could not read its result")
            number = self._function_numbers[key] = function.number
            self.rows.functions[number] = function
        return number

    # -------------------------------------------------------------------------------------------------------- arguments

    def _value_of(self, position: int) -> Any:
        """Return the value that stands for a node in arguments."""
        location = self.locations[position]
        if location is None:
            return self._nodes.values[position]
        if location < 0:
            return self.rows.objects[~location]
        reference = self._references.get(location)
        if reference is None:
            reference = self._references[location] = NodeRef(location)
        return reference

    def _substituted(self, value: Any) -> Any:
        """Return the value with all keys replaced by the values that stand for their nodes."""
        position = self._nodes.position_of(value)
        if position >= 0:
            return self._value_of(position)
        kind = type(value)
        if kind not in _CONTAINERS:
            return value
        if kind is dict:
            return {key: self._substituted(each) for key, each in value.items()}
        if self._nodes.are_literals(value):
            return value
        return kind(map(self._substituted, value))

    def _part(self, value: Any, arguments: list[Any]) -> tuple[Part, Any]:
        """Return the value as part of an expression, with a key that equal parts share.

        The leaves are appended to `arguments`.
        """
        if is_call(value):
            parts, key = self._parts(value[1:], arguments)
            return CallPart(value[0], parts), ("call", id(value[0]), key)
        position = self._nodes.position_of(value)
        kind = type(value)
        if position < 0 and kind in _CONTAINERS:
            if kind is dict and not self._nodes.are_literals(value.values()):
                _check_keys(value)
                parts, key = self._parts(value.values(), arguments)
                return DictPart(tuple(value), parts), ("dict", tuple(value), key)
            if kind is not dict and not self._nodes.are_literals(value):
                parts, key = self._parts(value, arguments)
                return (ListPart if kind is list else TuplePart)(parts), (kind, key)
        arguments.append(value if position < 0 else self._value_of(position))
        return len(arguments) - 1, None

    def _parts(self, values: Iterable[Any], arguments: list[Any]) -> tuple[tuple[Part, ...], Any]:
        found = [self._part(each, arguments) for each in values]
        return tuple(part for part, _ in found), tuple(key for _, key in found)

    # ---------------------------------------------------------------------------------------------------------- objects

    def _location(self, reference: Reference | int) -> int:
        if isinstance(reference, NodeRef):
            return reference.row
        assert isinstance(reference, ObjectRef)
        return self._object_location(reference)

    def _object_location(self, reference: ObjectRef) -> int:
        location = self._object_locations.get(reference)
        if location is None:
            reference.check(self._encoder._io_thread)
            self.rows.objects.append(reference)
            location = self._object_locations[reference] = ~(len(self.rows.objects) - 1)
        return location

    def _large_literals(self, order: Sequence[int]) -> dict[int, ObjectRef]:
        """Return the large literals that several nodes read, as objects that are not handed over yet."""
        nodes = self._nodes
        shapes, values = nodes.shapes, nodes.values
        readers = {each: 0 for each in order if shapes[each] == LITERAL and _may_be_large(values[each])}
        if not readers:
            return {}
        for position in order:
            count = 2 if shapes[position] == ALIAS else 1  # several nodes may read an alias
            for each in nodes.inputs(position):
                if each in readers:
                    readers[each] += count
        large = {}
        for position, count in readers.items():
            if count > 1:
                try:
                    frames = objects.dump_object(values[position], self._encoder._serializer)
                except TypeError as error:
                    if holds_references(values[position]):
                        continue  # objects can't contain references: the value goes into the arguments of each reader
                    self._add_node_name(error, position)
                    raise
                if sum(map(len, frames)) >= SHARED_LITERAL_BYTES:
                    large[position] = objects.make_object(self._encoder._io_thread, frames, is_arguments=True)
        self.new_objects = list(large.values())
        return large


class _RowNames:
    """Names the node of a row. The index by row is made at the first use, because few graphs fail."""

    def __init__(self, nodes: Nodes, locations: Sequence[int | None]) -> None:
        self._keys = nodes.keys
        self._shapes = nodes.shapes
        self._locations = locations
        self._found: dict[int | None, Hashable] = {}

    def __call__(self, row: int) -> str:
        if not self._found:
            rows = zip(self._locations, self._keys, self._shapes)
            self._found = {location: key for location, key, shape in rows if shape != ALIAS}
        return f"node {self._found[row]!r} of the graph"


def _check_keys(value: dict[Any, Any]) -> None:
    """Check the keys of a dict that becomes part of an expression, whose keys are not replaced.

    Raises:
        TypeError: a key is, or contains, a future or a reference.
    """
    for key in value:
        reference = _reference_in(key)
        if reference is not None:
            raise TypeError(
                f"{reference!r} can't be a key of a dict beside nested calls: build this dict in a function, and pass "
                "it the future or the reference as an argument"
            )


def _reference_in(key: Any) -> Any:
    """Return a future or a reference that a key of a dict is, or contains; None: there is none."""
    if type(key) in REFERENCES:
        return key
    if isinstance(key, (tuple, frozenset)):
        return next((found for found in map(_reference_in, key) if found is not None), None)
    return None


def _may_be_large(value: Any) -> bool:
    if type(value) is str or type(value) is bytes:
        return len(value) >= SHARED_LITERAL_BYTES
    return type(value) not in SIMPLE_TYPES and type(value) not in REFERENCES
