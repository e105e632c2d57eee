"""How the thread that runs tasks is told that there is something to see to besides its queue."""

from __future__ import annotations

from scaler_client.net.wakeup import Wake


class Bell:
    """Rung, from any thread or signal handler, after whatever there is to see has been put where it is looked for.

    The run loop looks at `is_rung` once a task: one attribute for all reasons, as each further look costs a hundredth
    of a no-op. Who answers it clears it first, and looks at every reason then.
    """

    def __init__(self) -> None:
        self.is_rung = False
        self._wake = Wake()
        self._is_listened_for = False

    def ring(self) -> None:
        self.is_rung = True
        if self._is_listened_for:
            self._wake.set()

    def fileno(self) -> int:
        """Readable when the bell is rung between `listen` and `heard`."""
        return self._wake.fileno()

    def listen(self) -> bool:
        """Before a poll of `fileno`. False when the bell is rung already: there must be no poll then."""
        self._is_listened_for = True
        return not self.is_rung

    def heard(self) -> None:
        """After the poll."""
        self._is_listened_for = False
        self._wake.clear()
