"""A client's kept results: the real `KeptFuture`s, and a user who reads their values and lets the futures go.

Whatever a user has seen done can be read until the user lets it go. It may be lost for good only if something that its
task read was freed, or if its task fails when it runs again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from scaler_client.errors import ClientClosedError, ObjectNotFoundError, SchedulerLostError
from scaler_client.futures.kept_results import KeptFuture, KeptResult
from scaler_client.pickling.functions import Function
from scaler_client.pickling.references import Call, ResultObject
from scaler_client.protocol.messages import Options, Outcome, Payload

from .client_maps import CallFailedError
from .oracle import LOST, Future
from .scripts import Script

if TYPE_CHECKING:
    from .client_host import ClientHost


class KeptTask(Future):
    """A task whose result stays on its host. It passes its answers on to a real future.

    Args:
        client: the client.
        function: the function of the task.
        script: the task.
        options: the options of the task.
        call: the arguments.
    """

    def __init__(self, client: ClientHost, function: Function, script: Script, options: Options, call: Call) -> None:
        super().__init__(client.world.oracle, client, function, script, options)
        self._host = client
        self.kept: KeptFuture[bytes] = KeptFuture(
            client.kept,  # type: ignore[arg-type]
            function,
            call,
            options=self.options,
            parent=None,
        )
        self.reference = self.kept.reference
        self.is_let_go = False
        """Whether the user has deleted the future."""
        self.open_reads = 0
        """How many values are on their way to the user."""
        self._is_forgotten = False

    @property
    def stored(self) -> KeptResult:
        """The result in the client's session."""
        return self.kept.stored

    def row(self, task_id: int) -> tuple[Function, Any]:
        return self.kept.row(task_id)

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> None:
        """Take the answer: that the result is kept, a small result, or how the task has failed."""
        self.kept.resolve(task_id, outcome, answer)
        super().resolve(task_id, outcome, answer)

    def fail(self, task_id: int, error: BaseException) -> None:
        """End with an error of the client."""
        self.kept.task_id = task_id
        self.stored.set_failure("", Outcome.EXCEPTION, LOST)
        self.kept.fail(task_id, error)
        super().fail(task_id, error)

    def let_go(self) -> None:
        """Delete the user's future."""
        self.is_let_go = True
        self.forget_if_unused()

    def forget_if_unused(self) -> None:
        """Do what the garbage collector does with the future's reference when nothing has it any more."""
        readers = self._host.user_objects.readers_left.get(self.script.key, 0)
        if self.is_let_go and self.is_done and not readers and not self.open_reads and not self._is_forgotten:
            self._is_forgotten = True
            self._host.world.trace.count("kept results that were let go")
            self._host.process.later(0.0, partial(self._host.session.forget_object, self.stored))

    # ------------------------------------------------------------------------------------------------------ its value

    def read(self) -> None:
        """Bring the value, if the result is or was there."""
        if not self.stored.is_kept or self.is_let_go:
            return
        value, is_new = self.kept.fetched()
        if not is_new:
            return
        self._host.world.trace.count("values of kept results wanted")
        self.open_reads += 1
        value.watch(self._came)
        self._host.session.fetch_values([(self.stored, value)])
        self._host.wake()

    def _came(self, value: Any) -> None:
        """Check a value, or the error in its place."""
        self.open_reads -= 1
        self.kept._value = None  # the next read fetches it again
        trace = self._host.world.trace
        if value.cancelled():
            trace.count("values of kept results: cancelled")
            self._expect(self._host.was_cleared or self._host.has_left, "was kept, and its value is cancelled")
        elif (error := value.exception()) is None:
            trace.count("values of kept results")
            self._expect(value.result() == self.script.answer(), f"has the value {value.result()[:60]!r}")
        else:
            trace.count(f"values of kept results: {_name(error)}")
            self._expect(self._may_fail_with(error), f"was kept, and its value is lost: {error!r}")
        self.forget_if_unused()

    def _may_fail_with(self, error: BaseException) -> bool:
        host = self._host
        if isinstance(error, SchedulerLostError):
            return host.may_give_up()
        if isinstance(error, ClientClosedError):
            return host.has_left
        if isinstance(error, ObjectNotFoundError):
            return host.was_cleared
        if not isinstance(error, CallFailedError):
            return False
        if error.outcome == Outcome.INPUT_LOST:
            return host.was_cleared or self.may_be_lost
        return error.outcome == Outcome.WORKER_DIED and b"the worker died in " in error.answer

    @property
    def may_be_lost(self) -> bool:
        """Whether its task can't run again: something that it reads was freed, or failed when it ran again."""
        seen: set[int] = set()

        def is_missing(each: object) -> bool:
            stored = getattr(each, "stored", None)
            if stored is None or id(stored) in seen:
                return False
            seen.add(id(stored))
            if isinstance(stored, KeptResult) and stored.is_kept:
                failure = stored.failure
                return (failure is not None and failure.outcome != Outcome.INPUT_LOST) or any(
                    map(is_missing, stored.payload.inputs)
                )
            return stored.is_gone or (isinstance(stored, ResultObject) and stored.failure is not None)

        return any(map(is_missing, self.stored.payload.inputs))


class KeptResults:
    """The kept tasks of a client. It is the client's I/O thread for their futures.

    Args:
        client: the client.
    """

    def __init__(self, client: ClientHost) -> None:
        self._client = client
        self.tasks: list[KeptTask] = []

    @property
    def is_reading(self) -> bool:
        """Whether a value is on its way to the user."""
        return any(task.open_reads for task in self.tasks)

    def uses(self, function: Function | None) -> bool:
        """Whether a task may run again that calls this function."""
        return any(task.stored.function is function for task in self.tasks)

    def read_all(self) -> None:
        """Bring the values of all results that the user has."""
        for task in self.tasks:
            task.read()

    def let_all_go(self) -> None:
        """Delete all futures."""
        for task in self.tasks:
            task.let_go()

    # ----------------------------------------------------------------------------------------------- as the I/O thread

    def forget_object(self, _stored: object) -> None:
        """Do nothing: `KeptTask.let_go` forgets results, not the garbage collector."""

    def check_can_wait(self) -> None:
        """Do nothing: no thread waits."""


def _name(error: BaseException) -> str:
    return Outcome(error.outcome).name.lower() if isinstance(error, CallFailedError) else type(error).__name__
