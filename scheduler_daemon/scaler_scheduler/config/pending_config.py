"""Changes of the configuration since the start of the scheduler. They take effect at its next start."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ..commands.command_line import Arguments, resolve
from ..commands.options import Command, OptionError

_log = logging.getLogger(__name__)


class PendingConfig:
    """Compares the options at the start with those at `log_changes`.

    Args:
        command: the table of options.
        arguments: the command line.
        environ: the environment. It is read again at each `log_changes`.

    Raises:
        OptionError: an option is wrong at the start.
    """

    def __init__(self, command: Command, arguments: Arguments, environ: Mapping[str, str]) -> None:
        self._command = command
        self._arguments = arguments
        self._environ = environ
        self._before = resolve(command, arguments, environ)

    def log_changes(self) -> None:
        """Log the changed options, or the error with which the next start would fail."""
        try:
            now = resolve(self._command, self._arguments, self._environ)
        except OptionError as error:
            _log.error("the next start will fail: %s", error)
            return
        changed = [key for key, value in now.items() if value != self._before[key]]
        if changed:
            _log.warning("changed options take effect at the next start (no task is lost): %s", ", ".join(changed))
