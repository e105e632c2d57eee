"""The objects that nearly every part of the core uses, held in one place.

The constructor of a part takes a `CoreState` and the few other parts that it calls.
"""

from scaler_scheduler.core.dispatch.bookings import Bookings
from scaler_scheduler.core.dispatch.dispatch_writer import DispatchWriter
from scaler_scheduler.core.dispatch.dispatcher import Dispatcher
from scaler_scheduler.core.dispatch.holdings import Holdings
from scaler_scheduler.core.dispatch.outbox import Outbox
from scaler_scheduler.core.dispatch.task_limits import TaskLimits
from scaler_scheduler.core.dispatch.transfers import Transfers
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.state.operator_log import OperatorLog
from scaler_scheduler.core.tables import Tables


class CoreState:
    """The tables, the outbox, the dispatcher, its writer, the transfers between hosts, the limits, what attempts hold,
    and the operator log of one scheduler."""

    __slots__ = (
        "bookings",
        "dispatcher",
        "holdings",
        "incarnation",
        "limits",
        "operator_log",
        "outbox",
        "tables",
        "task_limits",
        "transfers",
        "writer",
    )

    def __init__(self, limits: Limits, now: float, incarnation: int) -> None:
        """Make the tables, the outbox and the dispatcher of one scheduler.

        Args:
            limits: the operator's settings.
            now: seconds of the monotonic clock.
            incarnation: the scheduler's own.
        """
        self.limits = limits
        self.tables = tables = Tables(now)
        tables.environments.limit_bytes = limits.environment_bytes
        self.outbox = outbox = Outbox()
        self.incarnation = incarnation
        self.task_limits = TaskLimits(tables, incarnation)
        self.bookings = Bookings(tables, incarnation)
        self.holdings = Holdings(self.task_limits, self.bookings, tables.clock)
        self.writer = DispatchWriter(outbox, tables, self.holdings, limits)
        self.operator_log = OperatorLog()
        self.transfers = Transfers(outbox, self.operator_log, tables.clock)
        self.dispatcher = Dispatcher(
            outbox,
            tables,
            self.writer,
            task_limits=self.task_limits,
            bookings=self.bookings,
            holdings=self.holdings,
            transfers=self.transfers,
            queue_size=limits.queue_size,
            has_common_ranks=limits.has_common_ranks,
        )
