"""The objects that a client's user refers to. Does what ObjectRef and the garbage collector do, without these."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from scaler_client.pickling.references import StoredObject, call_with_inputs
from scaler_client.protocol.messages import Payload

from .scripts import Script, SentObject

if TYPE_CHECKING:
    from .client_host import ClientHost


class Ref:
    """A reference to a sent object. It is forgotten when neither the user nor an open task holds the reference."""

    def __init__(self, stored: StoredObject) -> None:
        self.stored = stored
        self.holders = 0

    @property
    def object_id(self) -> int:
        return self.stored.id


class UserObjects:
    def __init__(self, client: ClientHost) -> None:
        self._client = client
        self._refs: dict[int, Ref] = {}
        """References of the user, by the objects' keys."""

    def get(self, sent_object: SentObject) -> Ref:
        """Return the reference to the object. The object is sent if the user has no valid reference."""
        ref = self._refs.get(sent_object.key)
        if ref is not None and not ref.stored.is_gone:
            return ref
        client = self._client
        stored = StoredObject(f"thing {sent_object.key}", list(sent_object.frames), None)
        client.session.send_object(stored)
        client.world.trace.note(client.name, "sends object", str(sent_object.key), "as", str(stored.id))
        client.world.trace.count("objects")
        ref = self._refs[sent_object.key] = Ref(stored)
        ref.holders = 1
        return ref

    def call(self, script: Script, refs: Iterable[Ref]) -> Payload:
        """Return the payload of a task that reads these."""
        inputs = [ref.object_id for ref in refs]
        return call_with_inputs(script.payload(), inputs) if inputs else script.payload()

    def hold(self, refs: list[Ref], owners: int = 1) -> Callable[[], None]:
        """Hold references until the returned function has been called `owners` times."""
        for ref in refs:
            ref.holders += 1
        left = owners

        def release() -> None:
            nonlocal left
            left -= 1
            for ref in refs if not left else ():
                self._release(ref)

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
