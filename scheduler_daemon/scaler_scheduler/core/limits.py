"""The settings of the core that the operator can change."""

from dataclasses import dataclass

MOST_MEMBERS = 1024
"""The largest gang."""


@dataclass(frozen=True)
class LimitSettings:
    """What the operator allows the tasks that name one limit, in the whole cluster."""

    most: int = 0
    """Tasks that run at once; 0: any number."""
    per_second: float = 0.0
    """Tasks that begin in a second; 0: any number."""


def rate_in_words(per_second: float) -> tuple[str, str]:
    """Return a rate as a number and a unit of time that suits it: `1` and `hour` for 1/3600, `50` and `second`."""
    for seconds, name in ((1, "second"), (60, "minute")):
        if per_second * seconds >= 1:
            return f"{per_second * seconds:g}", name
    return f"{per_second * 3600:g}", "hour"


class Limits:
    """The limits of one scheduler. Times are in seconds, sizes in bytes."""

    __slots__ = (
        "batch_rows",
        "client_functions",
        "client_object_bytes",
        "client_objects",
        "client_tasks",
        "client_timeout_seconds",
        "environment_bytes",
        "has_common_ranks",
        "hellos_a_second",
        "is_protected",
        "memory_limit_bytes",
        "message_size",
        "peers",
        "queue_size",
        "task_retries",
        "worker_timeout_seconds",
    )

    def __init__(
        self,
        *,
        client_timeout_seconds: float = 60.0,
        worker_timeout_seconds: float = 60.0,
        queue_size: int = 1000,
        task_retries: int = 3,
        memory_limit_bytes: int = 1 << 32,
        is_protected: bool = True,
        batch_rows: int = 1 << 20,
        client_tasks: int = 1 << 40,
        client_objects: int = 1_000_000,
        client_object_bytes: int = 1 << 50,
        client_functions: int = 100_000,
        environment_bytes: int = 1 << 30,
        peers: int = 100_000,
        hellos_a_second: int = 10_000,
        message_size: int = 0,
        has_common_ranks: bool = False,
    ) -> None:
        self.client_timeout_seconds = client_timeout_seconds
        self.worker_timeout_seconds = worker_timeout_seconds
        self.queue_size = queue_size
        self.task_retries = task_retries
        self.memory_limit_bytes = memory_limit_bytes
        self.is_protected = is_protected
        """Whether a client's request to end the scheduler and its clusters is refused."""
        self.batch_rows = batch_rows
        """The most rows of one message."""
        self.client_tasks = client_tasks
        """The most open tasks of one client. The next three limit its objects, the bytes of the objects that it sent,
        and its functions."""
        self.client_objects = client_objects
        self.client_object_bytes = client_object_bytes
        self.client_functions = client_functions
        self.environment_bytes = environment_bytes
        """The most bytes of the environments of all clients."""
        self.peers = peers
        """The most clients, workers and host agents together."""
        self.hellos_a_second = hellos_a_second
        self.has_common_ranks = has_common_ranks
        """Whether tasks of higher rank go first across shares, and not only within each."""
        self.message_size = message_size
        """The most bytes of a frame that a peer may send, as told in the welcome. 0: no limit."""
