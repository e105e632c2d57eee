"""The objects that a client's user refers to. It replaces ObjectRef and the garbage collector."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from scaler_client.pickling.references import CallWithInputs, ObjectRef, Reference, ResultObject, StoredObject
from scaler_client.protocol.messages import Outcome, Payload

from .client_kept import KeptTask
from .oracle import LOST, Future
from .scripts import Script, SentObject, read_results

if TYPE_CHECKING:
    from .client_host import ClientHost


class Ref:
    """A reference to a sent object. It is forgotten when neither the user nor an open task holds the reference."""

    def __init__(self, key: int, stored: StoredObject) -> None:
        self.key = key
        self.stored = stored
        self.holders = 0

    @property
    def object_id(self) -> int:
        return self.stored.id


class _Holder:
    """The client's I/O thread for an ObjectRef. `UserObjects` forgets results, not the garbage collector."""

    def forget_object(self, stored: StoredObject) -> None:
        """Do nothing."""


class UserObjects:
    def __init__(self, client: ClientHost) -> None:
        self._client = client
        self._holder = _Holder()
        self._read: dict[int, Future] = {}
        """Submitted tasks whose results other tasks read, by key."""
        self.readers_left: dict[int, int] = {}
        """How many readers of each of these tasks are not done, by key; also readers that are submitted later."""
        self._refs: dict[int, Ref] = {}
        """References of the user, by the objects' keys."""

    def get(self, sent_object: SentObject) -> Ref:
        """Return the reference to the object. The object is sent if the user has no valid reference."""
        ref = self._refs.get(sent_object.key)
        if ref is not None and not ref.stored.is_gone:
            return ref
        client = self._client
        # Some count as the arguments of calls, whose only copy is a file.
        is_arguments = sent_object.key % 3 == 0
        stored = StoredObject(f"thing {sent_object.key}", list(sent_object.frames), None, is_arguments)
        client.session.send_object(stored)
        client.world.trace.note(client.name, "sends object", str(sent_object.key), "as", str(stored.id))
        client.world.trace.count("objects")
        ref = self._refs[sent_object.key] = Ref(sent_object.key, stored)
        ref.holders = 1
        return ref

    def call(self, script: Script, refs: Iterable[Ref]) -> Payload:
        """Return the payload of a task that reads these, and results of other tasks."""
        sent = {ref.key: ObjectRef(self._holder, ref.stored) for ref in refs}
        inputs: list[Reference | int] = [
            sent[each.key] if isinstance(each, SentObject) else self.result(each.key) for each in script.inputs
        ]
        return CallWithInputs(script.payload(), inputs) if inputs else script.payload()

    # -------------------------------------------------------------------------------------------- results as arguments

    def submitted(self, future: Future) -> None:
        """Note a task of its own."""
        script = future.script
        if script.key in self.readers_left:
            self._read[script.key] = future
        future.graph += self.related(read_results([script]))

    def related(self, keys: Iterable[int]) -> list[Future]:
        """Return these tasks, which others read, and the tasks that they read."""
        return [each for key in keys for each in self._read[key].graph]

    def reader_ended(self, keys: Iterable[int]) -> None:
        """Note that a reader of these tasks' results is done. A future that nobody reads any more is deleted."""
        for key in keys:
            self.readers_left[key] -= 1
            read = self._read[key]
            reference = read.reference
            if isinstance(read, KeptTask):
                read.forget_if_unused()
            elif not self.readers_left[key] and reference is not None:
                self._client.process.later(
                    0.0, lambda stored=reference.stored: self._client.session.objects.forget(stored)
                )

    def result(self, key: int) -> ObjectRef:
        """Do what `futures/result_references.py` does with the future of this task."""
        future = self._read[key]
        if isinstance(future, KeptTask):
            self._client.world.trace.count("kept results that other tasks read")
            return future.kept.reference
        if future.reference is None or future.reference.stored.is_gone:
            self._client.world.trace.count("results that other tasks read")
            stored = ResultObject(f"task {future.script.key}", future, future.parent)
            future.reference = ObjectRef(self._holder, stored)
            if future.is_done:
                self._client.world.trace.count("results that other tasks read, of tasks that had ended")
                give_result(future)
        return future.reference

    def hold(
        self, refs: list[Ref], owners: int = 1, on_release: Callable[[], None] = lambda: None
    ) -> Callable[[], None]:
        """Hold references until the returned function has been called `owners` times. Then call `on_release`."""
        for ref in refs:
            ref.holders += 1
        left = owners

        def release() -> None:
            nonlocal left
            left -= 1
            if not left:
                for ref in refs:
                    self._release(ref)
                on_release()

        return release

    def drop(self, key: int) -> None:
        """Drop the user's reference."""
        ref = self._refs.pop(key, None)
        if ref is not None:
            self._client.world.trace.note(self._client.name, "lets go of object", str(ref.object_id))
            self._release(ref)

    def drop_all(self) -> None:
        for key in list(self._refs):
            self.drop(key)

    def _release(self, ref: Ref) -> None:
        ref.holders -= 1
        if not ref.holders:
            # As the garbage collector does it: it wakes no thread.
            self._client.process.later(0.0, lambda: self._client.session.objects.forget(ref.stored))


def give_result(future: Future) -> None:
    """Let the readers of a future that is done have its result."""
    assert future.reference is not None
    stored = future.reference.stored
    assert isinstance(stored, ResultObject)
    if future.outcome == Outcome.VALUE:
        stored.set_value([future.answer])
    elif future.outcome is not None:
        stored.set_failure("", future.outcome, future.answer)
    else:
        stored.set_failure("", Outcome.EXCEPTION, LOST)
