"""Wakes the thread that runs tasks, if there is work besides the queue."""

from __future__ import annotations

from scaler_client.net.wakeup import WakeupFd


class Wakeup:
    """A flag with a descriptor. Any thread or signal handler sets it, after it has stored the reason.

    The run loop reads `is_set` once a task: one attribute for all reasons, because each further check costs a hundredth
    of a no-op task. It clears the flag first, and then checks every reason.
    """

    def __init__(self) -> None:
        self.is_set = False
        self._wake = WakeupFd()
        self._is_waited_for = False

    def set(self) -> None:
        self.is_set = True
        if self._is_waited_for:
            self._wake.set()

    def fileno(self) -> int:
        """A descriptor that is readable if the wakeup is set between `begin_wait` and `end_wait`."""
        return self._wake.fileno()

    def begin_wait(self) -> bool:
        """Call it before a poll of `fileno`. Returns False if the wakeup is set already: do not poll then."""
        self._is_waited_for = True
        return not self.is_set

    def end_wait(self) -> None:
        """Call it after the poll."""
        self._is_waited_for = False
        self._wake.clear()
