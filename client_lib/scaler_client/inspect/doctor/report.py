"""The outcome of each check, as text and as JSON."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...monitor.text_layout import BAD, GOOD, OutputFormat, clean, wrapped

NAME_WIDTH = 15
STATUS_WIDTH = 9

WARNING_STYLE = "33"


class Status(enum.IntEnum):
    """How a check has ended. Larger is worse."""

    OK = 0
    WARNING = 1
    """Something that may go wrong, or that could not be checked."""
    ERROR = 2
    """Something that stops tasks of this program."""


_STYLES = {Status.OK: GOOD, Status.WARNING: WARNING_STYLE, Status.ERROR: BAD}


@dataclass(frozen=True)
class Check:
    """The outcome of one check."""

    name: str
    """What was checked, for example "open files"."""
    status: Status
    text: str
    """What was found."""
    advice: str = ""
    """What to do; empty if nothing is wrong."""


def ok(name: str, text: str) -> Check:
    """A check that found nothing wrong."""
    return Check(name, Status.OK, text)


def warning(name: str, text: str, advice: str) -> Check:
    """A check that found what may go wrong."""
    return Check(name, Status.WARNING, text, advice)


def error(name: str, text: str, advice: str) -> Check:
    """A check that found what stops tasks."""
    return Check(name, Status.ERROR, text, advice)


def check_lines(output: OutputFormat, check: Check) -> list[str]:
    """The lines of one check: name, status and text; below them what to do."""
    status = check.status.name.lower()
    indent = NAME_WIDTH + STATUS_WIDTH
    width = output.columns - indent
    first, *more = wrapped(clean(check.text), width)
    padding = " " * (STATUS_WIDTH - len(status))
    lines = [f"{check.name:<{NAME_WIDTH}}{output.styled(status, _STYLES[check.status])}{padding}{first}"]
    lines += [" " * indent + line for line in more]
    if check.advice:
        lines += [" " * indent + line for line in wrapped(f"-> {clean(check.advice)}", width)]
    return lines


def worst(checks: Iterable[Check]) -> Status:
    """The worst status of several checks."""
    return max((check.status for check in checks), default=Status.OK)


def summary(checks: Sequence[Check]) -> str:
    """The last line: how many checks were made, and how they ended."""
    counts = [sum(check.status == status for check in checks) for status in Status]
    parts = [f"{number} {status.name.lower()}" for status, number in zip(Status, counts) if number]
    return f"{len(checks)} checks: {', '.join(parts)}"


def report_json(checks: Sequence[Check], address: str) -> dict[str, Any]:
    """The report as JSON. Its keys are stable."""
    return {
        "address": address,
        "status": worst(checks).name.lower(),
        "checks": [
            {"check": each.name, "status": each.status.name.lower(), "text": each.text, "advice": each.advice}
            for each in checks
        ],
    }
