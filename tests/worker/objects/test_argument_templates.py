"""Templates of arguments: what equal payloads share, and what they must not share."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from scaler_client.pickling import call_pickles
from scaler_client.pickling.input_lookup import with_inputs
from scaler_client.pickling.references import InputCollector, NodeRef, call_payload
from scaler_client.pickling.serializer import call_dumper
from scaler_worker.objects import argument_templates
from scaler_worker.objects.argument_templates import ArgumentTemplates
from scaler_worker.objects.cache import Inputs, LoadTimes, SmallValues

INPUTS = ([1], "two", (3,))


def payload_of(*arguments: Any) -> bytes:
    """The payload of a call. A NodeRef is the input of this position."""
    references = {each.row: each for each in arguments if isinstance(each, NodeRef)}  # one for each row
    arguments = tuple(references[each.row] if isinstance(each, NodeRef) else each for each in arguments)
    data = call_pickles.dump_simple_call(arguments, InputCollector(None))
    return bytes(call_payload(call_dumper(None)(arguments, {}))) if data is None else data


def arguments_of(templates: ArgumentTemplates, payload: bytes, *values: Any) -> Any:
    found = tuple(map(pickle.dumps, values))
    inputs = Inputs(found, found, "", templates, LoadTimes(print), 1, SmallValues())
    with with_inputs(inputs):
        return inputs.arguments(payload)


@pytest.mark.parametrize(
    "arguments",
    [
        (NodeRef(0),),
        (NodeRef(0), NodeRef(1), NodeRef(2)),
        (NodeRef(0), 5, NodeRef(1), None, "text", 1.5, b"bytes", True),
        (NodeRef(0), NodeRef(1), NodeRef(0)),
        (7, NodeRef(0)),
    ],
)
def test_a_template_gives_the_arguments_that_pickle_gives(arguments: tuple[Any, ...]) -> None:
    templates = ArgumentTemplates()
    payload = payload_of(*arguments)
    expected = tuple(INPUTS[each.row] if type(each) is NodeRef else each for each in arguments)
    values = INPUTS[: len({each.row for each in arguments if type(each) is NodeRef})]
    for _ in range(2):
        assert arguments_of(templates, payload, *values) == expected


def test_an_input_that_a_call_reads_twice_is_one_value() -> None:
    templates = ArgumentTemplates()
    payload = payload_of(NodeRef(0), NodeRef(0))
    for _ in range(3):  # without a template and with one
        first, second = arguments_of(templates, payload, [1])
        assert first is second == [1]


def test_calls_with_equal_payloads_have_values_of_their_own() -> None:
    templates = ArgumentTemplates()
    payload = payload_of(NodeRef(0), 5)
    first = arguments_of(templates, payload, [1])
    first[0].append(2)
    assert arguments_of(templates, payload, [1]) == ([1], 5)


def test_mutable_literals_are_never_shared() -> None:
    templates = ArgumentTemplates()
    payload = payload_of(NodeRef(0), [5])
    first = arguments_of(templates, payload, 1)
    first[1].append(6)
    assert arguments_of(templates, payload, 1) == (1, [5])


def test_a_payload_that_looks_like_a_simple_call_may_be_anything() -> None:
    templates = ArgumentTemplates()
    for value in ([5], ([],), "text", 5):
        payload = call_pickles.CALL_BEGIN + b"0" + pickle.dumps(value, 3)[2:]  # pop the mark, then push the value
        for _ in range(2):
            assert arguments_of(templates, payload, 1) == value


def test_the_number_of_templates_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(argument_templates, "MAX_TEMPLATES", 3)
    templates = ArgumentTemplates()
    for number in range(10):
        for _ in range(2):
            assert arguments_of(templates, payload_of(NodeRef(0), number), "input") == ("input", number)
        assert 0 < len(templates._templates) <= 3
        assert len(templates._seen) <= 3


def test_a_payload_gets_a_template_when_it_comes_again() -> None:
    templates = ArgumentTemplates()
    for _ in range(2):
        assert not templates._templates
        assert arguments_of(templates, payload_of(NodeRef(0), 5), "input") == ("input", 5)
    assert templates._templates


def test_an_input_that_does_not_unpickle_raises_its_error() -> None:
    templates = ArgumentTemplates()
    payload = payload_of(NodeRef(0), 5)
    broken = (b"garbage",)
    inputs = Inputs(broken, broken, "", templates, LoadTimes(print), 1, SmallValues())
    for _ in range(2):
        with with_inputs(inputs), pytest.raises(pickle.UnpicklingError):
            inputs.arguments(payload)
    assert arguments_of(templates, payload, 1) == (1, 5)


def test_a_payload_with_too_many_places_fails_as_with_pickle() -> None:
    templates = ArgumentTemplates()
    with pytest.raises(IndexError):
        arguments_of(templates, payload_of(NodeRef(0), NodeRef(1)), "only one")
