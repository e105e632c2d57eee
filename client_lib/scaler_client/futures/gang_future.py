"""The future of a gang: one row whose answer has the results of all members."""

from __future__ import annotations

from struct import error as StructError
from struct import unpack_from
from typing import Any, TypeVar

from ..pickling.functions import Function
from ..pickling.object_frames import Answer, ResultFile
from ..pickling.references import STAND_INS, Call, InputCollector, is_collecting, reduced
from ..protocol.messages import Options, Outcome, Payload, TaskAttempt
from .future import FutureOwner, TaskFuture

T = TypeVar("T")


class GangFunction(Function):
    """A function whose answers have the results of all members of a gang."""

    __slots__ = ("of_member", "size")

    def __init__(self, of_member: Function, size: int) -> None:
        """
        Args:
            of_member: the function that each member calls. It is the one that is sent.
            size: the number of members.
        """
        super().__init__(
            of_member.number, of_member.name, of_member.payload, of_member.serializer, of_member.named_function
        )
        self.of_member = of_member
        self.size = size
        self.answers_pickles = False

    def read_answer(
        self, outcome: int, answer: Answer, function_name: str = "", place: str = ""
    ) -> tuple[Any, BaseException | None]:
        """Return the list of results, or the exception of the gang, from the bytes of its answer."""
        if outcome != Outcome.VALUE or type(answer) is ResultFile:  # members write no files
            return self.of_member.read_answer(outcome, answer, function_name, place)
        try:
            parts = results_of(answer, self.size)
        except ValueError as error:
            return None, error
        results = []
        for part in parts:
            result, exception = self.of_member.read_answer(outcome, part, function_name, place)
            if exception is not None:
                return None, exception
            results.append(result)
        return results, None


def results_of(answer: Payload, size: int) -> list[Payload]:
    """Split the answer of a gang into the results of its members, by rank: first the size of each, then all of them.

    Raises:
        ValueError: these bytes are no answer of a gang of this size.
    """
    try:
        sizes = unpack_from(f"<{size}I", answer)
    except StructError as error:
        raise ValueError(f"an answer of {len(answer)} bytes is none of a gang of {size} tasks") from error
    begin = 4 * size
    parts: list[Payload] = []
    for each in sizes:
        parts.append(bytes(answer[begin : begin + each]))
        begin += each
    if begin != len(answer):
        raise ValueError(f"an answer of {len(answer)} bytes is none of a gang of {size} tasks")
    return parts


class GangFuture(TaskFuture["list[T]"]):
    """The future of a gang. `Client.submit_gang` makes it. Its result is the list of the members' results, by rank.

    It is a `concurrent.futures.Future`, as that of a task. It can't be an argument of other tasks: pass its result.
    """

    _can_be_argument = False

    def __init__(
        self,
        io_thread: FutureOwner,
        function: Function,
        payload: Call,
        *,
        options: Options,
        parent: TaskAttempt | None,
    ) -> None:
        super().__init__(io_thread, GangFunction(function, options.gang_size), payload)
        self.options = options
        self.parent = parent

    def row(self, _task_id: int) -> tuple[Function, Call]:
        """Return the function of the members and the arguments, to submit the gang again to a new scheduler."""
        assert isinstance(self._function, GangFunction) and self._payload is not None
        return self._function.of_member, self._payload

    def __reduce__(self) -> Any:
        if is_collecting():
            return reduced(self)  # raises the error of an argument
        raise TypeError(f"{self!r} can't be pickled: pass its result()")


def _refuse(future: GangFuture[Any], _collector: InputCollector) -> bytes:
    raise TypeError(f"the future of gang {future._task_label()} can't be an argument: pass its result()")


STAND_INS[GangFuture] = _refuse
