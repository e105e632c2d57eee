"""The values of the objects that tasks read.

Each task gets a value of its own: what one task changes, no other task sees. Only what no task can change is shared:
the memory of arrays, which is read-only, and immutable values. A user can say that tasks share a value (`shared=True`).
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Sequence
from sys import modules
from time import perf_counter_ns
from typing import Any

from scaler_client.pickling.input_lookup import make_read_only
from scaler_client.protocol.messages import Payload
from scaler_worker.objects.argument_templates import ArgumentTemplates
from scaler_worker.objects.files import ObjectLostError, read_object
from scaler_worker.objects.host_storage import HostStorage
from scaler_worker.objects.immutable import is_immutable
from scaler_worker.objects.table import ABSENT, KnownObject, ObjectTable

QUIET_SECONDS = 120.0
"""How long a task waits for a file while the host's agent makes no file at all.

The object comes on the agent's connection, and the task on the worker's. At 100 MB/s, an object of ten gigabytes comes
this much later.
"""

FIRST_PAUSE_SECONDS = 0.0005
MAX_PAUSE_SECONDS = 0.05
"""The pause between two checks for a file. Each pause is 1.5 times the previous one."""

MOST_SMALL_VALUES = 256
"""The most shared values that came inside rows. Each has at most 16 KiB. If there are more, all are loaded again."""

WARNED_LOAD_NS = 1_000_000_000
WARNED_LOAD_PART = 0.2
"""A worker warns if loading one input again has taken this long in all, and this part of the time since its first
load."""


class InputLostError(BaseException):
    """An object that the task reads is lost. The text says why.

    Not an Exception: code that unpickles arguments and ignores errors must not ignore this.
    """


class ObjectCache:
    """The objects of one worker, with their values."""

    def __init__(self, table: ObjectTable, directory: str, warn: Callable[[str], None] = lambda text: None) -> None:
        """
        Args:
            directory: has the object files of the host; empty: there is no agent.
            warn: called with a text for the user of the running task.
        """
        self._table = table
        self._load_times = LoadTimes(warn)
        self._storage = HostStorage(directory)
        self._templates = ArgumentTemplates()
        self._small = SmallValues()
        self.may_have_mapped = False
        """Whether an input was read since the last `release_mapped`."""

    def release_mapped(self) -> None:
        """Unmap the files of values that no running task reads, if the host's memory is scarce.

        The agent can't move a mapped file to disk. Call it between tasks.
        """
        if self.may_have_mapped and self._storage.is_scarce:
            self.may_have_mapped = False
            self._table.release_mapped()

    def inputs(self, client: int, inputs: Sequence[int | Payload | KnownObject]) -> Inputs:
        """Find the inputs of a task that begins next. Objects that are forgotten later stay its inputs."""
        found: Sequence[KnownObject | Payload | None]
        kinds = set(map(type, inputs))
        if int not in kinds and KnownObject not in kinds:
            found = inputs  # type: ignore[assignment]  # all are bytes
        else:
            self.may_have_mapped = True
            find = self._table.find
            found = [find((client, each)) if isinstance(each, int) else each for each in inputs]
        return Inputs(found, inputs, self._storage, self._templates, self._load_times, client, self._small)


class SmallValues:
    """Values that tasks share, and whose bytes come inside the rows that read them."""

    def __init__(self) -> None:
        self._values: dict[tuple[int, bytes], Any] = {}
        """By client and pickle."""

    def load(self, client: int, pickled: Payload) -> Any:
        """Return the value of a pickle: the same object each time, unless many other values were read since.

        Raises:
            Exception: the unpickling failed.
        """
        key = client, bytes(pickled)
        if key not in self._values:
            if len(self._values) >= MOST_SMALL_VALUES:
                self._values.clear()
            self._values[key] = value = pickle.loads(key[1])
            make_read_only(value)
        return self._values[key]


class LoadTimes:
    """Warns once if tasks spend much of their time on loading the same input."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn: Callable[[str], None] | None = warn

    def add(self, known: KnownObject, begun_ns: int) -> None:
        """Count a load that ends now.

        Args:
            known: the input.
            begun_ns: when the load began, by `perf_counter_ns`.
        """
        if not known.first_load_ns:
            known.first_load_ns = begun_ns  # it is needed in any case, and does not count
            return
        now_ns = perf_counter_ns()
        known.load_ns += now_ns - begun_ns
        if known.load_ns < WARNED_LOAD_NS or self._warn is None:
            return
        part = known.load_ns / (now_ns - known.first_load_ns)
        if part > WARNED_LOAD_PART:
            warn, self._warn = self._warn, None
            warn(
                f"this worker spends {part:.0%} of its time on loading object {known.name[1]} anew for each task. If "
                f"no task changes it, send it with client.send_object(value, shared=True), or submit the tasks with "
                f"client.options(shared_inputs=True)"
            )


class Inputs:
    """The inputs of one task, by position."""

    def __init__(
        self,
        found: Sequence[KnownObject | Payload | None],
        inputs: Sequence[int | Payload | KnownObject],
        storage: HostStorage,
        templates: ArgumentTemplates,
        load_times: LoadTimes,
        client: int,
        small: SmallValues,
    ) -> None:
        self._client = client
        self._small = small
        self._found = found
        self._inputs = inputs
        self._storage = storage
        self._templates = templates
        self._load_times = load_times
        self._loaded: dict[int, Any] | None = None
        """What was loaded for the call whose arguments are unpickled now, so that an input that it reads twice is one
        object. Own values by position, shared ones by `~position`."""

    def arguments(self, payload: Payload) -> Any:
        """Return the arguments of one call, with its inputs.

        Args:
            payload: the pickled arguments.

        Raises:
            InputLostError: an object is lost.
            Exception: the unpickling failed.
        """
        template = self._templates.find(payload, len(self._found))
        if template is not None:
            return template.arguments(self._values(template.are_shared))
        self._loaded = {}
        try:
            return pickle.loads(payload)
        finally:
            self._loaded = None

    def _values(self, are_shared: bool) -> list[Any]:
        """Return the values of all inputs."""
        if self._found is self._inputs and not are_shared:
            values = list(map(pickle.loads, self._inputs))  # type: ignore[arg-type]  # all are bytes
            if "numpy" in modules:
                make_read_only(values)
            return values
        return [self(position, are_shared) for position in range(len(self._found))]

    def __call__(self, position: int, is_shared: bool = False) -> Any:
        """The value of an input.

        Args:
            position: of the input.
            is_shared: whether tasks of this process share the value.

        Raises:
            InputLostError: the object is lost.
            Exception: the unpickling failed.
        """
        loaded, key = self._loaded, ~position if is_shared else position
        if loaded and key in loaded:
            return loaded[key]
        known = self._found[position]
        if known.__class__ is KnownObject:
            value = known.value
            if value is ABSENT or not (is_shared or known.is_immutable):
                value = self._load(known, position, is_shared)
        elif known is None:
            raise self._lost(position, "the scheduler has not sent it to this worker")
        elif is_shared:
            value = self._small.load(self._client, known)  # type: ignore[arg-type]
        else:
            value = pickle.loads(known)  # type: ignore[arg-type]
            if "numpy" in modules:
                make_read_only(value)
        if loaded is not None:
            loaded[key] = value
        return value

    def _load(self, known: KnownObject, position: int, is_shared: bool) -> Any:
        frames = known.frames or self._await_file(known, position)
        begun_ns = perf_counter_ns()
        value = pickle.loads(frames[0], buffers=[memoryview(frame).toreadonly() for frame in frames[1:]])
        if len(frames) == 1:
            make_read_only(value)
        if not is_shared:
            self._load_times.add(known, begun_ns)
        if known.frames is None and len(frames) > 1:
            if self._storage.is_scarce:
                return value  # not kept: its file stays mapped only while this task reads it
            known.keep_mapped(frames)
        if is_shared or is_immutable(value):
            known.keep_value(value, not is_shared)
        return value

    def contents(self) -> list[bytes]:
        """Return the bytes of all inputs: the frames of each, one after the other.

        Raises:
            InputLostError: an object is lost.
        """
        return [self._content(position) for position in range(len(self._found))]

    def _content(self, position: int) -> bytes:
        known = self._found[position]
        if known is None:
            raise self._lost(position, "the scheduler has not sent it to this worker")
        if not isinstance(known, KnownObject):
            return bytes(known)
        return b"".join(known.frames or self._await_file(known, position))

    def _await_file(self, known: KnownObject, position: int) -> Sequence[Payload]:
        directory = self._storage.directory
        if not directory:
            raise self._lost(position, "it is a file of a host agent, and this worker has no agent")
        pause = FIRST_PAUSE_SECONDS
        changed_at = time.monotonic()
        change: int | None = None
        while True:
            if known.is_forgotten:
                raise self._lost(position, "its last reference was deleted")
            try:
                before, change = change, os.stat(directory).st_mtime_ns  # grows with each change of files
                frames: Sequence[Payload] | None = read_object(directory, known.name) or known.frames
            except OSError as error:
                raise self._lost(position, f"the host agent has ended: {error.strerror}") from None
            except ObjectLostError as error:
                raise self._lost(position, str(error)) from None
            if frames is not None:
                return frames
            if known.has_file:
                raise self._lost(position, "a worker has written its file, and the file was removed")
            if known.is_invalid:
                raise self._lost(position, "the worker has joined again before its file came")
            now = time.monotonic()
            if change != before:
                changed_at = now
            elif now - changed_at >= QUIET_SECONDS:
                raise self._lost(position, f"the host agent has not made its file within {QUIET_SECONDS:g} s")
            time.sleep(pause)
            pause = min(pause * 1.5, MAX_PAUSE_SECONDS)

    def _lost(self, position: int, reason: str) -> InputLostError:
        each = self._inputs[position]
        number = each.name[1] if isinstance(each, KnownObject) else each
        return InputLostError(f"object {number!r}, which the task reads, is lost: {reason}")
