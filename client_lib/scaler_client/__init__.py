"""Client library of Scaler, a task scheduler for Python programs that outgrow one process or one machine."""

__version__ = "0.1.0"

from .async_client import AsyncClient
from .async_future import AsyncTaskFuture
from .by_name import NamedFunction, named
from .client import Client
from .custom_serializer import Serializer
from .errors import (
    ClientClosedError,
    FunctionLoadError,
    ObjectNotFoundError,
    ProtectedSchedulerError,
    RemoteError,
    ResultPickleError,
    ScalerError,
    SchedulerLostError,
    SerializerError,
    TaskTimeoutError,
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
    "AsyncClient",
    "AsyncTaskFuture",
    "Client",
    "ClientClosedError",
    "ClusterExecutor",
    "FunctionLoadError",
    "LocalCluster",
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
    "TaskStoppedError",
    "TaskTimeoutError",
    "WorkerDiedError",
    "named",
    "register_joblib",
]


def __dir__() -> list[str]:
    """What completion offers: the names above, without the modules that they come from."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
