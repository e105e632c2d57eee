"""Client library of Scaler, a task scheduler for Python programs that outgrow one process or one machine."""

__version__ = "0.1.0"

from .client import Client
from .custom_serializer import Serializer
from .errors import (
    ClientClosedError,
    FunctionLoadError,
    ObjectNotFoundError,
    ProtectedSchedulerError,
    ResultPickleError,
    ScalerError,
    SchedulerLostError,
    SerializerError,
    TaskTimeoutError,
    WorkerDiedError,
)
from .future import TaskFuture
from .local import SchedulerClusterCombo
from .nesting import TaskStoppedError
from .profiling import ProfilingInfo
from .references import ObjectRef

__all__ = [
    "Client",
    "ClientClosedError",
    "FunctionLoadError",
    "ObjectNotFoundError",
    "ObjectRef",
    "ProfilingInfo",
    "ProtectedSchedulerError",
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
]
