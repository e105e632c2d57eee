"""Client library of Scaler, a task scheduler for Python programs that outgrow one process or one machine."""

__version__ = "0.1.0"

from .client import Client
from .custom_serializer import Serializer
from .errors import (
    ClientClosedError,
    FunctionLoadError,
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

__all__ = [
    "Client",
    "ClientClosedError",
    "FunctionLoadError",
    "ProfilingInfo",
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
