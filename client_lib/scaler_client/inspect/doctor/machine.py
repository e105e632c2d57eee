"""Checks of one machine: interpreter, limit of open files, shared memory. They need no scheduler.

A worker makes the same checks: what it measures is `HostFacts`, and travels as a dict.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec

import zmq

from ... import __version__
from ...commands.object_files import SHARED_MEMORY
from ...commands.options import interpreter
from ...monitor.text_layout import size
from ...net.file_limit import file_shortage
from ...protocol.messages import PROTOCOL_VERSION
from .report import Check, error, ok, warning

MIN_OPEN_FILES = 1024
"""With fewer, a program with several clients or a worker with many files soon has none left."""

MIN_SHARED_BYTES = 256 << 20
"""Docker's containers have 64 MiB."""

MIN_FREE_SHARE = 0.1

NO_LIMIT = -1
UNKNOWN = -2


@dataclass(frozen=True)
class HostFacts:
    """What a machine has."""

    open_files: int
    """How many files the process may open; NO_LIMIT; UNKNOWN."""
    shared_bytes: int
    """The size of /dev/shm; UNKNOWN: there is none."""
    shared_free_bytes: int


def measure() -> HostFacts:
    """Measure this machine."""
    limit, shared, free = UNKNOWN, UNKNOWN, 0
    try:
        import resource  # not on Windows

        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        limit = NO_LIMIT if limit == resource.RLIM_INFINITY else limit
        found = os.statvfs(SHARED_MEMORY)
        shared, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
    except (ImportError, OSError):
        pass
    return HostFacts(limit, shared, free)


def can_be_client() -> bool:
    """Whether this interpreter has the library by which clients read and write messages."""
    try:
        return find_spec("capnp") is not None
    except ValueError:
        return False


def check_machine() -> Iterator[Check]:
    """Check the machine and the process of this command."""
    text = f"scaler_client {__version__}, {interpreter()}, ZeroMQ {zmq.zmq_version()}, protocol {PROTOCOL_VERSION}"
    if can_be_client():
        yield ok("this program", text)
    else:  # programs that only watch a scheduler run without it
        advice = "install scaler_client with what it requires, under CPython"
        yield error("this program", f"{text}; pycapnp is missing, which every client needs", advice)
    facts = measure()
    shortage = file_shortage()
    if shortage:
        yield error("open files", shortage, "raise the limit: ulimit -n 65536")
    else:
        yield check_open_files("this process", facts.open_files)
    yield check_shared_memory("this machine", facts)


def check_open_files(who: str, limit: int) -> Check:
    """Check the limit of open files.

    Args:
        who: whose limit, for example "workers on node-7".
        limit: the limit; NO_LIMIT; UNKNOWN.
    """
    if limit in (NO_LIMIT, UNKNOWN):
        return ok("open files", f"{who}: {'no limit' if limit == NO_LIMIT else 'this system tells no limit'}")
    text = f"{who}: at most {limit:,}"
    if limit < MIN_OPEN_FILES:
        return warning("open files", text, "raise the limit: ulimit -n 65536, or LimitNOFILE= in a unit")
    return ok("open files", text)


def check_shared_memory(who: str, facts: HostFacts) -> Check:
    """Check the size of shared memory, where large values are kept.

    Args:
        who: whose, for example "node-7".
        facts: of that machine.
    """
    name = "shared memory"
    if facts.shared_bytes == UNKNOWN:
        text = f"{who}: {SHARED_MEMORY} is missing, so large values are files in the folder of temporary files"
        return warning(name, text, f"mount a tmpfs at {SHARED_MEMORY}")
    text = f"{who}: {SHARED_MEMORY} has {size(facts.shared_bytes)}, {size(facts.shared_free_bytes)} are free"
    if facts.shared_bytes < MIN_SHARED_BYTES:
        advice = (
            "give it more: docker run --shm-size=4g, a memory-backed emptyDir in Kubernetes, or mount -o remount,size="
        )
        return warning(name, text, advice)
    if facts.shared_free_bytes < MIN_FREE_SHARE * facts.shared_bytes:
        return warning(name, text, f"look what fills it: du -sh {SHARED_MEMORY}/*")
    return ok(name, text)
