"""The settings that an agent gives to a worker process at its start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class WorkerSettings:
    """All settings of a worker process. Plain data: they also pass through a command line as JSON."""

    address: str
    """The scheduler's address, for example `tcp://127.0.0.1:2345`."""
    name: str
    incarnation: int
    """A number below 2^63, which the agent draws for each process that it starts."""
    agent: int
    """The incarnation of the host agent."""
    heartbeat_interval_seconds: float
    garbage_collect_interval_seconds: float
    trim_memory_threshold_bytes: int
    preload: str
    """`module:function`, called once before the first task; empty: nothing."""
    logging_level: str
    logging_paths: tuple[str, ...]
    capabilities: dict[str, int] = field(default_factory=dict)
    """The capabilities of every worker of the cluster, each with an amount of at least 1."""
    keys: str = ""
    """The folder of keys for the scheduler; empty: none."""
    objects: str = ""
    """The directory of the host's object files; empty: there is none."""
    offers: dict[str, str] = field(default_factory=dict)
    """Exported functions: `module:function` by the name under which clients call it."""
    environment: str = ""
    """The name of its environment; empty: none."""
    module_folder: str = ""
    """The folder of the modules of its environment; empty: there are none."""


def worker_settings_from(plain: dict[str, Any]) -> WorkerSettings:
    """Make WorkerSettings from JSON."""
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in plain.items()}
    return WorkerSettings(**fields)
