"""The table of functions: each once, named by the digest of its bytes, whoever brought it."""

from typing import Dict, Iterator

from scaler_scheduler.core.records import Function


class FunctionTable:
    def __init__(self) -> None:
        self._by_digest: Dict[bytes, Function] = {}
        self._next_number = 1

    def __iter__(self) -> Iterator[Function]:
        return iter(list(self._by_digest.values()))

    def __contains__(self, function: Function) -> bool:
        return self._by_digest.get(function.digest) is function

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

    def remove(self, function: Function) -> None:
        del self._by_digest[function.digest]
