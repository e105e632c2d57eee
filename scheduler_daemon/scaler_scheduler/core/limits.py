"""What the operator may set of the core's behaviour."""


class Limits:
    __slots__ = (
        "client_timeout_seconds",
        "is_protected",
        "memory_limit_bytes",
        "queue_size",
        "task_retries",
        "worker_timeout_seconds",
    )

    def __init__(
        self,
        client_timeout_seconds: float = 60.0,
        worker_timeout_seconds: float = 60.0,
        queue_size: int = 1000,
        task_retries: int = 3,
        memory_limit_bytes: int = 1 << 32,
        is_protected: bool = True,
    ) -> None:
        self.client_timeout_seconds = client_timeout_seconds
        self.worker_timeout_seconds = worker_timeout_seconds
        self.queue_size = queue_size
        self.task_retries = task_retries
        self.memory_limit_bytes = memory_limit_bytes
        self.is_protected = is_protected
        """Whether clients are refused to end the scheduler and its clusters."""
