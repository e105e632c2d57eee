"""The running task of each worker, in memory that outlives the worker.

One anonymous shared mapping, made before the fork server is forked. Each worker has a slot of 64 bytes, and room for a
text that says why it could not start. The worker writes its slot (some 30 ns a word). The agent reads it when the
worker has died, to know which task it died of, and before it kills a worker because of a task. A slot is eight
64-bit words; the indices below name the words in use.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, replace

from scaler_client.protocol.messages import TaskName

CLIENT = 0
"""The incarnation of the task's client."""
ID = 1
ATTEMPT = 2
RUNNING = 3
"""1 while the three words before it name the running task. Write it last when a task begins, and first when it ends."""
READY = 4
"""1 when the worker has started (imports, preload). A death after that is no failed start."""

SLOT_WORDS = 8
SLOT_BYTES = 8 * SLOT_WORDS
LAST_WORDS_BYTES = 512

MOST_READS = 100
"""A read takes 0.5 us. The shortest tasks take as long as several reads."""


@dataclass(frozen=True)
class WorkerState:
    """What a worker has written last. `attempt` is 0 if it ran no task, or if the task is not known."""

    client: int = 0
    id: int = 0
    attempt: int = 0
    ready: bool = False
    last_words: str = ""
    """Why the worker could not start."""

    @property
    def task(self) -> TaskName | None:
        """The running task; None if there is none, or it is not known."""
        return (self.client, self.id, self.attempt) if self.attempt else None

    def without_task(self) -> WorkerState:
        return replace(self, client=0, id=0, attempt=0)


class StatePage:
    """The shared memory of one agent and its workers."""

    def __init__(self, slots: int) -> None:
        memory = memoryview(mmap.mmap(-1, slots * (SLOT_BYTES + LAST_WORDS_BYTES)))
        self._words = memory[: slots * SLOT_BYTES].cast("Q")
        self._last_words = memory[slots * SLOT_BYTES :]

    def slot(self, number: int) -> memoryview:
        """The words of one worker. They can be written."""
        return self._words[number * SLOT_WORDS : (number + 1) * SLOT_WORDS]

    def read(self, number: int) -> WorkerState:
        # The worker writes one word after the other, without a lock. So only a state that two reads agree on is valid.
        state = self._read_once(number)
        for _ in range(MOST_READS):
            before, state = state, self._read_once(number)
            if state == before:
                text = bytes(self._last_words_of(number)).rstrip(b"\0")
                return replace(state, last_words=text.decode(errors="replace")) if text else state
        return state.without_task()

    def write_last_words(self, number: int, text: str) -> None:
        """Write why the worker could not start, cut to LAST_WORDS_BYTES."""
        written = text.encode(errors="replace")[:LAST_WORDS_BYTES]
        self._last_words_of(number)[: len(written)] = written

    def clear(self, number: int) -> None:
        """Clear the slot of a worker that has ended, for the next one."""
        words = self.slot(number)
        for index in range(SLOT_WORDS):
            words[index] = 0
        self._last_words_of(number)[:] = bytes(LAST_WORDS_BYTES)

    def _read_once(self, number: int) -> WorkerState:
        words = self.slot(number)
        ready = bool(words[READY])
        if not words[RUNNING]:
            return WorkerState(ready=ready)
        return WorkerState(words[CLIENT], words[ID], words[ATTEMPT], ready)

    def _last_words_of(self, number: int) -> memoryview:
        return self._last_words[number * LAST_WORDS_BYTES : (number + 1) * LAST_WORDS_BYTES]


def private_slot() -> memoryview:
    """A slot in private memory, for a worker process that shares no memory with its agent."""
    return memoryview(bytearray(SLOT_BYTES)).cast("Q")
