"""What a task finds in its process for the time in which it runs: which GPUs are its own, and how many threads
libraries start; its working directory and its environment variables. Another task of the process that runs while this
one is suspended does not see these."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, NamedTuple

from scaler_client.nested.current_task import booked_cpus, booked_resources

GPU = "gpu"

CUDA, HIP, ROCR = "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
"""Read by libraries that are loaded while the task runs, and by processes that it starts."""

AMD_DEVICES = "/sys/class/kfd"
"""Exists if the driver of AMD's GPUs is loaded."""


Variables = dict[Any, Any]
"""Environment variables as `os.environ` keeps them: as bytes, unless the system is Windows."""


class Surroundings(NamedTuple):
    """What a suspended task finds again when it resumes."""

    directory: str | None
    """The working directory. None: it is gone."""
    variables: Variables


class TaskEnvironment:
    """Sets the variables and threads of a booking, and puts back what was there before. Keeps the directory and the
    variables of a suspended task apart from those of other tasks."""

    def __init__(
        self, environ: MutableMapping[str, str] = os.environ, has_amd_devices: bool = os.path.exists(AMD_DEVICES)
    ) -> None:
        self._environ = environ
        self._has_amd_devices = has_amd_devices
        self._booking = ""
        self._before: dict[str, str | None] = {}
        """The variables that were changed, as they were before. None: there was none."""
        self._threads: Any = None
        """threadpoolctl's limits, if some are set."""
        plain: Any = environ
        self._variables: Variables = getattr(environ, "_data", plain)
        self._encode: Callable[[str], Any] = getattr(environ, "encodevalue", str)
        self._directory: str | None = None
        """The working directory before the first task."""
        self._noted: Variables = {}
        """The variables before the running task, with those that the import of its modules has set."""

    def enter(self, booking: str) -> None:
        """Set what a booking says, `17 cpus=4 gpu=1.5:0+2`. Empty: put back what was there before."""
        if booking == self._booking:
            return
        self._restore()
        if not booking:
            return
        self._booking = booking
        ids = booked_resources(booking).get(GPU)
        if isinstance(ids, tuple):
            self._set(visible_devices(ids, self._environ, self._has_amd_devices))
        cpus = booked_cpus(booking)
        if cpus:
            self._set(dict.fromkeys(THREAD_VARIABLES, str(cpus)))
            self._threads = _limit_threads(cpus)

    def leave(self) -> None:
        """Put back what was there before."""
        if self._booking:
            self._restore()

    def note(self) -> None:
        """Note the variables that other tasks see while the task that begins now is suspended.

        This is called before each queue of tasks, and when a function was loaded: what modules set when they are
        imported belongs to the process. It takes 0.2 us; to ask for the working directory would take 1 us.
        """
        if self._directory is None:
            self._directory = _working_directory()
        self._noted = noted = self._variables.copy()
        for name, value in self._before.items():
            if value is None:
                noted.pop(self._encode(name), None)
            else:
                noted[self._encode(name)] = self._encode(value)

    def suspend(self) -> Surroundings:
        """Put the process into the state before the task, and return that of the task. Call `leave` before."""
        found = Surroundings(_working_directory(), self._variables.copy())
        self._put(Surroundings(self._directory, self._noted))
        return found

    def resume(self, surroundings: Surroundings) -> None:
        """Put the process into the state of a suspended task."""
        self._put(surroundings)

    def _put(self, wanted: Surroundings) -> None:
        directory, variables = wanted
        if directory is not None and directory != _working_directory():
            try:
                os.chdir(directory)
            except OSError:
                pass  # the task, or another one, has removed it
        if variables == self._variables:
            return
        for name in self._variables.keys() - variables.keys():
            del self._environ[os.fsdecode(name)]
        for name, value in variables.items():
            if self._variables.get(name) != value:
                self._environ[os.fsdecode(name)] = os.fsdecode(value)

    def _set(self, variables: Mapping[str, str]) -> None:
        for name, value in variables.items():
            self._before.setdefault(name, self._environ.get(name))
            self._environ[name] = value

    def _restore(self) -> None:
        # The booking is forgotten last: a stop may interrupt this at any place, and it is done again then.
        threads = self._threads
        if threads is not None:
            threads.restore_original_limits()
            self._threads = None
        while self._before:
            name, value = next(reversed(self._before.items()))
            if value is None:
                self._environ.pop(name, None)
            else:
                self._environ[name] = value
            self._before.pop(name, None)
        self._booking = ""


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def visible_devices(ids: tuple[int, ...], environ: Mapping[str, str], has_amd_devices: bool = False) -> dict[str, str]:
    """The variables that show a task its GPUs alone.

    A cluster that itself sees only some devices, for example in a job of Slurm, has their names in a variable: id 0 is
    the first of them. With AMD's driver, HIP (and CUDA_VISIBLE_DEVICES there) count the devices that
    ROCR_VISIBLE_DEVICES leaves, so these count from 0.

    Args:
        ids: the ids of the booking.
        environ: the variables without this task's.
        has_amd_devices: whether the host has AMD's driver.
    """
    places = tuple(range(len(ids)))
    return {
        CUDA: _devices(environ.get(CUDA), places if has_amd_devices else ids),
        HIP: _devices(environ.get(HIP), places if has_amd_devices else ids),
        ROCR: _devices(environ.get(ROCR), ids),
    }


def _devices(visible: str | None, ids: tuple[int, ...]) -> str:
    names = [name.strip() for name in visible.split(",")] if visible else []
    return ",".join([names[unit] if unit < len(names) else str(unit) for unit in ids])


def _limit_threads(cpus: int) -> Any:
    """Limit the threads of libraries that are loaded already. None: threadpoolctl is not installed."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return None
    return threadpool_limits(limits=cpus)
