"""What has happened to tasks, as the columns of a History message."""

from __future__ import annotations

from typing import List, Sequence

from .core.history import History
from .status_columns import Texts
from .wire.columns import UINT8, UINT32, UINT64, columns_message, shrunk
from .wire.kinds import KIND_NAMES

_HISTORY = KIND_NAMES.index("history")


def history_frame(history: History, incarnation: int, started: float) -> bytes:
    """Frame 0 of the next History; empty where nothing has happened.

    Args:
        incarnation: the scheduler's.
        started: when it was, in seconds of the monotonic clock.
    """
    first, runs = history.take()
    texts = Texts()
    kinds: List[int] = []
    times: List[int] = []
    clients: List[int] = []
    ids: List[int] = []
    attempts: List[int] = []
    workers: List[int] = []
    names: List[int] = []
    outcomes: List[int] = []
    durations: List[int] = []
    for run in runs:
        rows = len(run.ids)
        kinds.extend([run.kind] * rows)
        times.extend([max(0, int((run.seconds - started) * 1e6))] * rows)
        clients.extend(_full(run.clients, rows))
        ids.extend(run.ids)
        attempts.extend(_full(run.attempts, rows))
        workers.extend([run.worker] * rows)
        names.extend([texts.number(run.name)] * rows)
        outcomes.extend(_full(run.outcomes, rows))
        durations.extend(_full(run.durations, rows))
    if not ids:
        return b""
    return columns_message(
        _HISTORY,
        (
            (UINT64, (incarnation,)),
            (UINT64, (first,)),
            (UINT8, shrunk(kinds)),
            (UINT64, shrunk(times)),
            (UINT64, shrunk(clients)),
            (UINT64, ids),
            (UINT32, shrunk(attempts)),
            (UINT64, shrunk(workers)),
            (UINT32, shrunk(names)),
            (UINT8, shrunk(outcomes)),
            (UINT64, shrunk(durations)),
            *texts.columns(),
        ),
    )


def _full(column: Sequence[int], rows: int) -> Sequence[int]:
    return list(column) * rows if len(column) == 1 else column
