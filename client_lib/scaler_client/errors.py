"""The exceptions that the client library defines. It also raises exceptions of the standard library."""

from __future__ import annotations

import graphlib
from concurrent.futures import BrokenExecutor


class ScalerError(Exception):
    """The base class of Scaler's own errors."""


class WorkerDiedError(ScalerError):
    """The worker of the task died in every attempt.

    The text is the history of the attempts: host, exit code or signal, and peak memory.
    """


class TaskTimeoutError(ScalerError, TimeoutError):
    """The task ran for longer than its `timeout` and was stopped."""


class FunctionLoadError(ScalerError):
    """A worker could not unpickle the task's function.

    The text names the worker, the host and the interpreter. `__cause__` is the error on the worker.
    """


class ArgumentLoadError(ScalerError):
    """A worker could not unpickle the task's arguments, for example because a module is missing there.

    The text names the worker, the host and the interpreter. `__cause__` is the error on the worker.
    """


class ResultPickleError(ScalerError):
    """The result or the exception of a task could not be pickled on the worker, or unpickled in the client.

    The text names the function. If the client failed to unpickle, `__cause__` is its error.
    """


class GangError(ScalerError):
    """The members of a gang have not all begun in time."""


class MessageTooLargeError(ScalerError, ValueError):
    """The arguments of a task, its function or an object are larger than the scheduler accepts in one frame.

    The scheduler's option `--message-size-limit` sets the limit. At most 1 GiB of arguments go through the scheduler.
    """


class TaskRefusedError(ScalerError):
    """The scheduler refused the task because its client is at a limit, or because the task needs a limit
    (`options(limit=...)`) that is not defined.

    The text names the limit, for example the scheduler's option `--client-function-limit`.
    """


class RemoteError(ScalerError):
    """A function that a worker offers by name raised an error. The text comes from the worker."""


class SerializerError(ScalerError, TypeError):
    """A custom serializer raised an exception.

    The text names the value that the serializer was given, and whether the client or a worker called it.
    """


class RemoteTraceback(Exception):
    """The cause of a task's exception; its text is the traceback on the worker.

    Args:
        text: the formatted traceback.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class SchedulerLostError(ScalerError, BrokenExecutor):
    """The client had no scheduler for longer than its `timeout_seconds`, or the scheduler rejects it."""


class UnauthorizedError(ScalerError, ConnectionError):
    """The scheduler rejects the client's key: it is missing, not authorized, or made for another scheduler."""


class ClientClosedError(ScalerError, RuntimeError):
    """The client is disconnected, or it belongs to the parent process of a fork."""


class ObjectNotFoundError(ScalerError, LookupError):
    """An object that a task reads was freed or refused: its last reference was deleted, `clear` was called, or it
    exceeds a limit.
    """


class EnvironmentFailedError(ScalerError, RuntimeError):
    """No host could prepare the modules or packages of a task. The text names a host, and what went wrong there."""


class ModulesError(ScalerError, ValueError):
    """Modules cannot be uploaded. The text names the file or folder, and says what to do."""


class PackagesError(ScalerError, ValueError):
    """What `environment` names cannot be used. The text is one line that names the file, and says what to do."""


class GraphCycleError(ScalerError, graphlib.CycleError):
    """The graph has a cycle: some of its nodes depend on each other.

    It is also a `graphlib.CycleError`, and so a `ValueError`. `args[1]` is the list of the keys of the cycle, in order;
    the first key is repeated at the end.
    """

    def __str__(self) -> str:
        return str(self.args[0])


class ProtectedSchedulerError(ScalerError, PermissionError):
    """The scheduler does not let clients shut it down; its option `--no-protected` allows it."""
