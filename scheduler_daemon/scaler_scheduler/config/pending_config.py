"""Changes of the configuration since the start of the scheduler. Most take effect at its next start."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ..commands.command_line import Arguments, resolve
from ..commands.options import Command, OptionError
from ..core.limits import LimitSettings, rate_in_words

_UNITS = {"second": "s", "minute": "min", "hour": "h"}

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
        self._limits: Mapping[str, LimitSettings] = self._before.get("limits", {})
        """The limits of tasks that hold now."""

    def log_changes(self) -> dict[str, Any] | None:
        """Log the changed options, also those that take effect at once, or the error with which the next start would
        fail.

        Returns:
            All options as they are now; None: one of them is wrong.
        """
        try:
            now = resolve(self._command, self._arguments, self._environ)
        except OptionError as error:
            _log.error("the next start will fail, and until then all options stay as they were: %s", error)
            return None
        changes = limit_changes(self._limits, now.get("limits", {}))
        if changes:
            _log.info("changed limits hold from now on: %s", ", ".join(changes))
        self._limits = now.get("limits", {})
        changed = [key for key, value in now.items() if value != self._before[key] and key not in RELOADED]
        if changed:
            _log.warning("changed options take effect at the next start (no task is lost): %s", ", ".join(changed))
        return now


def limit_changes(before: Mapping[str, LimitSettings], now: Mapping[str, LimitSettings]) -> list[str]:
    """Return a text for each limit of tasks that differs, by name: `db=3 (was 10)`."""
    texts = []
    for name in sorted({*before, *now}):
        if name not in now:
            texts.append(f"{name} removed")
        elif name not in before:
            texts.append(f"{name}={_limit_text(now[name])} (new)")
        elif now[name] != before[name]:
            texts.append(f"{name}={_limit_text(now[name])} (was {_limit_text(before[name])})")
    return texts


def _limit_text(limit: LimitSettings) -> str:
    if limit.most:
        return str(limit.most)
    number, unit = rate_in_words(limit.per_second)
    return f"{number}/{_UNITS[unit]}"
