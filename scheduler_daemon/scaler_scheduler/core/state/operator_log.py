"""Log lines of the core, for operators."""


class OperatorLog:
    """Lines that the daemon writes to the log after each step."""

    def __init__(self) -> None:
        self._texts: list[tuple[bool, str]] = []
        self.are_clients_operators = False
        """Whether the user of the clients also reads this log, as for the scheduler of a local cluster."""

    def info(self, text: str) -> None:
        self._texts.append((False, text))

    def warning(self, text: str) -> None:
        self._texts.append((True, text))

    def client_warning(self, text: str) -> None:
        """A warning that a client gets too. If the client's user reads this log, it is only an info here."""
        self._texts.append((not self.are_clients_operators, text))

    def drain(self) -> list[tuple[bool, str]]:
        """Return the lines since the last call: whether each is a warning, and its text."""
        texts, self._texts = self._texts, []
        return texts
