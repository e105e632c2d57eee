"""Which workers run the same task as when they were looked at last."""

from __future__ import annotations

from collections.abc import Mapping

from scaler_client.protocol.messages import TaskName


class LongTasks:
    def __init__(self) -> None:
        self._seen: Mapping[int, TaskName | None] = {}

    def look(self, running: Mapping[int, TaskName | None]) -> list[TaskName]:
        """Of what each worker runs now, by incarnation, that which it ran at the last call as well."""
        before, self._seen = self._seen, running
        return [task for key, task in running.items() if task is not None and before.get(key) == task]
