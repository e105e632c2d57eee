"""Numbers that identify peers, tasks and attempts, their limits, and addresses of agents.

A peer is identified by its incarnation: 63 bits, drawn by the peer at its start. A task is identified by its client's
incarnation and the client's own counter, so that the name stays valid when the scheduler restarts. A route is ZeroMQ's
name of a connection. It changes with every reconnect, so no answer goes to a connection that has missed messages.
"""

INCARNATION_LIMIT = 1 << 63
ATTEMPT_LIMIT = 1 << 31
"""Attempt numbers are lower. Numbers from this one on are rejected, because a counter would overflow on the wire."""
FILE_ID_SHIFT = 48
"""Ids of tasks and objects are below 2^48. The bits above have the version in the name of a file."""
VERSIONS = 1 << 15
NAME_LIMIT = 256
"""The most characters that are kept of the name of a peer or a function. The rest is cut off."""


def file_id(task_id: int, attempt: int) -> int:
    """Return the id under which hosts have the result of this attempt: with it, files of two attempts have different
    names, so a file of an attempt that does not count is never taken for the value."""
    return task_id | attempt % VERSIONS << FILE_ID_SHIFT


def value_id(of_file: int) -> int:
    """Return the id of the task or object whose file has this id."""
    return of_file & (1 << FILE_ID_SHIFT) - 1


def version_of(of_file: int) -> int:
    """Return the version in the id of a file: the number of the attempt, modulo VERSIONS."""
    return of_file >> FILE_ID_SHIFT


class DataAddress:
    """Where host agents get the object files of another agent, or of a client.

    `key` has the hex digits of its CURVE key; empty: it has none. `ticket` is a secret that it wants to see.
    """

    __slots__ = ("address", "key", "ticket")

    def __init__(self, address: str, key: str, ticket: str) -> None:
        self.address = address
        self.key = key
        self.ticket = ticket
