"""Client library of Scaler, a task scheduler for Python programs that outgrow one process or one machine."""

__version__ = "0.1.0"

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .adapters.joblib_registration import register_joblib
    from .api.async_client import AsyncClient
    from .api.async_future import AsyncKeptFuture, AsyncTaskFuture
    from .api.client import Client
    from .api.executor import ClusterExecutor
    from .api.local_cluster import LocalCluster, SchedulerClusterCombo
    from .commands.addresses import AddressError
    from .commands.key_files import KeyFileError
    from .errors import (
        ArgumentLoadError,
        ClientClosedError,
        EnvironmentFailedError,
        FunctionLoadError,
        GangError,
        GraphCycleError,
        MessageTooLargeError,
        ModulesError,
        ObjectNotFoundError,
        PackagesError,
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
    from .futures.future import TaskFuture
    from .futures.gang_future import GangFuture
    from .futures.kept_results import KeptFuture
    from .futures.profiling import ProfilingInfo
    from .nested.current_task import CurrentTask, current_task
    from .nested.gang import Gang
    from .nested.task_host import TaskStoppedError
    from .pickling.custom_serializer import Serializer
    from .pickling.named_function import NamedFunction, named
    from .pickling.references import ObjectRef

__all__ = [
    "AddressError",
    "ArgumentLoadError",
    "AsyncClient",
    "AsyncKeptFuture",
    "AsyncTaskFuture",
    "Client",
    "ClientClosedError",
    "ClusterExecutor",
    "CurrentTask",
    "FunctionLoadError",
    "Gang",
    "GangError",
    "GangFuture",
    "GraphCycleError",
    "KeptFuture",
    "KeyFileError",
    "LocalCluster",
    "MessageTooLargeError",
    "ModulesError",
    "PackagesError",
    "NamedFunction",
    "EnvironmentFailedError",
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
    "current_task",
    "named",
    "register_joblib",
]

_MODULES = {
    "AddressError": "commands.addresses",
    "ArgumentLoadError": "errors",
    "AsyncClient": "api.async_client",
    "AsyncKeptFuture": "api.async_future",
    "AsyncTaskFuture": "api.async_future",
    "Client": "api.client",
    "ClientClosedError": "errors",
    "ClusterExecutor": "api.executor",
    "CurrentTask": "nested.current_task",
    "FunctionLoadError": "errors",
    "Gang": "nested.gang",
    "GangError": "errors",
    "GangFuture": "futures.gang_future",
    "GraphCycleError": "errors",
    "KeptFuture": "futures.kept_results",
    "KeyFileError": "commands.key_files",
    "LocalCluster": "api.local_cluster",
    "MessageTooLargeError": "errors",
    "ModulesError": "errors",
    "PackagesError": "errors",
    "NamedFunction": "pickling.named_function",
    "EnvironmentFailedError": "errors",
    "ObjectNotFoundError": "errors",
    "ObjectRef": "pickling.references",
    "ProfilingInfo": "futures.profiling",
    "ProtectedSchedulerError": "errors",
    "RemoteError": "errors",
    "ResultPickleError": "errors",
    "ScalerError": "errors",
    "SchedulerClusterCombo": "api.local_cluster",
    "SchedulerLostError": "errors",
    "Serializer": "pickling.custom_serializer",
    "SerializerError": "errors",
    "TaskFuture": "futures.future",
    "TaskRefusedError": "errors",
    "TaskStoppedError": "nested.task_host",
    "TaskTimeoutError": "errors",
    "UnauthorizedError": "errors",
    "WorkerDiedError": "errors",
    "current_task": "nested.current_task",
    "named": "pickling.named_function",
    "register_joblib": "adapters.joblib_registration",
}


def __getattr__(name: str) -> object:
    """Import a public name at its first use.

    Programs that only watch a scheduler also run under PyPy, where libraries that the client needs are missing.
    """
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = globals()[name] = getattr(import_module(f".{module}", __name__), name)
    except AttributeError as error:  # `from scaler_client import Client` would hide it
        raise ImportError(f"{__name__} cannot load {name}: {_cause(error)}") from error
    return value


def _cause(error: AttributeError) -> str:
    """Say which file has no such attribute. A `json.py` beside a program replaces Python's, for example."""
    owner = getattr(error, "obj", None)  # PyPy 3.9 does not say it
    file = getattr(owner, "__file__", None)
    if not isinstance(file, str):
        return str(error)
    module = getattr(owner, "__name__", "")
    return f"{file} has no {error.name!r}; if it replaces Python's module {module} by mistake, rename it"


def __dir__() -> list[str]:
    """List the public names for completion, without the modules that define them."""
    return [*__all__, "__all__", "__doc__", "__file__", "__name__", "__path__", "__version__"]
