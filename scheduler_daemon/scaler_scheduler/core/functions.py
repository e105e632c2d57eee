"""The table of functions: each once, named by the digest of its bytes, whoever brought it."""

from typing import Dict, Iterator, List

from scaler_scheduler.core.records import Client, Function


class FunctionTable:
    def __init__(self) -> None:
        self._by_digest: Dict[bytes, Function] = {}
        self._next_number = 1
        self._unused: List[Function] = []

    def __iter__(self) -> Iterator[Function]:
        return iter(list(self._by_digest.values()))

    def __len__(self) -> int:
        return len(self._by_digest)

    def add(self, digest: bytes, name: str, serializer: str, payload: bytes) -> Function:
        """The function of this digest, kept from now on."""
        function = self._by_digest.get(digest)
        if function is None:
            function = Function(self._next_number, digest, name, serializer, payload)
            self._next_number += 1
            self._by_digest[digest] = function
        return function

    def hold(self, function: Function, client: Client) -> None:
        """One more of the client's numbers names this function."""
        function.holders[client.incarnation] = function.holders.get(client.incarnation, 0) + 1

    def release(self, function: Function, client: Client) -> None:
        """One of the client's numbers names this function no longer."""
        held = function.holders.pop(client.incarnation) - 1
        if held:
            function.holders[client.incarnation] = held
        elif function.is_unused:
            self._unused.append(function)

    def let_go(self, function: Function) -> None:
        """One of its tasks is over."""
        function.tasks -= 1
        if function.is_unused:
            self._unused.append(function)

    def remove_unused(self) -> List[Function]:
        """Drop, and return, the functions that no client holds and no task names any more."""
        if not self._unused:
            return []
        # Once each: a function may have been unused, taken up and unused again meanwhile.
        removed = [function for function in dict.fromkeys(self._unused) if function.is_unused]
        self._unused = []
        for function in removed:
            del self._by_digest[function.digest]
        return removed
