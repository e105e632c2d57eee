"""Cancels under way: requested from the scheduler if it has the task, done in the client if it does not.

A request without an answer is repeated after each join. A task may be cancelled while the client has no scheduler. If
the task was sent to an earlier scheduler, the next scheduler gets the cancel too, because it may still hold or run the
task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..protocol.messages import Cancel, Message, Outcome
from .backlog import BATCH_ROWS, Backlog
from .open_tasks import OpenTasks


class Cancels:
    """The cancels of one client."""

    def __init__(self, tasks: OpenTasks, backlog: Backlog) -> None:
        self._tasks = tasks
        self._backlog = backlog
        self._waiting: dict[int, list[Callable[[], None]]] = {}
        """Callbacks by task id, for tasks whose cancel is not answered yet."""
        self._forced: set[int] = set()
        """Tasks to interrupt if they run."""
        self._unsent: dict[bool, list[int]] = {False: [], True: []}
        """Tasks whose cancel is not sent yet, by whether to interrupt them."""

    def add(self, ids: Sequence[int], on_answer: Callable[[], None], force: bool) -> None:
        """Cancel tasks.

        Args:
            ids: the tasks. Tasks that are over are ignored.
            on_answer: called once for each open task, when its outcome is known.
            force: interrupt tasks that run.
        """
        known = [task_id for task_id in ids if self._tasks.is_known(task_id)]
        for task_id in known:
            self._waiting.setdefault(task_id, []).append(on_answer)
        if force:
            self._forced.update(known)
        self._request(known)

    def is_requested(self, task_id: int) -> bool:
        """Return whether the cancel of a task was requested, and is not answered yet."""
        return task_id in self._waiting

    def abandon(self, ids: Sequence[int]) -> list[Message]:
        """Interrupt tasks whose futures have failed, because their scheduler was lost.

        Returns:
            The cancels for a scheduler that was only silent. The next scheduler gets them in any case, because this
            message may be lost.
        """
        sent = [task_id for task_id in ids if self._backlog.may_have_sent(task_id)]
        self._unsent[True] += sent
        return cancel_messages(sent, force=True)

    def repeat(self, ids: Sequence[int] | None = None) -> None:
        """Request the cancels without an answer again, after their tasks were submitted again.

        Args:
            ids: the tasks that were submitted again; None: all open tasks were.
        """
        self._request([task_id for task_id in self._waiting if ids is None or task_id in ids])

    def pop_messages(self) -> list[Message]:
        """Return the cancels to send to a scheduler that this client has joined."""
        unsent, self._unsent = self._unsent, {False: [], True: []}
        return [message for force, ids in unsent.items() for message in cancel_messages(sorted(set(ids)), force)]

    def answer(self, ids: Sequence[int]) -> None:
        """Call the callbacks of these tasks: their outcome is known."""
        if self._waiting:
            for task_id in ids:
                for on_answer in self._waiting.pop(task_id, ()):
                    on_answer()
                self._forced.discard(task_id)

    def refuse(self, ids: Sequence[int]) -> None:
        """Call the callbacks of tasks that the scheduler does not cancel, because they run.

        If a task also has a forced cancel, its outcome is still to come, and then answers all its callbacks.
        """
        self.answer([task_id for task_id in ids if task_id not in self._forced])

    def _request(self, ids: Sequence[int]) -> None:
        for task_id in ids:
            force = task_id in self._forced
            if self._backlog.has_sent(task_id):
                self._unsent[force].append(task_id)
                continue
            for each in self._tasks.cancel_node(task_id):
                if self._backlog.has_sent(each):
                    self._unsent[force].append(each)  # an input that no other task needs
                else:
                    self._cancel_locally(each, force)

    def _cancel_locally(self, task_id: int, force: bool) -> None:
        """Cancel a task that was not sent since the join."""
        if self._backlog.may_have_sent(task_id):
            self._unsent[force].append(task_id)
        self._backlog.drop(task_id)
        self._tasks.resolve(task_id, Outcome.CANCELLED, b"")
        self.answer([task_id])


def cancel_messages(ids: Sequence[int], force: bool) -> list[Message]:
    """Return cancels of at most BATCH_ROWS tasks each: a scheduler rejects longer ones (`--batch-limit`).

    Args:
        ids: the tasks.
        force: interrupt tasks that run.
    """
    return [Cancel(list(ids[begin : begin + BATCH_ROWS]), force) for begin in range(0, len(ids), BATCH_ROWS)]
