"""A client's maps: the real `MapRun`, packing and feed, without the thread that waits for the results."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from scaler_client.api import map as map_module
from scaler_client.api.map_run import MapPlan, MapRun
from scaler_client.errors import SchedulerLostError
from scaler_client.pickling.call_rows import TUPLES, CallBlock, PackedCalls, pack_calls, row_calls
from scaler_client.pickling.functions import Function
from scaler_client.pickling.references import Call, call_payload
from scaler_client.protocol.messages import Options, Outcome, Payload
from scaler_client.session.map_feed import MapFeed, MapFeeds

from .map_plan import Manner
from .oracle import MAX_STOP_SECONDS, Future
from .scripts import Script, SentObject, key_of, read_results
from .trace import SimulationError

if TYPE_CHECKING:
    from .client_host import ClientHost
    from .client_objects import Ref


class SimulatedFunction(Function):
    """A function whose answers are the bytes that scripts return."""

    __slots__ = ()

    def read_answer(
        self, outcome: int, answer: Payload, _function_name: str = "", _place: str = ""
    ) -> tuple[Any, BaseException | None]:
        if outcome == Outcome.VALUE:
            return bytes(answer), None
        return None, CallFailedError(outcome, bytes(answer))


class CallFailedError(Exception):
    """The failure of a call of a map."""

    def __init__(self, outcome: int, answer: bytes) -> None:
        super().__init__(outcome, answer)
        self.outcome = outcome
        self.answer = answer


def pack_scripts(client_map: ClientMap, calls: Sequence[tuple[Script]], shares_inputs: bool = False) -> PackedCalls:
    """Pack some calls as `pack_calls` does. Each has the payload of its script, and the positions of its inputs among
    those of the block."""
    inputs = list(dict.fromkeys(each for (script,) in calls for each in script.inputs))
    packed = pack_calls(None, [(script.payload(), bytes(map(inputs.index, script.inputs))) for (script,) in calls])
    result = client_map.client.user_objects.result
    return replace(
        packed,
        inputs=[
            client_map.object_ids[each.key] if isinstance(each, SentObject) else result(each.key) for each in inputs
        ],
    )


class _Changed:
    """The event that the caller of a map waits for. In its place the map takes a step."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._is_set = False
        self._wake = wake

    def set(self) -> None:
        self._is_set = True
        self._wake()

    def clear(self) -> None:
        self._is_set = False

    def wait(self, _seconds: float | None = None) -> bool:
        return self._is_set


class ClientMap:
    """A running map of a client. It is the I/O thread for its `MapRun`, and the session for its feed.

    Args:
        client: the client.
        scripts: the calls; all have one function and the same options.
        options: the options of the calls.
        manner: how its user reads the results.
    """

    def __init__(self, client: ClientHost, scripts: list[Script], options: Options, manner: Manner) -> None:
        self.function = client.function(scripts[0].function)
        self.is_closed = False
        self.is_idle = False
        """Whether nothing of it is on its way any more."""
        self.object_ids: dict[int, int] = {}
        """Ids of the inputs of all calls, by the objects' keys."""
        self.client = client
        self._manner = manner
        refs: list[Ref] = []
        for script in scripts:
            for sent_object in script.sent_objects:
                ref = client.user_objects.get(sent_object)
                self.object_ids[sent_object.key] = ref.object_id
                refs.append(ref)
        read = read_results(scripts)
        self._held = list(refs)
        on_release = partial(client.user_objects.reader_ended, read)
        self._releases = [client.user_objects.hold(refs, on_release=on_release)]
        self.futures = [
            Future(client.world.oracle, client, self.function, script, options, of_map=self) for script in scripts
        ]
        for future in self.futures:
            future.graph = [future, *client.user_objects.related(read_results([future.script]))]
        if read:
            client.world.trace.count("maps that read results")
        self._by_key = {future.script.key: future for future in self.futures}
        self._read = 0
        """The number of results that were read."""
        self._is_over = False
        self._is_step_due = False
        self._could_give_up = False
        self._forced_at: float | None = None
        self._row_sizes: dict[int, int] = {}
        """The number of calls of each row that was submitted."""
        self._taken: set[int] = set()
        """Positions of the results that an unordered map has taken from its feed."""
        self._changed = _Changed(self._wake)
        plan = MapPlan(
            self.function,
            lambda args, _: client.user_objects.call(args[0], self._refs(args[0])),
            [(script,) for script in scripts],
            None if options == Options() else options,
            None,
            row_calls=manner.row_calls,
            can_retry=any(script.retryable for script in scripts),
        )
        self._run: MapRun[bytes] = MapRun(self, plan, self._changed, manner.fails_fast)  # type: ignore[arg-type]
        self.feed = self._run.feed
        if not manner.is_ordered:
            self.feed.ready = _Ready(self._taken)
        if manner.fails_fast:
            self._parts: Iterator[list[bytes] | None] = self._map_parts()
        else:
            map_module.submit_buffer(self._run, manner.buffer, 0)
            if manner.buffer is None:
                map_module._submit_all(self._run, self._changed)
            self._parts = map_module.result_parts(self._run, manner.buffer, manner.is_ordered)
        self._wake()

    def _refs(self, script: Script) -> list[Ref]:
        """References to the objects that a call reads. The map holds those that were sent again meanwhile."""
        refs = [self.client.user_objects.get(each) for each in script.sent_objects]
        again = [ref for ref in refs if ref not in self._held]
        if again:
            self._held += again
            self._releases.append(self.client.user_objects.hold(again))
        return refs

    # --------------------------------------------------------------------------------------------------- the user

    def cancel(self, is_forced: bool) -> None:
        """Read no more results, and cancel the calls.

        Args:
            is_forced: stop calls that have begun.
        """
        self._close()
        if is_forced:
            self.cancel_many(self.feed.open_ids, force=True)
            if self._forced_at is None:
                self._forced_at = self.client.world.clock.now

    def _wake(self) -> None:
        if self.feed_error is not None:
            self._could_give_up = self._could_give_up or self.client.may_give_up()
        if not self._is_step_due and not self._is_over:
            self._is_step_due = True
            self.client.process.later(self.client.world.chance.uniform(0.00001, 0.001), self._step)

    @property
    def feed_error(self) -> BaseException | None:
        return self.feed.error if hasattr(self, "feed") else None

    def _step(self) -> None:
        self._is_step_due = False
        if self._is_over:
            return
        try:
            if not self._read_results():
                return
        except CallFailedError as error:
            self._end_failed(error.outcome, error.answer)
        except CancelledError:
            self._end_failed(Outcome.CANCELLED, b"")
        except SchedulerLostError:
            self._expect(self._could_give_up, "gives up its scheduler too early")
            self.client.world.trace.count("maps without their scheduler")
        else:
            self._expect(self._read == len(self.futures), f"ends after {self._read} results")
        self._close()

    def _read_results(self) -> bool:
        """Read the results that are there. Returns whether all were read."""
        for values in self._parts:
            if values is None:
                return False
            for value in values:
                self._take(value)
        return True

    def _map_parts(self) -> Iterator[list[bytes] | None]:
        """Do what `run_map` does, and yield as `result_parts`."""
        for must_wait in self._run.submit():
            if must_wait:
                yield None
        while not self._run.is_over:
            self._changed.clear()
            yield self._run.poll()

    def _take(self, value: bytes) -> None:
        key = int(value.split(b" ", 1)[0])
        future = self.futures[self._read] if self._manner.is_ordered else self._by_key[key]
        self._expect(future.script.key == key, f"gives the result of {key} in the place of {future.script.key}")
        self._read += 1
        future.resolve(-1, Outcome.VALUE, value)

    def _end_failed(self, outcome: int, answer: bytes) -> None:
        assert self.feed.failure is not None
        position, task_id = self.feed.failure.position, self.feed.failure.task_id
        is_split = outcome != Outcome.WORKER_DIED or self._row_sizes[task_id] == 1
        self._expect(is_split, f"fails at {position} with a row of several calls whose worker died")
        if not self._manner.fails_fast and self._manner.is_ordered:
            self._expect(self._read == position, f"fails at {position} after {self._read} results")
        self.futures[position].resolve(-1, outcome, answer)

    def _close(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._run.cancel_rest()
        for future in self.futures:
            if not future.is_done:
                future.drop()
        self.client.wake()
        self.feed.when_idle(self._end)

    def _end(self) -> None:
        self.is_idle = True
        for release in self._releases:
            release()
        self.client.maps.remove(self)
        clock, oracle = self.client.world.clock, self.client.world.oracle
        if self._forced_at is not None and oracle.is_calm:
            self._expect(clock.now - self._forced_at < MAX_STOP_SECONDS, "is stopped too late")

    # ---------------------------------------------------------------------------------- as the I/O thread of the run

    def submit_calls(self, feed: MapFeed, blocks: list[CallBlock], is_last: bool) -> None:
        feed.add(self, blocks, is_last)
        self.client.wake()

    def cancel_many(self, ids: Callable[[], Sequence[int]], force: bool = False) -> None:
        self.client.session.cancel(ids(), lambda: None, force)
        self.client.wake()

    def check_can_wait(self) -> None:
        """Does nothing: no thread waits."""

    # --------------------------------------------------------------------------------------- as the session of the feed

    @property
    def feeds(self) -> MapFeeds:
        return self.client.session.feeds

    def submit_with_options(self, sink: Any, function: Function, call: Call) -> int:
        """Submit a row. Check that it has the calls that it stands for, and that none of them is on its way or has an
        answer."""
        client, block = self.client, sink.block
        first, end = block.first + sink.begin, block.first + sink.end
        self._expect(self.feed.error is None, f"submits calls {first} to {end} though it has given up")
        self._expect(not self._is_over, f"submits calls {first} to {end} though nobody reads their results")
        rows = [each for each in client.session.pending.values() if getattr(each, "feed", None) is self.feed]
        busy = [(each.block.first + each.begin, each.block.first + each.end) for each in rows]
        busy += [(block.first + begin, block.first + begin + count) for begin, count, _ in block.answers]
        is_answered = any(first <= position < end for position in self._taken)
        is_busy = any(begin < end and first < stop for begin, stop in busy)
        self._expect(not is_answered and not is_busy, f"submits calls {first} to {end} once more")
        futures = self.futures[first:end]
        data = call_payload(call)
        payloads = [bytes(data)] if block.is_plain else [each[0] for each in _calls(data)]
        keys = [key_of(each) for each in payloads]
        self._expect(keys == [future.script.key for future in futures], f"row {first} to {end} has calls {keys}")
        oracle = client.world.oracle
        killed = [key for key in keys if oracle.killed[key]]
        is_calm = oracle.is_calm and not oracle.has_duplicates
        self._expect(len(keys) == 1 or not killed or not is_calm, f"submits {killed}, whose worker died, with others")
        task_id = client.session.submit_with_options(sink, function, call)
        self._row_sizes[task_id] = len(keys)
        oracle.row_submitted((client.incarnation, task_id), futures)
        client.world.trace.note(client.name, "submits calls", str(keys), "as", str(task_id))
        client.world.trace.count("rows of several calls" if len(keys) > 1 else "rows of one call")
        return task_id

    def _expect(self, condition: bool, text: str) -> None:
        if not condition:
            raise SimulationError(f"the map of {self.client.name} from {self.futures[0].script.key} on {text}")


def _calls(payload: Payload) -> list[tuple[Any, ...]]:
    form, _, calls, _ = row_calls(payload)
    if form != TUPLES:
        raise SimulationError("the calls are not in one pickle")
    return list(calls)


class _Ready(deque[Any]):
    """The answers of an unordered map. Notes the positions of all that have come."""

    def __init__(self, taken: set[int]) -> None:
        super().__init__()
        self._taken = taken

    def append(self, answer: Any) -> None:
        block, begin, count, _ = answer
        self._taken.update(range(block.first + begin, block.first + begin + count))
        super().append(answer)
