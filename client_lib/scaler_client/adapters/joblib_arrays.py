"""Large arrays in the arguments of joblib's calls: they become objects, which each host is sent once.

As joblib does itself with those that it maps into its processes' memory, and from the same size on (`max_nbytes`): the
calls can't write to them.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from ..api.client import Client
from ..pickling.references import ObjectRef


class SharedArrays:
    """Those of one call of joblib.Parallel.

    Args:
        least_bytes: an array of fewer goes with each batch that reads it; None: each does.
    """

    def __init__(self, client: Client, least_bytes: int | None) -> None:
        self._client = client
        self._least_bytes = float("inf") if least_bytes is None else least_bytes
        self._lock = threading.Lock()
        self._shared: dict[int, tuple[Any, ObjectRef]] = {}
        """By the arrays' identities, with the arrays, which keep them."""

    def share(self, batch: Any) -> None:
        """Put references in their places in a batch of calls.

        Raises:
            ClientClosedError: the client is disconnected.
        """
        # What a serializer of the user's makes of a batch has no place for references.
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
                known = self._shared[id(value)] = value, self._client.send_object(value)
            return known[1]
