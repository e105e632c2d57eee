"""Judges each repeated execution by what tasks wrote and what was done to their processes.

It knows nothing of the scheduler. An execution may follow an earlier one of the same task only if

- the process of the earlier one was ended, before the execution was over or before its answer could be taken;
- or this process was silent for SILENT_SECONDS: frozen, or cut off. Then tasks that it has not begun, as far as the
  scheduler knows, go to other workers. It may begin tasks shortly after that which were sent to it before, also if
  they have ended elsewhere meanwhile;
- or the task was stopped, by its time limit or a cancel, when the scheduler ended;
- or the task is a child of a task that began again in between, which is judged itself;
- or the task is a node of a graph or a kept result, and since the graph began a host was lost, or the scheduler that
  held it: a lost node is made again from all that it reads, and that may be freed already;
- or the task is a member of a gang, of which another member began again for one of these reasons, or the scheduler
  restarted, or a worker died that may have held a member which had not begun;
- or it ended in the same moment in which a task of its process ended this process;
- or it was suspended when a task of its process ended this process, and the scheduler could not know that the function
  of this task does such things.

A restart of the scheduler alone explains no repeat of a plain task.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.integration.executions import Note

ANSWER_SECONDS = 2.0
"""An answer may be lost with its process for so long after the task's end, while the scheduler can be reached."""


OWN_DEATH_SECONDS = 0.05
"""A task that ends its process may take answers with it of tasks that ended so shortly before."""

SURPRISE_SECONDS = 2.0
"""The scheduler may hear so late that a process has ended."""

SILENT_SECONDS = 1.0
"""A worker that does not answer a request for its queued tasks in two checks, one a second, loses these tasks."""

STALE_SECONDS = 1.0
"""For so long after a silence a process may begin tasks that were sent to it before."""

ORPHAN_SECONDS = 0.5
"""A child of a parent that has died may begin for so long after the parent has begun again."""

SIGNAL_SECONDS = 0.05
"""A process may go on for so long after the moment that is noted for its end."""

NODES = "-graph", "-get", "-kept"
"""What the names of tasks have whose results may be needed again."""

STOPPED = "_endless", "_deaf", ".deaf", "_cancelled"
"""How the names of tasks end that are stopped."""

UNSEEN_SECONDS = 1.0
"""For so long before the first member of a gang began, another may have been sent to a worker that died since."""

RANK = re.compile(r"-gang\.rank\d+$")


@dataclass(frozen=True)
class Fault:
    """What was done to some processes."""

    kind: str
    begin: float
    """In seconds of the monotonic clock, as all times here."""
    end: float
    """When it was over: a frozen process went on, a stopped one had ended, a killed scheduler was back."""
    pids: frozenset[int] = field(default_factory=frozenset)
    """The processes that ended or were frozen; none: all were cut off from the scheduler."""
    is_end: bool = False
    """Whether the processes ended."""


def unexplained(executions: Sequence[Note], faults: Iterable[Fault]) -> list[str]:
    """Return a line for each execution that nothing explains."""
    found = list(faults)
    exits = {note.pid: note.time for note in executions if note.event == "exit"}
    surprises = _surprises(exits, [fault.begin for fault in found if fault.kind == "scheduler ended"])
    gangs: dict[str, list[Note]] = defaultdict(list)
    begins: dict[str, list[Note]] = defaultdict(list)
    ends: dict[tuple[str, int], list[float]] = defaultdict(list)
    graphs: dict[str, float] = {}
    for note in executions:
        if note.event == "begin":
            begins[note.task].append(note)
            graphs.setdefault(_graph_of(note.task), note.time)
            if RANK.search(note.task):
                gangs[RANK.sub("", note.task)].append(note)
        elif note.event == "end":
            ends[note.task, note.pid].append(note.time)

    def end_of(begin: Note, until: float) -> float | None:
        own = [end for end in ends[begin.task, begin.pid] if begin.time <= end <= until]
        return own[0] if own else None

    lines = []
    for task, begun in begins.items():
        for earlier, later in zip(begun, begun[1:]):
            end = end_of(earlier, later.time)
            parents = begins.get(task.rpartition(".")[0], ())
            if any(earlier.time - ORPHAN_SECONDS <= parent.time <= later.time for parent in parents[1:]):
                continue
            exited = exits.get(earlier.pid, 0.0)
            if earlier.pid in surprises if end is None else 0.0 <= exited - end <= OWN_DEATH_SECONDS:
                continue
            members = [each for each in gangs.get(RANK.sub("", task), ()) if each.time <= later.time]
            if not any(
                explains(fault, task, each, end_of(each, later.time), later, found, graphs[_graph_of(task)])
                for each in members or [earlier]
                for fault in found
            ):
                state = "while it ran" if end is None else f"{later.time - end:.2f} s after its end"
                lines.append(
                    f"{task} began in process {earlier.pid} at {earlier.time:.2f} and again in process {later.pid} "
                    f"at {later.time:.2f}, {state}"
                )
    return lines


def _surprises(exits: dict[int, float], restarts: list[float]) -> set[int]:
    """The processes whose ends no scheduler could expect: the first in each of its lives, and what ended until it had
    heard of that."""
    surprises = set()
    for begin in [0.0, *restarts]:
        after = {pid: time for pid, time in exits.items() if time >= begin}
        first = min(after.values(), default=0.0)
        surprises |= {pid for pid, time in after.items() if time <= first + SURPRISE_SECONDS}
    return surprises


def _graph_of(task: str) -> str:
    return task.rpartition("-")[0]


def explains(
    fault: Fault,
    task: str,
    earlier: Note,
    end: float | None,
    later: Note,
    faults: Iterable[Fault],
    graph_began: float,
) -> bool:
    """Return whether a fault explains that a task began again.

    Args:
        earlier: the begin of the earlier execution.
        end: when the earlier execution was over; None: it was not.
        later: the begin of the next execution.
        faults: all faults, for the times without a scheduler.
        graph_began: when the first task of its graph began.
    """
    is_node = any(word in task for word in NODES)
    if is_node and (fault.is_end or not fault.pids) and fault.begin <= later.time and fault.end >= graph_began:
        return True
    is_restart = fault.kind == "scheduler ended"
    is_silence = not fault.is_end and not is_restart
    if is_silence and _is_silent(fault, later.pid) and fault.begin <= later.time <= fault.end + STALE_SECONDS:
        return True
    if RANK.search(task) and fault.begin <= later.time and fault.end >= earlier.time - UNSEEN_SECONDS * fault.is_end:
        if fault.is_end or not fault.pids:
            return True
    if fault.begin > later.time or fault.end + (STALE_SECONDS if is_silence else SIGNAL_SECONDS) < earlier.time:
        return False
    if is_restart and task.endswith(STOPPED):
        return True
    if fault.is_end and earlier.pid in fault.pids:
        return end is None or fault.begin <= end + ANSWER_SECONDS or has_outage(end, fault.begin, faults)
    return is_silence and _is_silent(fault, earlier.pid)


def _is_silent(fault: Fault, pid: int) -> bool:
    """Return whether a process was silent for SILENT_SECONDS because of this fault."""
    return (not fault.pids or pid in fault.pids) and fault.end - fault.begin >= SILENT_SECONDS


def has_outage(begin: float, end: float, faults: Iterable[Fault]) -> bool:
    """Return whether the scheduler could not be reached at some time in between."""
    return any(not fault.pids and fault.begin <= end and begin <= fault.end for fault in faults)
