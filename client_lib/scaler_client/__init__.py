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
    WorkerDiedError,
)
from .future import TaskFuture
from .local import SchedulerClusterCombo

__all__ = [
    "Client",
    "ClientClosedError",
    "FunctionLoadError",
    "ResultPickleError",
    "ScalerError",
    "SchedulerClusterCombo",
    "SchedulerLostError",
    "Serializer",
    "SerializerError",
    "TaskFuture",
    "WorkerDiedError",
]
