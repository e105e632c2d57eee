"""The objects that nearly every part of the core uses, held in one place.

The constructor of a part takes a `CoreState` and the few other parts that it calls.
"""

from scaler_scheduler.core.data.fetches import Fetches
from scaler_scheduler.core.data.spare_copies import SpareCopies
from scaler_scheduler.core.data.transfers import Transfers
from scaler_scheduler.core.dispatch.dispatch_writer import DispatchWriter
from scaler_scheduler.core.dispatch.dispatcher import Dispatcher
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.placement.bookings import Bookings
from scaler_scheduler.core.placement.data_placement import DataPlacement
from scaler_scheduler.core.placement.gang_reservation import GangReservation
from scaler_scheduler.core.placement.holdings import Holdings
from scaler_scheduler.core.placement.host_choice import HostChoice
from scaler_scheduler.core.placement.near_data import NearData
from scaler_scheduler.core.placement.placement import Placement
from scaler_scheduler.core.placement.share_queue import ShareQueues
from scaler_scheduler.core.placement.task_limits import TaskLimits
from scaler_scheduler.core.placement.worker_pool import WorkerPool
from scaler_scheduler.core.state.operator_log import OperatorLog
from scaler_scheduler.core.tables import Tables


class CoreState:
    """The tables, the outbox, the queues of waiting tasks, the workers with room, the policies of placement, the
    dispatcher and its writer, the limits, what attempts hold, and the operator log of one scheduler."""

    __slots__ = (
        "bookings",
        "dispatcher",
        "fetches",
        "gangs",
        "holdings",
        "hosts",
        "incarnation",
        "limits",
        "near_data",
        "operator_log",
        "outbox",
        "placement",
        "pool",
        "queues",
        "spare_copies",
        "tables",
        "task_limits",
        "transfers",
        "writer",
    )

    def __init__(self, limits: Limits, now: float, incarnation: int) -> None:
        """Make the objects of one scheduler.

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
        self.operator_log = OperatorLog()
        self.task_limits = TaskLimits(tables, incarnation)
        self.bookings = bookings = Bookings(tables, incarnation)
        self.holdings = Holdings(self.task_limits, bookings, tables.clock)
        self.writer = DispatchWriter(outbox, tables, self.holdings, limits)
        self.transfers = transfers = Transfers(outbox, self.operator_log, tables.clock)
        self.spare_copies = SpareCopies(tables, transfers, outbox)
        self.fetches = Fetches(tables.counts, transfers, self.spare_copies, outbox)
        self.queues = ShareQueues(tables.counts, tables.clock)
        self.pool = pool = WorkerPool(bookings, self.queues)
        self.near_data = NearData(tables, transfers, self.spare_copies)
        self.gangs = GangReservation(pool, tables.workers, bookings, limits.has_common_ranks)
        self.hosts = HostChoice(tables, bookings, self.task_limits, pool)
        data = DataPlacement(tables, pool, self.hosts, self.near_data, transfers, self.fetches)
        self.placement = Placement(
            tables,
            pool,
            task_limits=self.task_limits,
            bookings=bookings,
            hosts=self.hosts,
            gangs=self.gangs,
            near_data=self.near_data,
            data=data,
            fetches=self.fetches,
            queue_size=limits.queue_size,
        )
        self.dispatcher = Dispatcher(
            outbox,
            tables,
            self.writer,
            queues=self.queues,
            pool=pool,
            placement=self.placement,
            data=data,
            hosts=self.hosts,
            gangs=self.gangs,
            near_data=self.near_data,
            spare_copies=self.spare_copies,
            bookings=bookings,
            holdings=self.holdings,
            limits=limits,
        )
