"""What has changed in the configuration since the start, when options are read: it waits for the next start."""

from __future__ import annotations

import logging
from typing import Mapping

from ..commands.command_line import Arguments, resolve
from ..commands.options import Command, OptionError

_log = logging.getLogger(__name__)


class PendingConfig:
    """Between what the options say now and what they say at `tell`. Raises OptionError where one is wrong now."""

    def __init__(self, command: Command, arguments: Arguments, environ: Mapping[str, str]) -> None:
        self._command = command
        self._arguments = arguments
        self._environ = environ
        self._before = resolve(command, arguments, environ)

    def log_changes(self) -> None:
        """Log what waits; nothing where nothing does."""
        try:
            now = resolve(self._command, self._arguments, self._environ)
        except OptionError as error:
            _log.error("the next start will fail: %s", error)
            return
        changed = [key for key, value in now.items() if value != self._before[key]]
        if changed:
            _log.warning("changed, which holds from the next start on (no task is lost): %s", ", ".join(changed))
