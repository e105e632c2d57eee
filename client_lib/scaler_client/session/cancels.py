"""Cancels that are under way: asked of the scheduler where it has the task, done here where it has not.

What is asked and not answered is asked again after a join. What was cancelled here while there was no scheduler, and
was submitted to one before, is told to the next one, which may still hold it or have it run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..protocol.messages import Cancel, Message, Outcome
from .backlog import BATCH_ROWS, Backlog
from .open_tasks import OpenTasks


class Cancels:
    def __init__(self, tasks: OpenTasks, backlog: Backlog) -> None:
        self._tasks = tasks
        self._backlog = backlog
        self._waiting: dict[int, list[Callable[[], None]]] = {}
        """Who is to hear that a task's fate is known."""
        self._forced: set[int] = set()
        """Those that are to be stopped if they run."""
        self._untold: dict[bool, list[int]] = {False: [], True: []}
        """What the scheduler is to be asked: by whether to stop what runs."""

    def add(self, ids: Sequence[int], answered: Callable[[], None], force: bool) -> None:
        """Cancel these; `answered` is called for each that is open, once, when its fate is known."""
        wanted = [task_id for task_id in ids if self._tasks.is_known(task_id)]
        for task_id in wanted:
            self._waiting.setdefault(task_id, []).append(answered)
        if force:
            self._forced.update(wanted)
        self._ask(wanted)

    def tell(self, ids: Sequence[int]) -> list[Message]:
        """Nobody waits for these any more: a scheduler that may have them is to drop them, and to stop what runs.

        Returns what to tell one that was only silent. The next one is told in any case: this may be lost.
        """
        sent = [task_id for task_id in ids if self._backlog.has_ever_sent(task_id)]
        self._untold[True] += sent
        return cancel_messages(sent, force=True)

    def resubmitted(self, ids: Sequence[int] | None = None) -> None:
        """Everything that is open, or these tasks, were submitted again."""
        self._ask([task_id for task_id in self._waiting if ids is None or task_id in ids])

    def pop_messages(self) -> list[Message]:
        """What to tell a scheduler that has joined this client."""
        untold, self._untold = self._untold, {False: [], True: []}
        return [message for force, ids in untold.items() for message in cancel_messages(sorted(set(ids)), force)]

    def answer(self, ids: Sequence[int]) -> None:
        """The fate of these is known, if anybody asked."""
        if self._waiting:
            for task_id in ids:
                for answered in self._waiting.pop(task_id, ()):
                    answered()
                self._forced.discard(task_id)

    def refused(self, ids: Sequence[int]) -> None:
        """These run to their end, unless they are to be stopped: then that one's answer counts for all who asked."""
        self.answer([task_id for task_id in ids if task_id not in self._forced])

    def _ask(self, ids: Sequence[int]) -> None:
        for task_id in ids:
            force = task_id in self._forced
            if self._backlog.has_sent(task_id):
                self._untold[force].append(task_id)
                continue
            for each in self._tasks.cancel_node(task_id):
                if not self._backlog.has_sent(each):
                    self._cancel_here(each, force)

    def _cancel_here(self, task_id: int, force: bool) -> None:
        """A task that was not sent since the join."""
        self._backlog.drop(task_id)
        if self._backlog.has_ever_sent(task_id):
            self._untold[force].append(task_id)
        self._tasks.resolve(task_id, Outcome.CANCELLED, b"")
        self.answer([task_id])


def cancel_messages(ids: Sequence[int], force: bool) -> list[Message]:
    """Not longer than a batch of tasks: the scheduler takes no more rows in one message than its `--batch-limit`."""
    return [Cancel(list(ids[begin : begin + BATCH_ROWS]), force) for begin in range(0, len(ids), BATCH_ROWS)]
