"""The checked arguments of a client, which are pickled with it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ..commands.addresses import parse_connect_address, parse_data_address
from ..commands.key_files import absolute
from ..commands.resource_amounts import shown
from ..environments.module_upload import checked_environment, checked_modules
from ..graphs.order import check_backend
from ..pickling.custom_serializer import check_serializer
from .local_cluster import LocalCluster
from .task_options import MAX_TIMEOUT_SECONDS, TaskOptions, checked_bool

_DEFAULT_OPTIONS = TaskOptions()


@dataclass(frozen=True)
class ClientSettings:
    """The checked arguments of a client. They are enough to make the same client in another process."""

    address: str | None
    """The address of the scheduler; None: it was not given."""
    timeout_seconds: float
    heartbeat_interval_seconds: float
    serializer: Any = None
    keys: str | None = None
    """The absolute path of the folder of keys. None: it was not given. Empty: no keys."""
    options: TaskOptions = _DEFAULT_OPTIONS
    data_address: str | None = None
    """Where agents get large objects; None: it was not given. It belongs to this host, and is not pickled."""
    modules: tuple[str, ...] = ()
    """Absolute paths of the files and folders whose modules the tasks import."""
    environment: str = ""
    """The absolute path of what names the packages of the tasks; empty: nothing."""

    def __reduce__(self) -> Any:
        # The path of the folder is pickled, not the keys: on another host the same path may hold other keys, or none.
        parts = self.address, self.timeout_seconds, self.heartbeat_interval_seconds, self.serializer, self.keys
        if self.modules or self.environment:
            return ClientSettings, (*parts, self.options, self.modules, self.environment)
        return ClientSettings, parts if self.options == _DEFAULT_OPTIONS else (*parts, self.options)


def checked_settings(
    address: Any,
    *,
    profiling: Any,
    timeout_seconds: Any,
    heartbeat_interval_seconds: Any,
    serializer: Any,
    graph_backend: Any,
    stream_output: Any,
    keys: Any,
    data_address: Any,
    modules: Any = None,
    environment: Any = None,
) -> ClientSettings:
    """Check the arguments of `Client`.

    Raises:
        TypeError: an argument has a wrong type; the text names it.
        ValueError: an argument is out of range, or the address is malformed.
        RuntimeError: the local cluster is shut down.
        ImportError: the library of the graph backend is not installed.
    """
    if serializer is not None:
        check_serializer(serializer)
    checked_bool("profiling", profiling)
    checked_bool("stream_output", stream_output)
    if keys is not None and not isinstance(keys, (str, os.PathLike)):
        raise TypeError(f"keys must be a folder's path, not {keys!r}")
    if data_address is not None:
        if not isinstance(data_address, str):
            raise TypeError(f"data_address must be a string, not {data_address!r}")
        try:
            parse_data_address(data_address)
        except ValueError as error:
            raise ValueError(f"data_address: {error}") from None
    _check_seconds("timeout_seconds", timeout_seconds)
    _check_seconds("heartbeat_interval_seconds", heartbeat_interval_seconds)
    address_text = _address_text(address)
    if keys is not None:
        keys = absolute(keys)
    elif isinstance(address, LocalCluster):
        keys = address.keys
    check_backend(graph_backend)
    options = TaskOptions(profiling=profiling, graph_backend=graph_backend, stream_output=stream_output)
    return ClientSettings(
        address_text,
        timeout_seconds,
        heartbeat_interval_seconds,
        serializer,
        keys,
        options,
        data_address,
        checked_modules(modules),
        checked_environment(environment),
    )


def _address_text(address: Any) -> str | None:
    if address is None:
        return None
    if isinstance(address, LocalCluster):
        if address.is_shut_down:
            raise RuntimeError(f"{address!r} accepts no more clients")
        return address.address
    if not isinstance(address, str):
        raise TypeError(f"address must be a string or a local cluster, not {address!r}")
    return str(parse_connect_address(address))


def _check_seconds(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, not {value!r}")
    if not 0 < value <= MAX_TIMEOUT_SECONDS:
        wanted = f"a number of seconds above 0 and at most {MAX_TIMEOUT_SECONDS:g}"
        raise ValueError(f"{name} must be {wanted}, not {shown(value)}")
