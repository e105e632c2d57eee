"""The ends of gangs: all members end together, and are tried again together.

A member that has ended with a value frees its worker; its result waits here for the others. When a member leaves its
worker without a value, the others are stopped. When the last one has left, the gang is answered, or waits again as one
task: its lead. So the lead is blocked while it has left its worker and others have not.
"""

from __future__ import annotations

from scaler_scheduler.core import effects
from scaler_scheduler.core.completion.graphs import Graphs
from scaler_scheduler.core.completion.task_end import (
    answer_task,
    close_task,
    deaths_text,
    detach,
    end_with_client,
    exceeds_limit,
    has_retries_left,
    time_limit_text,
)
from scaler_scheduler.core.data.input_delivery import resend_unread
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.errors import ProtocolError
from scaler_scheduler.core.events import Exchange
from scaler_scheduler.core.ids import file_id
from scaler_scheduler.core.state.records import Gang, GangTask, Worker
from scaler_scheduler.core.state.transitions import (
    CANCEL,
    GIVE_UP,
    INTENT_FORCE,
    INTENT_TIME_LIMIT,
    NO_INTENT,
    READY,
    RESULT,
    RETRY,
    UNREADY,
    WORKER_LOST,
)

VALUE_BYTES = 64 << 10
"""The largest value of an exchange."""

ROUND_BYTES = 1 << 20
"""The most bytes of all values of one exchange: each member gets all of them."""


class Gangs:
    """The gangs that have begun."""

    def __init__(self, core: CoreState, graphs: Graphs) -> None:
        self._tables = core.tables
        self._outbox = core.outbox
        self._graphs = graphs
        self._limits = core.limits
        self.broken: list[Gang] = []
        """Gangs whose remaining members must be stopped."""

    def end_with_result(
        self, task: GangTask, outcome: int, payload: bytes, worker: Worker, *, error: str, duration: int
    ) -> bool:
        """Handle the result of a member that has left this worker.

        Returns:
            Whether the history gets the result as the end of this task.
        """
        gang = task.gang
        assert gang is not None
        detach(self._tables, task)
        intent, task.intent = task.intent, NO_INTENT
        if intent == INTENT_TIME_LIMIT and exceeds_limit(task, duration):
            outcome = effects.OUTCOME_EXCEPTION  # it has ignored its stop
        if outcome == effects.OUTCOME_VALUE and not gang.is_broken:
            gang.results[task.rank] = payload
            if gang.values and task.rank not in gang.values:
                for rank in gang.values:
                    self._tell_of_ended(gang.members[rank], gang, task.rank)
            self._leave(task, gang, RESULT)
            return task is not gang.lead
        if outcome == effects.OUTCOME_VALUE:
            pass  # another member has broken the gang before
        elif intent == INTENT_TIME_LIMIT:
            self._decide(gang, effects.OUTCOME_TIMED_OUT, time_limit_text(gang.lead))
        elif intent >= INTENT_FORCE:
            pass  # it was stopped: what stopped it has decided
        elif outcome == effects.OUTCOME_INPUT_LOST and task.reads_files:
            resend_unread(task.inputs, worker, self._outbox)
        elif outcome == effects.OUTCOME_RETRYABLE:
            gang.lead.failures += not gang.is_broken
            if not has_retries_left(gang.lead, self._limits.task_retries):
                self._decide(gang, effects.OUTCOME_EXCEPTION, payload)
        elif outcome in (effects.OUTCOME_STORED, effects.OUTCOME_FILE):
            # A bad worker: the result was to come to the scheduler.
            agent = self._tables.agents.find(worker.agent)
            if agent is not None:
                self._outbox.forget_object(agent.route, task.client.incarnation, file_id(task.id, task.attempt))
            self._decide(gang, effects.OUTCOME_RESULT_FAILED, b"a member of a gang has written its result to a file")
        else:
            self._decide(gang, outcome, payload)
        self._tables.history.record_returned(task, worker, outcome, duration, error)
        self._break(gang)
        self._leave(task, gang, RETRY)
        return False

    def end_without_result(self, task: GangTask, worker: Worker, outcome: int, *, error: str, duration: int) -> None:
        """Handle a member that has left this worker and waits, because the worker was lost or has given it back."""
        gang = task.gang
        assert gang is not None
        intent, task.intent = task.intent, NO_INTENT
        if intent == INTENT_TIME_LIMIT:
            self._decide(gang, effects.OUTCOME_TIMED_OUT, time_limit_text(gang.lead))
        self._tables.history.record_returned(task, worker, outcome, duration, error)
        self._break(gang)
        self._leave(task, gang, -1)

    def move(self, task: GangTask) -> None:
        """Take a member from the record of its worker, which joins again and names the member as running."""
        gang = task.gang
        assert gang is not None
        detach(self._tables, task)
        task.transition(WORKER_LOST)
        task.transition(UNREADY)
        gang.moving.add(task)

    def cancel(self, gang: Gang) -> None:
        """End a gang that has begun because its user has cancelled it by force."""
        self._decide(gang, effects.OUTCOME_CANCELLED, b"")
        self._break(gang)

    def abandon(self, gang: Gang) -> None:
        """Note that the client of a gang has left. If it comes back in time, the gang begins again."""
        self._break(gang)

    def exchange(self, event: Exchange, worker: Worker) -> bool:
        """Take a member's value for the others. When all are there, each member gets all of them.

        If a member has ended without this exchange, the others are told so at once: it can never be complete.

        Returns:
            Whether the worker holds this task. If not, the task must be stopped: it would wait for ever.

        Raises:
            ProtocolError: the value is too large.
        """
        task = self._tables.find_held(worker, event.client, event.id, event.attempt)
        if task is None:
            return False
        gang = task.gang
        if gang is None or not isinstance(task, GangTask) or gang.is_broken:
            return True  # it is being stopped
        most = most_bytes(len(gang.members))
        if len(event.value) > most:
            raise ProtocolError(f"a value of {len(event.value)} bytes: a member of this gang may give {most}")
        if event.round == gang.round - 1:
            self._send(task, event.round, gang.values_before)  # the answer was lost with the connection
        if event.round != gang.round:
            return True
        gang.values[task.rank] = event.value
        if len(gang.values) == len(gang.members):
            gang.values_before = [gang.values[rank] for rank in range(len(gang.members))]
            gang.values = {}
            gang.round += 1
            for member in gang.members:
                self._send(member, event.round, gang.values_before)
        elif gang.held < len(gang.members):
            for rank, result in enumerate(gang.results):
                if result is not None and rank not in gang.values:
                    self._tell_of_ended(task, gang, rank)
                    break
        return True

    def _tell_of_ended(self, member: GangTask, gang: Gang, rank: int) -> None:
        """Tell a member, which has given its value, that the member of this rank has ended without this exchange."""
        self._send(member, gang.round, [], 1 + rank)

    def _send(self, member: GangTask, round_number: int, values: list[bytes], ended: int = 0) -> None:
        if member.worker is not None:
            self._outbox.add_last(
                effects.Exchange(
                    member.worker.route,
                    client=member.client.incarnation,
                    task_id=member.id,
                    attempt=member.attempt,
                    round_number=round_number,
                    values=values,
                    ended=ended,
                )
            )

    def _decide(self, gang: Gang, outcome: int, payload: bytes) -> None:
        """Decide how the gang ends. The first failure counts."""
        if gang.verdict is None:
            gang.verdict = outcome, payload

    def _break(self, gang: Gang) -> None:
        """Have the members stopped that workers still hold."""
        if not gang.is_broken:
            gang.is_broken = True
            gang.results = [None] * len(gang.members)
            gang.values = {}
            gang.values_before = []
            self.broken.append(gang)

    def _leave(self, task: GangTask, gang: Gang, action: int) -> None:
        """Count a member that was detached from its worker.

        Args:
            task: the member.
            gang: its gang.
            action: the transition that it still needs; -1: it waits already.
        """
        gang.held -= 1
        if task is gang.lead:
            if action >= 0:
                task.transition(RETRY)
            task.transition(UNREADY)
        else:
            self._drop_member(task, action)
        if not gang.held:
            self._finish(gang)

    def _drop_member(self, task: GangTask, action: int) -> None:
        """Drop the record of a member that is not the lead."""
        task.transition(RESULT if action >= 0 else CANCEL)
        task.gang = None
        self._graphs.release_inputs(task)
        del task.client.tasks[task.id]
        self._tables.counts.payload_bytes -= task.size
        self._tables.remove_row(task.client, task.function, task.options)

    def _finish(self, gang: Gang) -> None:
        """Answer a gang whose members have all left their workers, or let it wait again."""
        lead = gang.lead
        lead.gang = None
        if lead.client.is_gone:
            lead.transition(CANCEL)
            end_with_client(self._tables, lead)
            close_task(self._tables, lead)
            self._graphs.fail_readers(lead, effects.OUTCOME_CANCELLED, b"")
            return
        if not gang.is_broken:
            results = [result or b"" for result in gang.results]
            packed = b"".join([*[len(result).to_bytes(4, "little") for result in results], *results])
            most = self._limits.message_size
            if most and len(packed) > most:
                text = f"{lead.name}: the results of the gang have {len(packed)} bytes (--message-size-limit: {most})"
                self._answer(lead, effects.OUTCOME_RESULT_FAILED, text.encode())
            else:
                self._answer(lead, effects.OUTCOME_VALUE, packed)
        elif gang.verdict is not None:
            self._answer(lead, *gang.verdict)
        elif not has_retries_left(lead, self._limits.task_retries):
            self._answer(lead, effects.OUTCOME_WORKER_DIED, deaths_text(lead))
        else:
            lead.transition(READY)
            if not self._graphs.requeue(lead):
                text = f"{lead.name}: its inputs were dropped after its client had left"
                lead.transition(UNREADY)
                self._answer(lead, effects.OUTCOME_INPUT_LOST, text.encode())

    def _answer(self, lead: GangTask, outcome: int, payload: bytes) -> None:
        """Answer the client about the gang, whose lead is blocked."""
        lead.transition(CANCEL if outcome == effects.OUTCOME_CANCELLED else GIVE_UP)
        answer_task(self._tables, self._outbox, lead, outcome, payload)
        if lead.is_node:
            self._graphs.fail_readers(lead, outcome, payload)


def most_bytes(size: int) -> int:
    """Return the most bytes that a member of a gang of this size may give in one exchange."""
    return min(VALUE_BYTES, ROUND_BYTES // size)
