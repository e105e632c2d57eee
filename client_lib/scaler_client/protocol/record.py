"""`Record`, the base class of the protocol's many dataclasses."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


class Record:
    """Equality and text for a dataclass that is made with `eq=False` and `repr=False`.

    The decorator compiles each method of each class from a text. For all messages and effects, these two methods took a
    tenth of the start of a host agent or a client.
    """

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if other.__class__ is self.__class__ else NotImplemented

    def __repr__(self) -> str:
        described: Any = self
        shown = [f"{field.name}={getattr(self, field.name)!r}" for field in fields(described) if field.repr]
        return f"{type(self).__qualname__}({', '.join(shown)})"
