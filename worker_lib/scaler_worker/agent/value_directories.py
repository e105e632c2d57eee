"""The directories of a host's values in memory and on disk, with their limits."""

from __future__ import annotations

import logging
import os
import shutil

from scaler_client.commands.object_directory import ObjectDirectory, make_directory
from scaler_client.commands.object_files import SHARED_MEMORY
from scaler_client.commands.options import MAX_MEMORY_BYTES

from ..config import Config
from ..objects.host_storage import HostStorage

_log = logging.getLogger(__name__)


def make_value_directories(config: Config, incarnation: int) -> ObjectDirectory:
    """Make the directory of values in memory, with that of spilled values, and write their limits there.

    Args:
        config: has the limits and the place for spilled values.
        incarnation: of the host agent.

    Raises:
        OSError: the directory in memory can't be made or written to.
    """
    objects = make_directory(incarnation)
    objects.on_disk = _disk_directory(config, incarnation)
    _set_limits(config, objects)
    return objects


def _disk_directory(config: Config, incarnation: int) -> ObjectDirectory | None:
    """The directory for spilled values; None: there is none, and the log says why."""
    if not config.spill_directory or not hasattr(os, "fork"):
        return None
    if os.path.commonpath([os.path.realpath(config.spill_directory), SHARED_MEMORY]) == SHARED_MEMORY:
        _log.error("no value is written to --spill-directory %s: it is shared memory", config.spill_directory)
        return None
    try:
        return make_directory(incarnation, [config.spill_directory])
    except OSError as error:
        _log.error("no value can be written to --spill-directory %s: %s", config.spill_directory, error.strerror)
        return None


def _set_limits(config: Config, objects: ObjectDirectory) -> None:
    """Write the limits of values where all processes of the host read them.

    Raises:
        OSError: the directory can't be written to.
    """
    memory_limit, room = config.object_memory_bytes, shutil.disk_usage(objects.path).total
    if memory_limit > room:
        if memory_limit < MAX_MEMORY_BYTES:  # else nobody has set it, and this host has no shared memory
            place = os.path.dirname(objects.path)
            _log.warning(f"--object-memory is {memory_limit:,} bytes, but {place} has {room:,}: this is the limit")
        memory_limit = room
    disk_limit, disk = 0, ""
    if objects.on_disk is not None:
        disk = objects.on_disk.path
        disk_limit = config.spill_limit_bytes or shutil.disk_usage(disk).free // 2
    HostStorage(objects.path).create(memory_limit, disk_limit, disk)
