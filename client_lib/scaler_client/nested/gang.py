"""The gang of a task, as the task sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ..pickling import serializer


class GangMember(Protocol):
    """The part of the worker that a member of a gang uses."""

    @property
    def rank(self) -> int: ...

    @property
    def hosts(self) -> Sequence[str]:
        """The host of each member, by rank."""

    def exchange(self, value: bytes, timeout: float | None) -> Sequence[bytes]:
        """Give a value to all members, and wait for theirs. Returns the values by rank.

        Args:
            value: the bytes.
            timeout: how many seconds to wait; None: no limit.

        Raises:
            TimeoutError: the others have not come in time.
            RuntimeError: a member has ended without this exchange, or an earlier exchange has failed.
            ValueError: the value is too large.
            TaskStoppedError: the task was stopped.
        """


class Gang:
    """The gang that a task is a member of: `current_task().gang`.

    All members must call `barrier` and `all_gather` equally often and in the same order. They hold their workers while
    they wait.
    """

    def __init__(self, member: GangMember) -> None:
        self._member = member

    @property
    def rank(self) -> int:
        """The number of this member, from 0."""
        return self._member.rank

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self._member.hosts)

    @property
    def hosts(self) -> list[str]:
        """The host of each member, by rank. Members of one host have neighbouring ranks."""
        return list(self._member.hosts)

    @property
    def local_rank(self) -> int:
        """The number of this member among those of its host, from 0."""
        hosts = self._member.hosts
        return hosts[: self.rank].count(hosts[self.rank])

    @property
    def local_size(self) -> int:
        """The number of members on this host."""
        hosts = self._member.hosts
        return hosts.count(hosts[self.rank])

    def barrier(self, timeout: float | None = None) -> None:
        """Wait until all members have called this.

        Args:
            timeout: how many seconds to wait; None: no limit.

        Raises:
            TimeoutError: a member has not come in time.
            RuntimeError: a member has called `all_gather` here, or has ended.
        """
        self._check_calls(self._member.exchange(b"", timeout), "barrier")

    def all_gather(self, value: Any, timeout: float | None = None) -> list[Any]:
        """Give a value to all members, and wait for theirs.

        The values go through the scheduler, so they must be small: at most 64 KiB each and 1 MiB together, pickled.

        Args:
            value: a value that can be pickled.
            timeout: how many seconds to wait; None: no limit.

        Returns:
            The values of all members, by rank.

        Raises:
            TimeoutError: a member has not come in time.
            ValueError: the value is too large.
            RuntimeError: a member has called `barrier` here, or has ended.
        """
        values = self._member.exchange(serializer.dumps(value), timeout)
        self._check_calls(values, "all_gather")
        return [serializer.loads(each) for each in values]

    def _check_calls(self, values: Sequence[bytes], own: str) -> None:
        """Check that all members have made the same call. A barrier gives no bytes; a pickle is never empty."""
        for rank, value in enumerate(values):
            other = "all_gather" if value else "barrier"
            if other != own:
                raise RuntimeError(
                    f"member {self.rank} of the gang has called {own}(), and member {rank} {other}(): all members must "
                    f"make the same calls in the same order"
                )

    def __repr__(self) -> str:
        return f"<Gang rank={self.rank} size={self.size}>"
