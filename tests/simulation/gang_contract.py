"""The scheduler's obligations about gangs, checked from its messages alone.

All members are dispatched in one step, each to a worker that holds nothing else. The answer is that of all: a value if
each member has returned one in the last attempt, else the failure of one of them.
"""

from __future__ import annotations

from scaler_scheduler.core import effects, events

from .held_tasks import TaskId
from .trace import SimulationError


class GangContract:
    """The gangs of one scheduler."""

    def __init__(self) -> None:
        self._leads: dict[TaskId, TaskId] = {}
        """The lead of each member, itself included."""
        self._sizes: dict[TaskId, int] = {}
        """Of each lead: the members of its gang."""
        self._begun: dict[TaskId, dict[int, int]] = {}
        """The attempts of members that were dispatched in this step, by lead and rank."""
        self._outcomes: dict[TaskId, dict[int, int]] = {}
        """The outcomes of the last attempt's members, by lead and rank."""

    def submitted(self, name: TaskId, options: events.Options) -> None:
        """Note a submitted row."""
        client, first = name
        for rank in range(options.gang_size):
            self._leads[client, first + rank] = name
        if options.gang_size:
            self._sizes[name] = options.gang_size

    def lead(self, name: TaskId) -> TaskId | None:
        """The lead of this member; None: the task is no member of a gang."""
        return self._leads.get(name)

    def members(self, lead: TaskId) -> list[TaskId]:
        """All members of this lead's gang; none: it is no lead."""
        return [(lead[0], lead[1] + rank) for rank in range(self._sizes.get(lead, 0))]

    def dispatched(self, name: TaskId, attempt: int) -> None:
        """Note that a member goes to a worker."""
        lead = self._leads[name]
        self._begun.setdefault(lead, {})[name[1] - lead[1]] = attempt

    def ended(self, name: TaskId, outcome: int) -> None:
        """Note the outcome that a worker has sent for a member."""
        lead = self._leads[name]
        self._outcomes.setdefault(lead, {})[name[1] - lead[1]] = outcome

    def step_over(self) -> int:
        """Check that all members of the gangs that have begun were dispatched. Returns the number of gangs.

        Raises:
            SimulationError: some were not.
        """
        begun, self._begun = self._begun, {}
        for lead, attempts in begun.items():
            if sorted(attempts) != list(range(self._sizes[lead])) or len(set(attempts.values())) != 1:
                raise SimulationError(f"gang {lead} begins with the members {attempts} of {self._sizes[lead]}")
            self._outcomes.pop(lead, None)
        return len(begun)

    def check_answer(self, lead: TaskId, outcome: int) -> None:
        """Check that the workers have sent what is answered.

        Raises:
            SimulationError: they have not.
        """
        outcomes = self._outcomes.get(lead, {})
        if outcome == effects.OUTCOME_VALUE:
            is_right = sorted(outcomes) == list(range(self._sizes[lead])) and not any(outcomes.values())
        elif outcome < effects.OUTCOME_RETRYABLE:
            is_right = outcome in outcomes.values() or effects.OUTCOME_RETRYABLE in outcomes.values()
        else:
            is_right = True
        if not is_right:
            raise SimulationError(f"gang {lead} is answered with {outcome}, and its members have ended so: {outcomes}")
