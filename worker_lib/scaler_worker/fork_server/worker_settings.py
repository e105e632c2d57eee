"""What a worker process is told at its start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class WorkerSettings:
    """Everything a worker process needs; plain data, so that it also passes through a command line as JSON."""

    address: str
    """The scheduler's, as in `tcp://127.0.0.1:2345`."""
    name: str
    incarnation: int
    """Drawn by the agent for every process it starts; below 2^63."""
    agent: int
    """The incarnation of the host agent that looks after this process."""
    heartbeat_interval_seconds: float
    garbage_collect_interval_seconds: float
    trim_memory_threshold_bytes: int
    preload: str
    """`module:function`, called once before the first task; empty: nothing."""
    logging_level: str
    logging_paths: tuple[str, ...]
    capabilities: dict[str, int] = field(default_factory=dict)
    """What every worker of the cluster has, with an amount of at least 1: for its hello."""
    keys: str = ""
    """The folder of keys for the scheduler; empty: none."""
    objects: str = ""
    """The directory of the host agent's object files; empty: there is none."""
    offers: dict[str, str] = field(default_factory=dict)
    """Functions for clients in any language: `module:function` by the name that they are offered under."""


def worker_settings_from(plain: dict[str, Any]) -> WorkerSettings:
    """WorkerSettings from what `dataclasses.asdict` and JSON made of them."""
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in plain.items()}
    return WorkerSettings(**fields)
