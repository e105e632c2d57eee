"""Sends large arrays in the arguments of joblib calls as objects, once to each host.

joblib itself maps such arrays into the memory of its processes, from the same size on (`max_nbytes`). In both cases the
calls cannot write to them.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from ..api.client import Client
from ..pickling.references import ObjectRef


class SharedArrays:
    """The large arrays of one call of joblib.Parallel.

    Args:
        client: the client that sends the arrays.
        least_bytes: arrays of at least this size are sent as objects; None: no arrays are.
    """

    def __init__(self, client: Client, least_bytes: int | None) -> None:
        self._client = client
        self._least_bytes = float("inf") if least_bytes is None else least_bytes
        self._lock = threading.RLock()
        self._shared: dict[int, tuple[Any, ObjectRef]] = {}
        """Arrays and their references by the identity of the array.

        The identity is unique as long as the array is kept.
        """

    def share(self, batch: Any) -> None:
        """Replace large arrays by references in the arguments of a batch.

        Raises:
            ClientClosedError: the client is disconnected.
        """
        # Custom serializers cannot serialize references.
        if "numpy" in sys.modules and not self._client._has_custom_serializer:
            batch.items = [(fn, self._share_all(args), self._share_keywords(named)) for fn, args, named in batch.items]

    def _share_all(self, values: Any) -> Any:
        return tuple(map(self._share_one, values))

    def _share_keywords(self, values: Any) -> Any:
        return {name: self._share_one(value) for name, value in values.items()}

    def _share_one(self, value: Any) -> Any:
        import numpy

        if type(value) is not numpy.ndarray or value.dtype.hasobject or value.nbytes < self._least_bytes:
            return value
        with self._lock:
            known = self._shared.get(id(value))
            if known is None:
                known = self._shared[id(value)] = value, self._client.send_object(value, shared=True)
            return known[1]
