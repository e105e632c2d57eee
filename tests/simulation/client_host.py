"""A client: the real session, and the work of io/io_thread.py and api/client.py around it, without threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from scaler_client.futures.open_graphs import GraphRows, GraphTasks
from scaler_client.pickling.functions import Function, HasName
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Keep, Message, Options, Outcome, Role, TaskAttempt
from scaler_client.protocol.wire import decode, encode
from scaler_client.session.session import Session, State

from .client_files import SimulatedFiles, host_of
from .client_kept import KeptResults, KeptTask
from .client_maps import ClientMap, SimulatedFunction
from .client_objects import UserObjects, give_result
from .clock import Process
from .map_plan import Manner
from .network import Frames
from .oracle import Future
from .scripts import Script, SentObject, function_bytes, read_results
from .trace import SimulationError

if TYPE_CHECKING:
    from .world import World

TASK_OVERHEAD = 128
"""What a task counts against the credit beside its payload (PROTOCOL.md)."""


BLOCKED_SECONDS = 0.01
"""The time between two looks whether the thread may run again."""


class ClientHost:
    def __init__(
        self, world: World, name: str, process: Process | None = None, worker: int = 0, environment: str = ""
    ) -> None:
        """Make a client. With `process` it is a nested client, which lives in this worker's process, and in its
        environment."""
        self._nested_environment = environment
        self.world = world
        self.name = name
        self.process = process or Process(world.clock, name)
        self.is_nested = process is not None
        self.incarnation = world.draw_incarnation()
        self.futures: list[Future] = []
        self.maps: list[ClientMap] = []
        """Maps of which something is on its way."""
        self.has_left = False
        self.was_cleared = False
        self._heard_at = self.process.run_seconds
        """When the last message was read, by the process's own time."""
        self.link = world.network.open(name, self._arrived, world.latency_factor())
        self.link.reconnected = self._reconnected
        hello = messages.Hello(Role.CLIENT, self.incarnation, "3", "0", name, world.next_pid(), name, worker=worker)
        hello.host = host_of(self.incarnation, name)
        if name.endswith(("1", "3")):  # they share the workers as one
            hello.account, hello.host = "ada", "host2"
        self.session = Session(hello, "sim", world.plan.heartbeat_seconds, world.plan.timeout_seconds, world.clock.now)
        self.session.objects.files = SimulatedFiles(world, self.incarnation, hello.host, self.process)
        self.user_objects = UserObjects(self)
        self.kept = KeptResults(self)
        self._functions: dict[int, Function] = {}
        self._next_function = 1
        self._inbox: list[Message] = []
        self._wake_at = 0.0
        self._is_due = False
        self.is_blocked: Callable[[], bool] = lambda: False
        """Whether another thread of its process holds the GIL."""
        self._submitted_bytes = 0
        self._highest_sent = -1
        """The last task that was submitted since the welcome."""
        self._credit = 0
        self._has_lost = False
        self._answered: set[int] = set()
        """The tasks that were answered at some time."""
        self.wake()

    # ---------------------------------------------------------------------------------------------- what users call

    def submit(self, script: Script, options: Options, parent: TaskAttempt | None = None) -> Future:
        refs = [self.user_objects.get(sent_object) for sent_object in script.sent_objects]
        payload = self.user_objects.call(script, refs)
        future = Future(self.world.oracle, self, self.function(script.function), script, options, parent, payload)
        release = self.user_objects.hold(refs)
        future.on_result = give_result
        future.graph = [future]
        self.user_objects.submitted(future)

        def ended() -> None:
            release()
            self.user_objects.reader_ended(read_results([script]))

        future.ended = ended
        assert future.function is not None
        submit = self.session.submit if future.options is None else self.session.submit_with_options
        future.task_id = submit(future, future.function, payload)
        self.world.oracle.submitted(self.incarnation, future)
        self.futures.append(future)
        self.world.trace.note(self.name, "submits", str(script.key), "as", str(future.task_id))
        self.wake()
        return future

    def keep(self, script: Script, options: Options) -> KeptTask:
        """Submit a task whose result stays on its host."""
        refs = [self.user_objects.get(sent_object) for sent_object in script.sent_objects]
        call = self.user_objects.call(script, refs)
        task = KeptTask(self, self.function(script.function), script, options, call)
        release = self.user_objects.hold(refs)
        task.graph = [task]
        self.user_objects.submitted(task)

        def ended() -> None:
            release()
            self.user_objects.reader_ended(read_results([script]))
            task.forget_if_unused()

        task.ended = ended
        self.kept.tasks.append(task)
        task.task_id = self.session.submit_kept(task.kept, task)
        self.world.oracle.submitted(self.incarnation, task)
        self.futures.append(task)
        self.world.trace.note(self.name, "submits", str(script.key), "as", str(task.task_id), "and keeps its result")
        self.world.trace.count("kept tasks")
        self.wake()
        return task

    def map(self, scripts: list[Script], options: Options, manner: Manner) -> list[Future]:
        """Call one function with the same options several times."""
        oracle, trace = self.world.oracle, self.world.trace
        trace.note(self.name, "maps", *[str(script.key) for script in scripts], str(manner))
        started = ClientMap(self, scripts, options, manner)
        self.maps.append(started)
        oracle.futures += started.futures
        self.futures += started.futures
        trace.count("tasks", len(started.futures))
        trace.count("maps")
        self.wake()
        return started.futures

    def submit_graph(self, scripts: list[Script], targets: list[int], options: Options) -> list[Future]:
        """Submit tasks, some of which read one another's results or those of earlier tasks, as graph.Plan does."""
        oracle = self.world.oracle
        sent_objects: dict[SentObject, int] = {}
        for script in scripts:
            for sent_object in script.sent_objects:
                sent_objects.setdefault(sent_object, ~len(sent_objects))
        earlier = {key: ~(len(sent_objects) + place) for place, key in enumerate(read_results(scripts))}
        refs = [self.user_objects.get(sent_object) for sent_object in sent_objects]
        functions = [self.function(script.function) for script in scripts]
        futures = [Future(oracle, self, function, script, options) for function, script in zip(functions, scripts)]
        rows = {script.key: row for row, script in enumerate(scripts)}
        inputs = [
            sent_objects[each] if isinstance(each, SentObject) else rows.get(each.key, earlier.get(each.key, 0))
            for script in scripts
            for each in script.inputs
        ]
        keep = bytearray([Keep.YES]) * len(scripts)
        for row in targets:
            keep[row] = Keep.BOTH if row in inputs else Keep.NO
        graph_rows = GraphRows(
            {function.number: function for function in functions},
            [function.number for function in functions],
            [script.payload() for script in scripts],
            inputs,
            [len(script.inputs) for script in scripts],
            [*refs, *map(self.user_objects.result, earlier)],  # type: ignore[list-item]
        )
        graph = GraphTasks(
            graph_rows,
            bytes(keep),
            {row: futures[row] for row in targets},  # type: ignore[misc]
            str,
            options=None if options == Options() else options,
        )
        self.session.submit_graph(graph)
        asked = [futures[row] for row in targets]
        release = self.user_objects.hold(refs, len(asked), lambda: self.user_objects.reader_ended(earlier))
        related = [*asked, *self.user_objects.related(earlier)]
        for row, future in enumerate(futures):
            future.task_id = graph.first + row
            future.graph = related
            future.ended = release
            future.functions = set(functions)
            oracle.submitted(self.incarnation, future, is_asked=row in targets)
        self.futures += asked
        self.world.trace.note(self.name, "submits a graph", [script.key for script in scripts], "as", str(graph.first))
        self.wake()
        return asked

    def clear(self) -> None:
        """As Client.clear: cancel tasks that have not begun, and forget all objects."""
        self.world.trace.note(self.name, "clears")
        self.world.trace.count("clears")
        self.was_cleared = True
        for future in self.futures:
            future.is_cancel_asked = future.is_cancel_asked or not future.is_done
        self.session.clear(lambda: None)
        self.wake()

    def cancel(self, futures: list[Future], force: bool) -> None:
        """As TaskFuture.cancel: finished tasks are left out, and running ones unless `force`."""
        for each in {id(future.of_map): future.of_map for future in futures if future.of_map is not None}.values():
            for future in each.futures:
                future.is_cancel_asked = future.is_cancel_asked or not future.is_done
            self.world.trace.count("cancels of maps, forced" if force else "cancels of maps")
            each.cancel(force)
        asked = [
            future
            for future in futures
            if future.of_map is None and not future.is_done and (force or not future.has_started)
        ]
        for future in asked:
            future.is_cancel_asked = True
            if force and future.forced_at is None:
                future.forced_at = self.world.clock.now
            self.world.trace.count("cancels, forced" if force else "cancels")
            self.session.cancel([future.task_id], partial(future.cancel_answered, force), force)
        self.world.trace.note(self.name, "cancels", "by force" if force else "", [future.task_id for future in asked])
        self.wake()

    def stop_children(self, parent: TaskAttempt) -> None:
        """Stop the children of a task of this process, because that task is stopped or has ended."""
        for future in self.futures:
            if future.parent == parent and not future.is_done:
                future.is_cancel_asked = True
                self.world.trace.count("children that end with their parent")
        self.session.stop_children(parent)
        self.wake()

    def forget_function(self, number: int) -> None:
        """Forget the function. Its next task sends it again, under another number."""
        function = self._functions.get(number)
        is_used = self.kept.uses(function) or any(function in future.functions for future in self.futures)
        if function is not None and not is_used and not any(each.function is function for each in self.maps):
            del self._functions[number]
            self.session.forget_function(function.number)
            self.wake()

    def close(self) -> None:
        for future in self.futures:
            future.is_cancel_asked = future.is_cancel_asked or not future.is_done
        self.has_left = True
        self.world.trace.note(self.name, "disconnects")
        self.session.close("done")
        self._send()
        self._end(lingers=True)

    def kill(self) -> None:
        self.world.trace.note(self.name, "is killed")
        self._end(lingers=False)

    def _end(self, lingers: bool) -> None:
        self.process.kill()
        self.link.close(lingers)

    def function(self, number: int) -> Function:
        function = self._functions.get(number)
        if function is None:
            environment = self._environment_of(number)
            name = "" if environment is None else environment.name
            payload = function_bytes(number, name)
            function = SimulatedFunction(self._next_function, f"function {number}", payload, environment=environment)
            self._functions[number] = function
            self._next_function += 1
        return function

    def _environment_of(self, number: int) -> HasName | None:
        """The environment of a function: none, one that all clients have, or one of this client alone."""
        if self._nested_environment:
            return self.world.environments.named(self._nested_environment)
        if self.is_nested or not self.world.plan.has_environments or not number % 3:
            return None
        environment = self.world.environments.of_client(self.name if number % 3 == 2 else "")
        self.session.use_environment(environment)
        return environment

    def may_give_up(self) -> bool:
        """Whether the client has received nothing for so long that it may stop waiting for the scheduler."""
        plan = self.world.plan
        return self.process.run_seconds - self._heard_at >= plan.timeout_seconds - plan.heartbeat_seconds

    # ------------------------------------------------------------------------------------------------ the I/O thread

    def wake(self) -> None:
        """Run the thread in a moment."""
        if not self._is_due:
            self._is_due = True
            self.process.later(self.world.chance.uniform(0.00001, 0.0005), self._step)

    def _arrived(self, frames: Frames) -> None:
        self._inbox.append(decode(list(frames)))
        self.wake()

    def _reconnected(self) -> None:
        self.process.later(0.0, lambda: self.session.reconnected(self.world.clock.now))
        self.wake()

    def _step(self) -> None:
        if self.is_blocked():
            self.process.later(BLOCKED_SECONDS, self._step)
            return
        self._is_due = False
        now = self.world.clock.now
        if now >= self.session.next_deadline:
            self.session.tick(now)
        inbox, self._inbox = self._inbox, []
        for message in inbox:
            self._heard_at = self.process.run_seconds
            if self._loses(message):
                continue
            self._note_credit(message)
            self.session.handle(message, now)
            self._send()
        self._send()
        self.futures = [future for future in self.futures if not future.is_done]
        at = self.session.next_deadline
        if self._wake_at <= now or at < self._wake_at:
            self._wake_at = at
            # A moment at least: in the simulation no time passes by itself.
            self.process.later(max(0.0001, at - now), lambda: self._deadline(at))

    def _loses(self, message: Message) -> bool:
        """Whether the message is lost with the connection: the first request for a file, if the run has faults."""
        files = self.session.objects.files
        if not isinstance(message, messages.FetchObjects) or self._has_lost or self.world.oracle.is_calm:
            return False
        if not any(map(files.has, message.ids)):
            return False
        self._has_lost = True
        self.world.trace.count("requests for files of clients that are lost")
        self.link.cut()
        return True

    def _deadline(self, at: float) -> None:
        if self._wake_at == at and not self._is_due:
            self._is_due = True
            self._step()

    def _send(self) -> None:
        for message in self.session.pop_outgoing():
            if not isinstance(message, messages.Heartbeat):
                self.world.trace.note(self.name, "sends", message)
            if isinstance(message, messages.Submit):
                self._check_credit(message)
            elif isinstance(message, messages.Object) and not message.is_wanted:
                self._submitted_bytes += (message.file_bytes or sum(map(len, message.frames))) + TASK_OVERHEAD
            elif isinstance(message, messages.Objects):
                self._submitted_bytes += sum(map(len, message.payloads)) + TASK_OVERHEAD * len(message.ids)
            copies = self.world.network.copies(type(message).__name__)
            self.link.send([bytes(frame) for frame in encode(message)], copies)

    # -------------------------------------------------------------------------------------------------------- checks

    def _note_credit(self, message: Message) -> None:
        if isinstance(message, messages.Welcome):
            self._credit = message.credit
            self._submitted_bytes = 0
            self._highest_sent = -1
        elif isinstance(message, messages.Credit):
            self._credit = max(self._credit, message.bytes)
        elif isinstance(message, messages.Resolved):
            self._answered.update(message.ids)
        if not isinstance(message, messages.HeartbeatEcho):
            self.world.trace.note(self.name, "gets", message)

    def _check_credit(self, submit: messages.Submit) -> None:
        if submit.ids[-1] <= self._highest_sent or self._answered.issuperset(submit.ids):
            pass  # again, for results that are lost
        elif self._submitted_bytes >= self._credit:
            raise SimulationError(f"{self.name} submits beyond its credit of {self._credit}")
        self._highest_sent = max(self._highest_sent, submit.ids[-1])
        self._submitted_bytes += sum(map(len, submit.payloads)) + TASK_OVERHEAD * len(submit.ids)


__all__ = ["ClientHost", "Outcome", "State"]
