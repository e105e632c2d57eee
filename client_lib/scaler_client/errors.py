"""Errors that the client library raises beside the standard library's."""

from __future__ import annotations

import graphlib
from concurrent.futures import BrokenExecutor


class ScalerError(Exception):
    """Base of every error that is Scaler's own."""


class WorkerDiedError(ScalerError):
    """The task's worker died while it ran, in every attempt; the text is the attempts' history."""


class TaskTimeoutError(ScalerError, TimeoutError):
    """The task ran for longer than its `timeout` and was stopped."""


class FunctionLoadError(ScalerError):
    """The function's bytes could not be turned into a function on the worker; the text names worker, host and
    interpreter, and `__cause__` is the worker's error."""


class ArgumentLoadError(ScalerError):
    """A task's arguments could not be unpickled on the worker, as where a module is missing there; the text names
    worker, host and interpreter, and `__cause__` is the worker's error."""


class ResultPickleError(ScalerError):
    """The task's result or exception could not be serialized on the worker, or unpickled in the client; the text names
    the function, and `__cause__` is the client's error where there is one."""


class MessageTooLargeError(ScalerError, ValueError):
    """A task's arguments, its function or an object have more bytes than the scheduler takes in one frame; see its
    option `--message-size-limit`."""


class TaskRefusedError(ScalerError):
    """The scheduler does not take the task, as its client would go beyond one of the scheduler's limits, such as its
    option `--client-function-limit`; the text names it."""


class RemoteError(ScalerError):
    """What a function that a worker offers by name has raised; the text is the worker's, as its language has it."""


class SerializerError(ScalerError, TypeError):
    """A serializer of the user's raised; the text names what it was given and on which side."""


class RemoteTraceback(Exception):
    """The cause of every exception of a task: its text is the traceback on the worker."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class SchedulerLostError(ScalerError, BrokenExecutor):
    """The scheduler has been gone for longer than the client's `timeout_seconds`, or refuses the client."""


class UnauthorizedError(ScalerError, ConnectionError):
    """The scheduler does not let this client in: its key is not authorized, is missing or is another scheduler's."""


class ClientClosedError(ScalerError, RuntimeError):
    """The client was used after it was disconnected, or in a process forked from the one that made it."""


class ObjectNotFoundError(ScalerError, LookupError):
    """An object that a task was to read is not kept any more: nobody referred to it, or its client was cleared."""


class GraphCycleError(ScalerError, graphlib.CycleError):
    """Nodes of a graph need one another in a circle. It is a ValueError too; `args[1]` is the list of their keys, of
    which the first is the last again."""

    def __str__(self) -> str:
        return str(self.args[0])


class ProtectedSchedulerError(ScalerError, PermissionError):
    """A client asked a scheduler to shut down that takes this from none; see its option `--no-protected`."""
