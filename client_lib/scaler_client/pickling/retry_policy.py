"""A function whose tasks are tried again when they raise certain exceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RetryOn = tuple[type[BaseException], ...]


class RetryingFunction:
    """What a worker gets in place of the function: it calls it, and `retry_on` says what the task is tried again on."""

    def __init__(self, fn: Callable[..., Any], retry_on: RetryOn) -> None:
        self.fn = fn
        self.retry_on = retry_on

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)
