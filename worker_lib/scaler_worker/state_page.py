"""What each worker runs right now, in memory that outlives the worker.

One anonymous shared mapping, made before the nursery is forked, one slot of 64 bytes a worker. The worker writes its
slot (some 30 ns a word), the agent reads it when the worker has died, and so knows which task it died of although the
worker had no chance to say so. A slot is eight 64-bit words; the indices below name those in use.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass

CLIENT = 0
ID = 1
ATTEMPT = 2
RUNNING = 3
"""1 while the three words before it name a task that runs. Write it last when a task starts, first when it ends."""
READY = 4
"""1 as soon as the worker has got through its start-up (imports, preload): dying later is no failed start."""

SLOT_WORDS = 8
SLOT_BYTES = 8 * SLOT_WORDS


@dataclass(frozen=True)
class WorkerState:
    """What a worker last wrote; `attempt` is 0 when it ran nothing, or when that is not known."""

    client: int = 0
    id: int = 0
    attempt: int = 0
    ready: bool = False


class StatePage:
    """The shared memory of one agent and its workers."""

    def __init__(self, slots: int) -> None:
        self._words = memoryview(mmap.mmap(-1, slots * SLOT_BYTES)).cast("Q")

    def slot(self, number: int) -> memoryview:
        """The words of one worker, writable."""
        return self._words[number * SLOT_WORDS : (number + 1) * SLOT_WORDS]

    def read(self, number: int) -> WorkerState:
        words = self.slot(number)
        ready = bool(words[READY])
        if not words[RUNNING]:
            return WorkerState(ready=ready)
        return WorkerState(words[CLIENT], words[ID], words[ATTEMPT], ready)

    def clear(self, number: int) -> None:
        """Empty the slot of a worker that is gone, for the next one."""
        words = self.slot(number)
        for index in range(SLOT_WORDS):
            words[index] = 0


def private_slot() -> memoryview:
    """A slot that nobody else sees, for a worker process that shares no memory with its agent."""
    return memoryview(bytearray(SLOT_BYTES)).cast("Q")
