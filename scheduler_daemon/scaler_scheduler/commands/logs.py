"""Logging of a command, in lines like `[INFO]2026-03-19 12:16:10-0400: message`.

scaler_client has a link to this file.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Sequence

from .log_handlers import LINE_FORMAT, TIME_FORMAT, LineHandler, WatchedFileHandler, limit_error_reports
from .options import Option, OptionError, choice, text

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

JOURNAL_VARIABLE = "JOURNAL_STREAM"
MAX_LINE_LENGTH = 500  # characters of a text from another process
_GAP = " ... "
_PRIORITIES = {"DEBUG": 7, "INFO": 6, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}
"""syslog's priorities. systemd's journal reads them at the beginning of a line (sd-daemon(3))."""

LOGGING_OPTIONS = (
    Option(
        "logging-level",
        choice("LEVEL", LEVELS, str.upper),
        "INFO",
        f"the lowest level that is logged: {', '.join(LEVELS)}",
    ),
    Option(
        "logging-paths",
        text("PATHS", is_list=True, is_file=True),
        ("/dev/stderr",),
        "files to append log lines to, separated by commas or given by several options; /dev/stdout and "
        "/dev/stderr are the command's own",
    ),
    Option(
        "logging-config-file",
        text("FILE", is_file=True),
        "",
        "a configuration of Python's logging.config, INI or JSON, in place of the two options above",
    ),
)


def set_up(level: str, paths: Sequence[str], config_file: str = "") -> None:
    """Set up the root logger and replace its handlers.

    Args:
        level: one of LEVELS.
        paths: files to append to.
        config_file: a configuration of logging.config. If it is not empty, the other arguments are ignored.

    Raises:
        OptionError: a file cannot be used. The text names it.
    """
    if config_file:
        _set_up_from_file(config_file)
        return
    plain, for_journal = logging.Formatter(LINE_FORMAT, TIME_FORMAT), _JournalFormatter()
    handlers = [_handler(path) for path in paths]
    for handler in handlers:
        handler.setFormatter(for_journal if _is_journal(handler) else plain)
    logging.basicConfig(level=level, handlers=handlers, force=True)


def on_one_line(foreign: str, limit: int = MAX_LINE_LENGTH) -> str:
    """Make a text from another process fit for the log: it cannot begin new lines or control a terminal.

    A text of more than `limit` characters is cut in the middle: often its end names the cause.
    """
    if len(foreign) > limit:
        half = (limit - len(_GAP)) // 2
        foreign = foreign[:half] + _GAP + foreign[-half:]
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in foreign)


class _JournalFormatter(logging.Formatter):
    """systemd's journal adds the time itself, and reads the level from a number at the beginning of each line."""

    def format(self, record: logging.LogRecord) -> str:
        prefix = f"<{_PRIORITIES.get(record.levelname, 5)}>"
        return "\n".join(prefix + line for line in super().format(record).split("\n"))


def _is_journal(handler: logging.Handler) -> bool:
    """Whether the handler writes to the journal that the service manager names."""
    if type(handler) is not LineHandler or not os.environ.get(JOURNAL_VARIABLE):
        return False
    try:
        there = os.fstat(handler.stream.fileno())
    except (OSError, ValueError):
        return False
    return os.environ[JOURNAL_VARIABLE] == f"{there.st_dev}:{there.st_ino}"


def _handler(path: str) -> logging.Handler:
    # Use the streams themselves. A socket (systemd's journal) cannot be opened by this path, and a file would be
    # written from two offsets.
    if path == "/dev/stdout":
        return LineHandler(sys.stdout, path)
    if path == "/dev/stderr":
        return LineHandler(sys.stderr, path)
    try:
        return WatchedFileHandler(path)
    except OSError as error:
        raise OptionError(f"cannot log to {path}: {error.strerror}") from None


def _set_up_from_file(path: str) -> None:
    import json  # not at the top: few programs need these, and logging.config imports pickle, sockets and threads
    import logging.config

    try:
        with open(path, encoding="utf-8") as file:
            content = file.read()
    except OSError as error:
        raise OptionError(f"cannot read the logging configuration {path}: {error.strerror}") from None
    except ValueError:
        raise OptionError(f"the logging configuration {path} is not UTF-8 text") from None
    try:
        if content.lstrip().startswith("{"):
            logging.config.dictConfig({"disable_existing_loggers": False, **json.loads(content)})
        else:
            logging.config.fileConfig(io.StringIO(content), disable_existing_loggers=False)
    except Exception as error:  # the file names classes and their arguments, so any error is possible
        raise OptionError(f"the logging configuration {path} is wrong: {_reason(error)}") from None
    named = [logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
    for handler in {handler for logger in (logging.root, *named) for handler in logger.handlers}:
        limit_error_reports(handler)


def _reason(error: BaseException) -> str:
    cause = error.__cause__ or error
    return f"{error} ({cause})" if cause is not error else f"{type(error).__name__}: {error}"
