"""The running task of each worker, in memory that outlives the worker.

One shared mapping without a name, made before the fork server is forked. Each worker has a slot of 64 bytes, and room
for a text that says why it could not start. The worker writes its slot (some 30 ns a word). The agent reads it when the
worker has died, to know which task was running. It also reads it before it kills a worker because of a task. A slot is
eight 64-bit words; the indices below name the words in use.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from dataclasses import dataclass, replace

from scaler_client.protocol.messages import TaskAttempt

CLIENT = 0
"""The incarnation of the task's client."""
ID = 1
ATTEMPT = 2
RUNNING = 3
"""1 while the three words before it name the running task. Write it last when a task begins, and first when it ends."""
READY = 4
"""1 when the worker has started (imports, preload). If the worker dies later, this is not a failed start."""

SLOT_WORDS = 8
SLOT_BYTES = 8 * SLOT_WORDS
START_ERROR_BYTES = 512

MAX_READS = 100
"""A read takes 0.5 us. The shortest tasks take as long as several reads."""


@dataclass(frozen=True)
class WorkerState:
    """The last state that a worker has written. `attempt` is 0 if it ran no task, or if the task is not known."""

    client: int = 0
    id: int = 0
    attempt: int = 0
    ready: bool = False
    start_error: str = ""
    """Why the worker could not start."""

    @property
    def task(self) -> TaskAttempt | None:
        """The running task; None if there is none, or it is not known."""
        return (self.client, self.id, self.attempt) if self.attempt else None

    @property
    def has_failed_preload(self) -> bool:
        """Whether the worker ended in the function of `--preload` or in an import of `--offer`."""
        return self.start_error.startswith(("--preload", "--offer"))

    def without_task(self) -> WorkerState:
        return replace(self, client=0, id=0, attempt=0)


class StatePage:
    """The shared memory of one agent and its workers."""

    def __init__(self, slots: int, descriptor: int | None = None) -> None:
        """`descriptor` is that of the page of another process; None: a new page."""
        size = slots * (SLOT_BYTES + START_ERROR_BYTES)
        self.slots = slots
        self.descriptor = _new_memory(size) if descriptor is None else descriptor
        """An open file of this memory, for fork servers with an interpreter of their own; -1 on Windows."""
        memory = memoryview(mmap.mmap(self.descriptor, size))
        self._words = memory[: slots * SLOT_BYTES].cast("Q")
        self._start_errors = memory[slots * SLOT_BYTES :]

    def slot(self, number: int) -> memoryview:
        """The words of one worker. They can be written."""
        return self._words[number * SLOT_WORDS : (number + 1) * SLOT_WORDS]

    def read(self, number: int) -> WorkerState:
        # The worker writes one word after the other, without a lock. So a state is valid only if two reads agree.
        state = self._read_once(number)
        for _ in range(MAX_READS):
            before, state = state, self._read_once(number)
            if state == before:
                text = bytes(self._start_error_of(number)).rstrip(b"\0")
                is_failed = text and not state.ready
                return replace(state, start_error=text.decode(errors="replace")) if is_failed else state
        return state.without_task()

    def write_start_error(self, number: int, text: str) -> None:
        """Write why the worker could not start, cut to START_ERROR_BYTES. It counts until the worker is ready."""
        written = text.encode(errors="replace")[:START_ERROR_BYTES]
        self._start_error_of(number)[:] = written.ljust(START_ERROR_BYTES, b"\0")

    def clear(self, number: int) -> None:
        """Clear the slot of a worker that has ended, for the next one."""
        words = self.slot(number)
        for index in range(SLOT_WORDS):
            words[index] = 0
        self._start_error_of(number)[:] = bytes(START_ERROR_BYTES)

    def _read_once(self, number: int) -> WorkerState:
        words = self.slot(number)
        ready = bool(words[READY])
        if not words[RUNNING]:
            return WorkerState(ready=ready)
        return WorkerState(words[CLIENT], words[ID], words[ATTEMPT], ready)

    def _start_error_of(self, number: int) -> memoryview:
        return self._start_errors[number * START_ERROR_BYTES : (number + 1) * START_ERROR_BYTES]


def _new_memory(size: int) -> int:
    """An open file without a name, in memory if the system has that; -1 on Windows."""
    if sys.platform == "win32":
        return -1
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("scaler_state")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


def private_slot() -> memoryview:
    """A slot in private memory, for a worker process that shares no memory with its agent."""
    return memoryview(bytearray(SLOT_BYTES)).cast("Q")
