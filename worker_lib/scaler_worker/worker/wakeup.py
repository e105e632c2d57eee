"""How the thread that runs tasks is told that there is something to see to besides its queue."""

from __future__ import annotations

from scaler_client.net.wakeup import WakeupFd


class Wakeup:
    """Rung, from any thread or signal handler, after whatever there is to see has been put where it is looked for.

    The run loop looks at `is_set` once a task: one attribute for all reasons, as each further look costs a hundredth
    of a no-op. Who answers it clears it first, and looks at every reason then.
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
        """Readable when the wakeup is rung between `begin_wait` and `end_wait`."""
        return self._wake.fileno()

    def begin_wait(self) -> bool:
        """Before a poll of `fileno`. False when the wakeup is rung already: there must be no poll then."""
        self._is_waited_for = True
        return not self.is_set

    def end_wait(self) -> None:
        """After the poll."""
        self._is_waited_for = False
        self._wake.clear()
