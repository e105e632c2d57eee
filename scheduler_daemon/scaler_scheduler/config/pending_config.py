"""Changes of the configuration since the start of the scheduler. Most take effect at its next start."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ..commands.command_line import Arguments, resolve
from ..commands.options import Command, OptionError

RELOADED = frozenset(["limits"])
"""Options that take effect at once."""

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

    def log_changes(self) -> dict[str, Any] | None:
        """Log the changed options, or the error with which the next start would fail.

        Returns:
            All options as they are now; None: one of them is wrong.
        """
        try:
            now = resolve(self._command, self._arguments, self._environ)
        except OptionError as error:
            _log.error("the next start will fail: %s", error)
            return None
        changed = [key for key, value in now.items() if value != self._before[key] and key not in RELOADED]
        if changed:
            _log.warning("changed options take effect at the next start (no task is lost): %s", ", ".join(changed))
        return now
