"""The arguments of small calls that read inputs. Equal payloads are unpickled once.

The nodes of a graph often have equal payloads: the same literals, and inputs at the same places. To unpickle one with
three inputs takes 1.6 us, and to fill in its template 0.5 us (benchmarks/graph_rate.py). To make a template takes
longer than to unpickle, so a payload gets one when it comes for the second time (benchmarks/chains.py).
"""

from __future__ import annotations

import pickle
from operator import itemgetter
from typing import Any

from scaler_client.pickling.call_pickles import CALL_BEGIN, SIMPLE_TYPES
from scaler_client.pickling.input_lookup import with_inputs
from scaler_client.protocol.messages import Payload

MAX_PAYLOAD_BYTES = 256
"""Longer payloads have no template: they are seldom equal."""

MAX_TEMPLATES = 1000
"""If there are more, or as many payloads came once, all are dropped: the memory must stay bounded."""


class _Place:
    """Stands for an input while a template is made."""

    def __init__(self, position: int, is_shared: bool = False) -> None:
        self.position = position
        self.is_shared = is_shared


class Template:
    """The arguments of a call with inputs, where all other arguments are immutable and so can be shared by calls."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        places = [each for each in arguments if type(each) is _Place]
        self.input_count = max(each.position for each in places) + 1
        self.are_shared = places[0].is_shared
        """Whether tasks share the values of the inputs."""
        self._literals = [each for each in arguments if type(each) is not _Place]
        numbers = iter(range(self.input_count, self.input_count + len(self._literals)))
        order = [each.position if type(each) is _Place else next(numbers) for each in arguments]
        self._is_plain = order == list(range(self.input_count))
        self._pick = itemgetter(*order, 0)  # one position more than needed, so that it always returns a tuple

    def arguments(self, values: list[Any]) -> tuple[Any, ...]:
        """Return the arguments with these values of the inputs."""
        return tuple(values) if self._is_plain else self._pick(values + self._literals)[:-1]


class ArgumentTemplates:
    """The templates of one worker, by payload."""

    def __init__(self) -> None:
        self._templates: dict[bytes, Template | None] = {}
        self._seen: set[bytes] = set()
        """Payloads that came once."""

    def find(self, payload: Payload, count: int) -> Template | None:
        """Return the template of a call; None: its payload must be unpickled.

        Args:
            payload: the pickled arguments.
            count: the number of the call's inputs.
        """
        if type(payload) is not bytes or len(payload) > MAX_PAYLOAD_BYTES:
            return None
        template = self._templates.get(payload)
        if template is None and payload not in self._templates:
            template = self._add(payload)
        return template if template is not None and template.input_count == count else None

    def _add(self, payload: bytes) -> Template | None:
        if payload not in self._seen:
            if len(self._seen) >= MAX_TEMPLATES:
                self._seen.clear()
            self._seen.add(payload)
            return None
        if len(self._templates) >= MAX_TEMPLATES:
            self._templates.clear()
        template = self._templates[payload] = _template_of(payload)
        return template


def _template_of(payload: bytes) -> Template | None:
    """Return the template of a payload; None: it has none."""
    if not payload.startswith(CALL_BEGIN):
        return None  # written by a pickler: it may contain any types, whose unpickling may have side effects
    try:
        with with_inputs(_Place):
            arguments = pickle.loads(payload)
    except Exception:
        return None  # `pickle.loads` fails again, and its error is the task's
    if type(arguments) is not tuple:
        return None
    kinds = set(map(type, arguments))
    sharing = {each.is_shared for each in arguments if type(each) is _Place}
    return Template(arguments) if len(sharing) == 1 and kinds - {_Place} <= SIMPLE_TYPES else None
