"""How a deliberate fault is planted: a function is compiled again with a small change of its source."""

from __future__ import annotations

import inspect
import sys
import textwrap
from dataclasses import dataclass
from typing import Any

_CHANGED = ("scaler_scheduler.core.", "scaler_client.", "scaler_worker.")


@dataclass(frozen=True)
class Mutation:
    """One deliberate fault: a piece of a function's source, and what stands there instead."""

    name: str
    owner: Any
    """The class or module that has the function."""
    function: str
    old: str
    new: str

    def patches(self) -> list[tuple[Any, str, Any]]:
        """Return what to patch: the owner, the name and the function with the fault, wherever it is used.

        Raises:
            LookupError: the function does not have the text to change, or has it more than once.
        """
        original = inspect.getattr_static(self.owner, self.function)
        function: Any = original.fget if isinstance(original, property) else original
        source = textwrap.dedent(inspect.getsource(function))
        if source.count(self.old) != 1:
            raise LookupError(f"{self.name}: {self.function} has {self.old!r} {source.count(self.old)} times")
        namespace: dict[str, Any] = {}
        source = source.replace("@property\n", "").replace(self.old, self.new)
        exec(compile(source, f"<{self.name}>", "exec"), function.__globals__, namespace)
        made = namespace[self.function]
        if inspect.isclass(self.owner):
            put = property(made) if isinstance(original, property) else made
            return [(self.owner, self.function, put)]
        places = [module for name, module in sys.modules.items() if name.startswith(_CHANGED)]
        return [(module, self.function, made) for module in places if vars(module).get(self.function) is original]
