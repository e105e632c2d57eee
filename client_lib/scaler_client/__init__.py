"""Client library of Scaler, a task scheduler for Python programs that outgrow one process or one machine."""

__version__ = "0.1.0"

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .async_client import AsyncClient
    from .async_future import AsyncTaskFuture
    from .by_name import NamedFunction, named
    from .client import Client
    from .custom_serializer import Serializer
    from .errors import (
        ArgumentLoadError,
        ClientClosedError,
        FunctionLoadError,
        GraphCycleError,
        MessageTooLargeError,
        ObjectNotFoundError,
        ProtectedSchedulerError,
        RemoteError,
        ResultPickleError,
        ScalerError,
        SchedulerLostError,
        SerializerError,
        TaskRefusedError,
        TaskTimeoutError,
        UnauthorizedError,
        WorkerDiedError,
    )
    from .executor import ClusterExecutor
    from .future import TaskFuture
    from .joblib_registration import register_joblib
    from .local import LocalCluster, SchedulerClusterCombo
    from .nesting import TaskStoppedError
    from .profiling import ProfilingInfo
    from .references import ObjectRef

__all__ = [
    "ArgumentLoadError",
    "AsyncClient",
    "AsyncTaskFuture",
    "Client",
    "ClientClosedError",
    "ClusterExecutor",
    "FunctionLoadError",
    "GraphCycleError",
    "LocalCluster",
    "MessageTooLargeError",
    "NamedFunction",
    "ObjectNotFoundError",
    "ObjectRef",
    "ProfilingInfo",
    "ProtectedSchedulerError",
    "RemoteError",
    "ResultPickleError",
    "ScalerError",
    "SchedulerClusterCombo",
    "SchedulerLostError",
    "Serializer",
    "SerializerError",
    "TaskFuture",
    "TaskRefusedError",
    "TaskStoppedError",
    "TaskTimeoutError",
    "UnauthorizedError",
    "WorkerDiedError",
    "named",
    "register_joblib",
]

_HOMES = {
    "ArgumentLoadError": "errors",
    "AsyncClient": "async_client",
    "AsyncTaskFuture": "async_future",
    "Client": "client",
    "ClientClosedError": "errors",
    "ClusterExecutor": "executor",
    "FunctionLoadError": "errors",
    "GraphCycleError": "errors",
    "LocalCluster": "local",
    "MessageTooLargeError": "errors",
    "NamedFunction": "by_name",
    "ObjectNotFoundError": "errors",
    "ObjectRef": "references",
    "ProfilingInfo": "profiling",
    "ProtectedSchedulerError": "errors",
    "RemoteError": "errors",
    "ResultPickleError": "errors",
    "ScalerError": "errors",
    "SchedulerClusterCombo": "local",
    "SchedulerLostError": "errors",
    "Serializer": "custom_serializer",
    "SerializerError": "errors",
    "TaskFuture": "future",
    "TaskRefusedError": "errors",
    "TaskStoppedError": "nesting",
    "TaskTimeoutError": "errors",
    "UnauthorizedError": "errors",
    "WorkerDiedError": "errors",
    "named": "by_name",
    "register_joblib": "joblib_registration",
}


def __getattr__(name: str) -> object:
    """What users import, when they do: the programs that only watch a scheduler also run where the libraries of the
    client are missing, under PyPy."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{home}", __name__), name)
    return value


def __dir__() -> list[str]:
    """What completion offers: the names above, without the modules that they come from."""
    return [*__all__, "__all__", "__doc__", "__file__", "__name__", "__path__", "__version__"]
