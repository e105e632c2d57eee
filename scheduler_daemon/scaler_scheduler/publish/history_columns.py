"""The columns of a History message: changes of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ..core.lines import TRACEBACK_BYTES
from ..core.state.history_rows import Rows
from ..wire.columns import UINT8, UINT32, UINT64, Column, columns_message, compacted
from ..wire.message_kinds import KIND_NAMES
from .snapshot_columns import TextTable

REASONS_BYTES = 8192
"""The most bytes of the reasons why one task waits."""

_HISTORY = KIND_NAMES.index("history")


def history_frame(
    first: int,
    runs: Sequence[Rows],
    incarnation: int,
    started: float,
    tracebacks: Sequence[str] = (),
    reasons: Sequence[str] = (),
) -> bytes:
    """Frame 0 of a History message.

    Args:
        first: the number of the first row.
        incarnation: the scheduler's.
        runs: the rows.
        started: the start of the scheduler, in seconds of the monotonic clock.
        tracebacks: one for each row, which may be empty; or none at all.
        reasons: why the task of each row waits, likewise.
    """
    texts = TextTable()
    kinds: list[int] = []
    times: list[int] = []
    clients: list[int] = []
    ids: list[int] = []
    attempts: list[int] = []
    workers: list[int] = []
    names: list[int] = []
    outcomes: list[int] = []
    durations: list[int] = []
    for run in runs:
        rows = len(run.ids)
        kinds.extend(_expanded(run.kinds, rows))
        times.extend(_expanded([max(0, int((seconds - started) * 1e6)) for seconds in run.seconds], rows))
        clients.extend(_expanded(run.clients, rows))
        ids.extend(run.ids)
        attempts.extend(_expanded(run.attempts, rows))
        workers.extend(_expanded(run.workers, rows))
        names.extend(_expanded([texts.number(name) for name in run.names], rows))
        outcomes.extend(_expanded(run.outcomes, rows))
        durations.extend(_expanded(run.durations, rows))
    functions = _functions(runs, texts)
    errors = _errors(runs, texts)
    reason_numbers = [texts.number(text, REASONS_BYTES) for text in reasons] if any(reasons) else []
    traceback_numbers = [texts.number(text, TRACEBACK_BYTES) for text in tracebacks] if any(tracebacks) else []
    return columns_message(
        _HISTORY,
        (
            (UINT64, (incarnation,)),
            (UINT64, (first,)),
            (UINT8, compacted(kinds)),
            (UINT64, compacted(times)),
            (UINT64, compacted(clients)),
            (UINT64, ids),
            (UINT32, compacted(attempts)),
            (UINT64, compacted(workers)),
            (UINT32, compacted(names)),
            (UINT8, compacted(outcomes)),
            (UINT64, compacted(durations)),
            *texts.columns(),
            errors,
            functions,
            (UINT32, traceback_numbers),
            (UINT32, reason_numbers),
        ),
    )


def _functions(runs: Sequence[Rows], texts: TextTable) -> Column:
    """The function of each row. Empty if no task has a name of its own."""
    if all(run.functions == run.names for run in runs):
        return UINT32, ()
    functions: list[int] = []
    for run in runs:
        functions.extend(_expanded([texts.number(name) for name in run.functions], len(run.ids)))
    return UINT32, compacted(functions)


def _errors(runs: Sequence[Rows], texts: TextTable) -> Column:
    """The error of each row. Empty if no row has one."""
    if not any(error for run in runs for error in run.errors):
        return UINT32, ()
    nothing = texts.number("")
    errors: list[int] = []
    for run in runs:
        errors.extend([texts.number(error) for error in run.errors] or [nothing] * len(run.ids))
    return UINT32, errors


_T = TypeVar("_T")


def _expanded(column: Sequence[_T], rows: int) -> Sequence[_T]:
    return list(column) * rows if len(column) == 1 else column
