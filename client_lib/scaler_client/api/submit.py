"""Submitting tasks: the part of a client that its views share."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ALL_COMPLETED, Future
from types import FunctionType
from typing import Any, NoReturn, TypeVar

from ..errors import ClientClosedError
from ..futures.future import TaskFuture
from ..futures.gang_future import GangFuture
from ..futures.kept_results import KeptFuture
from ..io.io_thread import IoThread
from ..nested import slot_wait
from ..nested.task_host import RunningTask
from ..pickling.custom_serializer import Serializer
from ..pickling.functions import Function, FunctionTable
from ..pickling.named_function import NamedFunction
from ..pickling.retry_policy import NO_POLICY
from ..protocol.messages import Options
from . import wait
from .executor import ClusterExecutor
from .map import check_one_iterable, checked_count, iterate_map, run_map
from .map_run import Arguments, DumpCall, MapPlan
from .task_options import TaskOptions, checked_bool, checked_gang

C = TypeVar("C")
S = TypeVar("S", bound="Submitter")
T = TypeVar("T")

DISCONNECTED = "the client is disconnected"


def as_client_members(part: type[C]) -> type[C]:
    """Decorate a base class of `Client`: errors and help show its public methods as methods of `Client`."""
    for name, member in vars(part).items():
        if isinstance(member, FunctionType) and not name.startswith("_"):
            member.__qualname__ = f"Client.{name}"
            member.__module__ = "scaler_client.api.client"  # where pickle finds a method of this name
    return part


NOT_GIVEN: Any = object()
"""The default of an argument that may be None."""


def split_profiling_argument(
    fn: Callable[..., Any], profiling: Any, kwargs: dict[str, Any]
) -> tuple[dict[str, Any], bool | None]:
    """Decide whether the argument `profiling` of `submit` is meant for the function or for the task.

    Returns:
        The keywords of the function, and the profiling option of the task; None: the client's option counts.
    """
    if profiling is NOT_GIVEN:
        return kwargs, None
    try:
        parameter = inspect.signature(fn).parameters.get("profiling")
    except (TypeError, ValueError):  # a builtin without a signature, or no callable
        parameter = None
    if parameter is not None and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        return {**kwargs, "profiling": profiling}, None
    return kwargs, profiling


class NestedHandle:
    """Whether a client inside a worker is disconnected; shared with its views."""

    is_closed = False


@as_client_members
class Submitter:
    """Submits tasks with one set of options.

    Args:
        io_thread: the I/O thread that the tasks are handed to.
        functions: turns functions into bytes.
        dump_call_of: returns the function that turns the arguments of a call into bytes. Its argument says whether the
            tasks of a worker share the values of their inputs.
        serializer: turns objects into bytes; None: cloudpickle.
        options: the options of the tasks.
        nested_handle: the handle of a client inside a worker; None for other clients.
    """

    def __init__(
        self,
        io_thread: IoThread,
        *,
        functions: FunctionTable,
        dump_call_of: Callable[[bool], DumpCall],
        serializer: Serializer | type | None,
        options: TaskOptions,
        nested_handle: NestedHandle | None,
    ) -> None:
        self._io_thread = io_thread
        self._functions = functions
        self._dump_call_of = dump_call_of
        self._serializer = serializer
        self._nested_handle = nested_handle
        self._set_options(options)

    def _set_options(self, options: TaskOptions) -> None:
        self._options = options
        self._dump_call = self._dump_call_of(options.shared_inputs)
        # One check for each task: a task without options skips everything else about options.
        self._sends_no_options = (
            self._nested_handle is None
            and not (options.policy != NO_POLICY or options.keep)
            and options.to_wire() is None
        )

    @property
    def _keeps_results(self) -> bool:
        """Whether the results of this view's tasks stay on their hosts (`options(keep=True)`)."""
        return self._options.keep

    @property
    def _shares_inputs(self) -> bool:
        """Whether the tasks of a worker share the values of their inputs (`options(shared_inputs=True)`)."""
        return self._options.shared_inputs

    @property
    def _has_custom_serializer(self) -> bool:
        """Whether a custom serializer turns functions, arguments and results into bytes."""
        return self._serializer is not None

    def options(
        self: S,
        *,
        timeout: float | None = None,
        retries: int | None = None,
        retry_on: type[BaseException] | tuple[type[BaseException], ...] | None = None,
        priority: int | None = None,
        name: str | None = None,
        capabilities: Mapping[str, int] | Iterable[str] | None = None,
        profiling: bool | None = None,
        keep: bool | None = None,
        limit: str | Iterable[str] | None = None,
        resources: Mapping[str, float | str] | None = None,
        cpus: float | None = None,
        release_resources: bool | None = None,
        shared_inputs: bool | None = None,
        leave_processes: bool | None = None,
    ) -> S:
        """Return a view of this client whose tasks have these options.

        The view has the same methods and shares the connection. An option that is None keeps the value of this client
        or view.

        Args:
            timeout: how many seconds a task may run. Then it is stopped, and its future raises `TaskTimeoutError`.
            retries: how many times a task may run again, if its worker died or if it raised an exception of `retry_on`.
                The default is 3 with `retry_on`, else the scheduler's option `--task-retries`.
            retry_on: an exception class or a tuple of exception classes. A task that raises one runs again; the future
                raises the exception of the last attempt.
            priority: tasks with a higher priority start first. The default is 0; inside a task, it is the priority of
                that task.
            name: the task's name in logs, errors and monitors; by default the name of the function.
            capabilities: the capabilities that a worker must have: names, or a dict of names and minimum amounts.
            profiling: whether tasks are measured; see `TaskFuture.profiling_info`.
            keep: whether results stay on their hosts. `submit` then returns a `KeptFuture`. `map`, `imap` and
                `submit_graph` give one for each result. The future is done when the result exists; `result()` brings
                the value.
            limit: names of limits in the scheduler's configuration, `[limits]`. A task waits until all these limits
                allow it to begin.
            resources: amounts of the host's resources that a task needs, such as `{"gpu": 0.5, "memory": "4G"}`. No
                other task gets these amounts until the task ends. `current_task().resources` has the ids of its GPUs.
            cpus: how many cpus a task needs. The task takes one worker of a host for each cpu, and libraries for linear
                algebra get one thread for each cpu.
            release_resources: whether a task gives all its resources back when it first waits for its own tasks, and
                does not get them again. By default it gives its cpus back while it waits, and keeps its other
                resources.
            shared_inputs: whether the tasks of a worker share the values of their inputs (objects, and the results of
                other tasks). The value of a large input is then loaded once for each worker, and no task may change
                it. By default, each task gets values of its own.
            leave_processes: whether the processes that a task starts outlive it. By default they end with their worker
                at the latest, and with their task if it is stopped.

        Returns:
            The view. It needs no `disconnect` of its own.

        Raises:
            TypeError: an option has a wrong type; the text names it.
            ValueError: an option is out of range; the text names it.

        Example:
            ```python
            careful = client.options(timeout=60, retries=5, retry_on=OSError)
            future = careful.submit(len, "abc")
            ```
        """
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__)
        view._set_options(
            self._options.replace_given(
                timeout=timeout,
                retries=retries,
                retry_on=retry_on,
                priority=priority,
                name=name,
                capabilities=capabilities,
                profiling=profiling,
                keep=keep,
                limit=limit,
                resources=resources,
                cpus=cpus,
                release_resources=release_resources,
                shared_inputs=shared_inputs,
                leave_processes=leave_processes,
            )
        )
        return view

    def submit(self, fn: Callable[..., T], /, *args: Any, profiling: Any = NOT_GIVEN, **kwargs: Any) -> TaskFuture[T]:
        """Call `fn(*args, **kwargs)` on a worker. Returns at once.

        Args:
            fn: the function; any callable, or a function by name (`named`).
            args: the positional arguments. `fn` gets the object of an `ObjectRef`, and the result of a future.
            profiling: whether this task is measured, True or False; it overrides the client's option. If `fn` has a
                parameter `profiling`, the argument is passed to `fn`. To measure such a function, use
                `options(profiling=True)`.
            kwargs: the keyword arguments.

        Returns:
            The future of the task. It is a `concurrent.futures.Future`.

        Raises:
            TypeError: the function or an argument cannot be pickled, or `fn` is not callable.
            ClientClosedError: the client is disconnected, or belongs to the parent process of a fork.
        """
        if not self._sends_no_options or profiling is not NOT_GIVEN or type(fn) is NamedFunction:
            return self._submit_call(fn, args, *split_profiling_argument(fn, profiling, kwargs))
        future: TaskFuture[T] = TaskFuture(self._io_thread, self._functions.get(fn), self._dump_call(args, kwargs))
        self._io_thread.submit(future)
        return future

    def _submit_call(
        self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: Mapping[str, Any], profiling: bool | None = None
    ) -> TaskFuture[T]:
        """Submit a call. Unlike `submit`, this takes keywords of any name, such as `self`."""
        if profiling is not None:
            checked_bool("profiling", profiling)
        task = self._current_task()
        options = self._wire_options(task, profiling)
        function, payload = self._function(fn), self._dumper(fn)(args, kwargs)
        if self._options.keep:
            parent = None if task is None else task.name
            kept: KeptFuture[T] = KeptFuture(self._io_thread, function, payload, options=options, parent=parent)
            self._io_thread.submit_kept([kept])
            return kept
        future: TaskFuture[T] = TaskFuture(self._io_thread, function, payload)
        if options is None:
            self._io_thread.submit(future)
        else:
            future.options = options
            future.parent = None if task is None else task.name
            self._io_thread.submit_with_options(future)
        return future

    def submit_gang(
        self,
        fn: Callable[..., T],
        /,
        *args: Any,
        size: int,
        resources: Mapping[str, float | str] | None = None,
        cpus: float | None = None,
        **kwargs: Any,
    ) -> GangFuture[T]:
        """Call `fn(*args, **kwargs)` on several workers that start together or not at all. Returns at once.

        Each call is a member of the gang. In a member, `current_task().gang` has its rank, and exchanges values with
        the other members. The variables of `torch.distributed` are set (`RANK`, `WORLD_SIZE`, `MASTER_ADDR` and
        others). If a member fails, the others are stopped. If the worker of a member dies, all members start again, as
        often as the option `retries` allows.

        Args:
            fn: the function.
            args: the positional arguments, the same for all members.
            size: the number of members, at most 1,024. The gang starts when `size` workers are idle.
            resources: amounts of the host's resources that each member needs, as for `options`.
            cpus: how many processors of its host each member needs, as for `options`.
            kwargs: the keyword arguments. If `fn` has a parameter of one of these names, use `functools.partial`.

        Returns:
            The future of the gang. Its result is the list of the members' results, by rank.

        Raises:
            TypeError: as for `submit`, or `size` is no whole number.
            ValueError: `size` is out of range, or this view has an option that gangs do not have: `keep`, `profiling`.
            ClientClosedError: the client is disconnected, or belongs to the parent process of a fork.

        Example:
            ```python
            from scaler_client import Client, current_task

            def total(numbers):
                gang = current_task().gang
                own = sum(numbers[gang.rank :: gang.size])
                return sum(gang.all_gather(own))

            with Client() as client:
                print(client.submit_gang(total, range(10), size=2).result())  # [45, 45]
            ```
        """
        if resources is not None or cpus is not None:
            return self.options(resources=resources, cpus=cpus).submit_gang(fn, *args, size=size, **kwargs)
        task = self._current_task()
        checked_gang(size, self._options)
        options = self._wire_options(task, None) or Options()
        future: GangFuture[T] = GangFuture(
            self._io_thread,
            self._function(fn),
            self._dumper(fn)(args, kwargs),
            options=dataclasses.replace(options, gang_size=size),
            parent=None if task is None else task.name,
        )
        self._io_thread.submit_with_options(future)
        return future

    def map(
        self, fn: Callable[..., T], iterable: Iterable[Arguments], *others: NoReturn, progress: bool = False
    ) -> list[T]:
        """Call `fn(*arguments)` on the workers for each tuple of arguments, and wait for all results.

        Args:
            fn: the function.
            iterable: one tuple or list of arguments for each call; for one argument `[(x,) for x in items]`. To pass
                the items themselves, or several iterables, use `client.executor().map(fn, items)`.
            others: must be empty. Further iterables raise a `TypeError` that says how to pass them.
            progress: whether to show a progress bar; needs tqdm, the extra `scaler-client[progress]`.

        Returns:
            The results, in the order of the arguments. With `options(keep=True)`: a `KeptFuture` for each result.

        Raises:
            TypeError: as for `submit`, or an item is neither a tuple nor a list; the text names the item.
            ImportError: `progress` is True, but tqdm is not installed.
            concurrent.futures.CancelledError: `clear` cancelled the tasks.
            ClientClosedError: the client was disconnected.
            BaseException: the exception of the first task that failed. Tasks that have not begun are then cancelled.

        Example:
            ```python
            print(client.map(pow, [(2, 3), (5, 2)]))  # [8, 25]
            ```
        """
        check_one_iterable("Client", others, "client.executor().map(fn, xs, ys) or client.map(fn, zip(xs, ys))")
        return run_map(self._io_thread, self._map_plan(fn, iterable, progress))

    def imap(self, fn: Callable[..., T], iterable: Iterable[Arguments], *, buffer: int = 10_000) -> Iterator[T]:
        """Call `fn(*arguments)` lazily for each tuple of arguments: calls whose results you do not read may not run.

        The iterable is read while you read the results. So the needed memory does not grow with the number of calls. If
        you drop the iterator, calls that have not begun are cancelled. To run all calls, use `map` or an executor.

        Args:
            fn: the function.
            iterable: one tuple or list of arguments for each call, as for `map`. It may be endless. This thread reads
                it, in this call and when results are read.
            buffer: the most calls that are submitted before their results are read.

        Returns:
            An iterator of the results, in the order of the arguments. If a call fails, the iterator raises the
            exception in place of the result, and ends. When the iterator ends or is closed, calls that have not begun
            are cancelled. With `options(keep=True)`, it yields a `KeptFuture` for each result, when the result exists.

        Raises:
            TypeError: as for `map`, or `buffer` is not a whole number. A wrong item that is read later raises in the
                iterator.
            ValueError: `buffer` is below 1.
            ClientClosedError: the client is disconnected.

        Example:
            ```python
            for result in client.imap(pow, ((x, 2) for x in range(1_000_000)), buffer=1000):
                if result > 100:
                    break
            ```
        """
        plan = self._map_plan(fn, iterable, False)
        return iterate_map(self._io_thread, plan, checked_count("buffer", buffer))[1]

    def imap_unordered(
        self, fn: Callable[..., T], iterable: Iterable[Arguments], *, buffer: int = 10_000
    ) -> Iterator[T]:
        """Call `fn(*arguments)` lazily, like `imap`, and yield each result as soon as it arrives.

        Args:
            fn: the function.
            iterable: one tuple or list of arguments for each call.
            buffer: the most calls that are submitted before their results are read.

        Returns:
            An iterator of the results. It raises the exception of a call that fails, and ends.

        Raises:
            TypeError: as for `imap`.
            ValueError: `buffer` is below 1.
            ClientClosedError: the client is disconnected.
        """
        plan = self._map_plan(fn, iterable, False)
        return iterate_map(self._io_thread, plan, checked_count("buffer", buffer), is_ordered=False)[1]

    def _map_plan(
        self, fn: Callable[..., T], iterable: Iterable[Arguments], progress: bool, row_calls: int | None = None
    ) -> MapPlan[T]:
        """Check the arguments of `map`."""
        if not isinstance(iterable, Iterable):
            raise TypeError(f"map needs an iterable of tuples of arguments, not {iterable!r}")
        checked_bool("progress", progress)
        task = self._current_task()
        parent = None if task is None else task.name
        options = self._wire_options(task, None)
        return MapPlan(
            self._function(fn),
            self._dumper(fn),
            iterable,
            options,
            parent,
            progress,
            row_calls,
            can_retry=bool(self._options.retry_on),
            keep=self._options.keep,
            shares_inputs=self._options.shared_inputs,
            client=self,
        )

    def executor(self) -> ClusterExecutor:
        """Return a `concurrent.futures.Executor` whose calls run on this client's cluster, with this view's options.

        Shutting the executor down leaves the client connected.

        Returns:
            A new executor.
        """
        return ClusterExecutor(self)

    def as_completed(self, futures: Iterable[Future[T]], timeout: float | None = None) -> Iterator[Future[T]]:
        """Yield futures in the order in which they are done, as `concurrent.futures.as_completed` does.

        Args:
            futures: any futures of `concurrent.futures`.
            timeout: seconds from this call until the iterator raises; None: no limit.

        Returns:
            An iterator of the futures.

        Raises:
            TypeError: an item is not a future, or the timeout is not a number.
            concurrent.futures.TimeoutError: the next future is not done in time; raised by the iterator.
        """
        return wait.as_completed(futures, timeout)

    def wait(
        self, futures: Iterable[Future[T]], timeout: float | None = None, return_when: str = ALL_COMPLETED
    ) -> tuple[set[Future[T]], set[Future[T]]]:
        """Wait for futures, as `concurrent.futures.wait` does.

        Args:
            futures: any futures of `concurrent.futures`.
            timeout: how many seconds to wait; None: no limit.
            return_when: a constant of `concurrent.futures`: `ALL_COMPLETED`, `FIRST_COMPLETED` or `FIRST_EXCEPTION`.

        Returns:
            The set of finished futures, and the set of the other futures.

        Raises:
            TypeError: an item is not a future, or the timeout is not a number.
            ValueError: `return_when` is none of the three constants.
        """
        return wait.wait(futures, timeout, return_when)

    def gather(self, futures: Iterable[Future[T]]) -> list[T]:
        """Wait for futures and return their results.

        Args:
            futures: any futures of `concurrent.futures`.

        Returns:
            The results, in the order of the futures.

        Raises:
            TypeError: an item is not a future.
            BaseException: the exception of the first future that fails, as soon as it fails. The other tasks continue.
        """
        try:
            return wait.gather(futures)
        finally:
            del futures  # breaks the reference cycle of exception, traceback, frame and future

    def _function(self, fn: Callable[..., Any]) -> Function:
        if self._options.policy != NO_POLICY:
            return self._functions.get_with_policy(fn, self._options.policy)
        return self._functions.get(fn)

    def _dumper(self, fn: Callable[..., Any]) -> DumpCall:
        """Return the function that turns the arguments of `fn` into bytes."""
        return fn.dump_call if type(fn) is NamedFunction else self._dump_call

    def _current_task(self) -> RunningTask | None:
        """Return the task that the calling thread runs; None outside of tasks."""
        if self._nested_handle is not None and self._nested_handle.is_closed:
            raise ClientClosedError(DISCONNECTED)
        return slot_wait.current_task(self._io_thread)

    def _wire_options(self, task: RunningTask | None, profiling: bool | None) -> Options | None:
        """Return the options to send with a child of this task.

        If `task` is None, return those of a task without a parent.
        """
        if task is None:
            return self._options.to_wire(profiling=profiling)
        return self._options.to_wire(task.depth + 1, task.priority, profiling, task.stream_output)
