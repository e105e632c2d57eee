"""What a client, and each view of it, submits tasks with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ALL_COMPLETED, Future
from types import FunctionType
from typing import Any, NoReturn, TypeVar

from ..errors import ClientClosedError
from ..futures.future import TaskFuture
from ..io.io_thread import IoThread
from ..nested import slot_wait
from ..nested.task_host import RunningTask
from ..pickling.custom_serializer import Serializer
from ..pickling.functions import Function, FunctionTable
from ..pickling.named_function import NamedFunction
from ..protocol.messages import Options
from . import wait
from .executor import ClusterExecutor
from .map import Arguments, DumpCall, MapPlan, check_one_iterable, run_map
from .task_options import TaskOptions, checked_bool

C = TypeVar("C")
S = TypeVar("S", bound="Submitter")
T = TypeVar("T")

DISCONNECTED = "the client is disconnected"


def as_client_members(part: type[C]) -> type[C]:
    """A class decorator: to errors and help the methods of this part of a client are `Client`'s, as to its users."""
    for name, member in vars(part).items():
        if isinstance(member, FunctionType) and not name.startswith("_"):
            member.__qualname__ = f"Client.{name}"
            member.__module__ = "scaler_client.api.client"  # with it, pickle finds them by that name
    return part


NOT_GIVEN: Any = object()
"""In the place of an argument for which None means something."""


def split_profiling_argument(
    fn: Callable[..., Any], profiling: Any, kwargs: dict[str, Any]
) -> tuple[dict[str, Any], bool | None]:
    """Whose the argument `profiling` of a submit is: the function's keywords, and what the task asks for."""
    if profiling is NOT_GIVEN:
        return kwargs, None
    try:
        parameter = inspect.signature(fn).parameters.get("profiling")
    except (TypeError, ValueError):  # of a builtin, or nothing that can be called
        parameter = None
    if parameter is not None and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        return {**kwargs, "profiling": profiling}, None
    return kwargs, profiling


class NestedHandle:
    """What a client inside a worker, and its views, can disconnect from."""

    is_closed = False


@as_client_members
class Submitter:
    """Submits tasks that ask for certain options.

    Args:
        io_thread: hands them over.
        functions, dump_call, serializer: turn functions, arguments and objects into bytes.
        options: what the tasks ask for.
        nested_handle: of a client inside a worker; None for others.
    """

    def __init__(
        self,
        io_thread: IoThread,
        functions: FunctionTable,
        dump_call: DumpCall,
        serializer: Serializer | type | None,
        options: TaskOptions,
        nested_handle: NestedHandle | None,
    ) -> None:
        self._io_thread = io_thread
        self._functions = functions
        self._dump_call = dump_call
        self._serializer = serializer
        self._nested_handle = nested_handle
        self._set_options(options)

    def _set_options(self, options: TaskOptions) -> None:
        self._options = options
        # Looked at once a task: everything else about options is off the way of tasks that ask for nothing.
        self._sends_no_options = self._nested_handle is None and not options.retry_on and options.to_wire() is None

    @property
    def _has_custom_serializer(self) -> bool:
        """Whether functions, arguments and results become bytes in a way of the user's."""
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
    ) -> S:
        """A view of this client whose tasks ask for more. It shares the connection; what is not given stays as it is.

        Args:
            timeout: seconds a task may run; past them it is stopped, and its future raises TaskTimeoutError.
            retries: how many more times a task is run when its worker died, or it raised one of `retry_on`. Not
                given: as the scheduler has it (`--task-retries`), 3 with `retry_on`.
            retry_on: exceptions that a task is tried again on; the last attempt's is raised.
            priority: higher ones start first; 0 outside of tasks, inside a task the task's own.
            name: for people, in the place of the function's.
            capabilities: what a worker must have: names, or a dict of names and least amounts.
            profiling: whether tasks are measured, for their futures' `profiling_info()`.

        Raises:
            TypeError, ValueError: an option is of a wrong type or out of range; the text names it.
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
            )
        )
        return view

    def submit(self, fn: Callable[..., T], /, *args: Any, profiling: Any = NOT_GIVEN, **kwargs: Any) -> TaskFuture[T]:
        """Have `fn(*args, **kwargs)` called on a worker.

        Args:
            profiling: True or False: whether this task is measured, whatever the client's options say. It is passed to
                `fn` alone if that has a parameter of this name; `options(profiling=True)` measures such a task.

        Returns:
            Its future, a `concurrent.futures.Future`.

        Raises:
            TypeError: the function or an argument can't be pickled, or `fn` can't be called.
            ClientClosedError: the client is disconnected, or belongs to a parent process.
        """
        if not self._sends_no_options or profiling is not NOT_GIVEN or type(fn) is NamedFunction:
            return self._submit_call(fn, args, *split_profiling_argument(fn, profiling, kwargs))
        future: TaskFuture[T] = TaskFuture(self._io_thread, self._functions.get(fn), self._dump_call(args, kwargs))
        self._io_thread.submit(future)
        return future

    def _submit_call(
        self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: Mapping[str, Any], profiling: bool | None = None
    ) -> TaskFuture[T]:
        """The same, with whatever names the keywords have."""
        if profiling is not None:
            checked_bool("profiling", profiling)
        task = self._current_task()
        options = self._wire_options(task, profiling)
        future: TaskFuture[T] = TaskFuture(self._io_thread, self._function(fn), self._dumper(fn)(args, kwargs))
        if options is None:
            self._io_thread.submit(future)
        else:
            future.options = options
            future.parent = None if task is None else task.name
            self._io_thread.submit_with_options(future)
        return future

    def map(
        self, fn: Callable[..., T], iterable: Iterable[Arguments], *others: NoReturn, progress: bool = False
    ) -> list[T]:
        """Call `fn(*arguments)` on the workers for each tuple of arguments, and wait for all.

        Args:
            iterable: tuples (or lists) of arguments, one for each call; `[(x,) for x in items]` for one argument.
                `client.executor().map(fn, items)` takes the items themselves, as the built-in map does, and several
                iterables.
            others: must be empty. Several iterables raise a TypeError that says how to pass them.
            progress: show a bar; needs tqdm, the extra `scaler-client[progress]`.

        Returns:
            The results, in the order of the arguments.

        Raises:
            TypeError: as for submit, or an item is neither a tuple nor a list; the text names the item.
            ImportError: there is no tqdm to show a bar with.
            concurrent.futures.CancelledError: its tasks were cancelled, by `clear`.
            BaseException: what the first failed task raised; the tasks that have not begun are then cancelled.
        """
        check_one_iterable("Client", others, "client.executor().map(fn, xs, ys) or client.map(fn, zip(xs, ys))")
        return run_map(self._io_thread, self._map_plan(fn, iterable, progress))

    def _map_plan(self, fn: Callable[..., T], iterable: Iterable[Arguments], progress: bool) -> MapPlan[T]:
        """What a `map` is to do, checked."""
        if not isinstance(iterable, Iterable):
            raise TypeError(f"map needs an iterable of tuples of arguments, not {iterable!r}")
        checked_bool("progress", progress)
        task = self._current_task()
        parent = None if task is None else task.name
        options = self._wire_options(task, None)
        return MapPlan(self._function(fn), self._dumper(fn), iterable, options, parent, progress)

    def executor(self) -> ClusterExecutor:
        """An executor of `concurrent.futures` whose calls run on this client's cluster, with this view's options.

        Shutting it down leaves the client connected.
        """
        return ClusterExecutor(self)

    def as_completed(self, futures: Iterable[Future[T]], timeout: float | None = None) -> Iterator[Future[T]]:
        """The futures in the order in which they end.

        Raises:
            TypeError: one is no future, or the timeout no number.
            concurrent.futures.TimeoutError: while going through them: the next is not there `timeout` seconds after
                this call.
        """
        return wait.as_completed(futures, timeout)

    def wait(
        self, futures: Iterable[Future[T]], timeout: float | None = None, return_when: str = ALL_COMPLETED
    ) -> tuple[set[Future[T]], set[Future[T]]]:
        """Wait for futures as `concurrent.futures.wait` does; returns those that have ended, and the others.

        Raises:
            TypeError, ValueError: one is no future, the timeout no number, `return_when` none of the three there are.
        """
        return wait.wait(futures, timeout, return_when)

    def gather(self, futures: Iterable[Future[T]]) -> list[T]:
        """Wait for futures; returns their results, in order.

        Raises:
            TypeError: one is no future.
            BaseException: what the first one that fails has raised, at once; the others are left as they are.
        """
        return wait.gather(futures)

    def _function(self, fn: Callable[..., Any]) -> Function:
        if self._options.retry_on:
            return self._functions.get_retrying(fn, self._options.retry_on)
        return self._functions.get(fn)

    def _dumper(self, fn: Callable[..., Any]) -> DumpCall:
        """What makes bytes of its arguments."""
        return fn.dump_call if type(fn) is NamedFunction else self._dump_call

    def _current_task(self) -> RunningTask | None:
        """The task whose children the calling thread submits."""
        if self._nested_handle is not None and self._nested_handle.is_closed:
            raise ClientClosedError(DISCONNECTED)
        return slot_wait.current_task(self._io_thread)

    def _wire_options(self, task: RunningTask | None, profiling: bool | None) -> Options | None:
        """What travels with a child of this task, or with a task that is nobody's child."""
        if task is None:
            return self._options.to_wire(profiling=profiling)
        return self._options.to_wire(task.depth + 1, task.priority, profiling, task.stream_output)
