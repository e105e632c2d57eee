"""A function whose tasks are tried again if they raise certain exceptions.

It has a separate module, because tracebacks leave out the frames of this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RetryOn = tuple[type[BaseException], ...]


class RetryingFunction:
    """Calls the function on workers, and carries the exceptions after which a task runs again.

    Args:
        fn: the function to call.
        retry_on: classes of exceptions.
    """

    def __init__(self, fn: Callable[..., Any], retry_on: RetryOn) -> None:
        self.fn = fn
        self.retry_on = retry_on

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)
