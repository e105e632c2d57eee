"""Checks what must hold between the tables after every event. For tests and the simulation; too slow for the daemon."""

from collections.abc import Iterable

from scaler_scheduler.core.data.fetches import away_from, has_copies
from scaler_scheduler.core.dispatch.credit import TASK_OVERHEAD
from scaler_scheduler.core.errors import InvariantError
from scaler_scheduler.core.events import CPUS
from scaler_scheduler.core.placement.bookings import Booking, Host
from scaler_scheduler.core.placement.data_placement import MAX_PASSED
from scaler_scheduler.core.scheduler import Scheduler
from scaler_scheduler.core.state.functions import Function
from scaler_scheduler.core.state.records import (
    PAUSE_RESTART_HOLD,
    Client,
    Gang,
    GangTask,
    Lane,
    StoredObject,
    Task,
    Worker,
)
from scaler_scheduler.core.state.transitions import (
    BLOCKED,
    DISPATCHED,
    INTENT_ABANDON,
    NO_INTENT,
    RUNNING,
    STATE_NAMES,
    SUSPENDED,
    WAITING,
)
from scaler_scheduler.core.state.value_states import CACHED, MAKING, PRIMARY, SENT, THERE, VALUE_STATE_NAMES, is_file
from scaler_scheduler.core.tables import Tables
from scaler_scheduler.core.values.copies import state_at


def check(scheduler: Scheduler) -> None:
    """Recount all tables.

    Raises:
        InvariantError: a count or a link between two tables is wrong.
    """
    tables = scheduler.tables
    _check_waiting(scheduler)
    _check_queue(scheduler)
    _check_held(tables)
    _check_shares(tables)
    _check_holdings(scheduler)
    _check_tasks(tables)
    _check_gangs(scheduler)
    _check_functions(tables)
    _check_unclaimed(tables)
    _check_credit(tables)
    _check_objects(tables)
    _check_bytes(tables)
    _check_coming_bytes(scheduler)
    _check_environments(scheduler)


def _expect(name: str, counted: object, kept: object) -> None:
    if counted != kept:
        raise InvariantError(f"{name}: {kept} kept, {counted} counted")


def _check_waiting(scheduler: Scheduler) -> None:
    total = all_further = 0
    for client in scheduler.tables.clients.by_incarnation.values():
        again = 0
        for lane in client.lanes.values():
            rows = sum(len(batch.waiting_rows()) for batch in lane.batches)
            tasks = {task for task in lane.requeued.values() if task.state == WAITING}
            again += len(tasks)
            further = sum([len(batch.waiting_rows()) * (batch.options.weight - 1) for batch in lane.batches])
            further += sum([task.options.weight - 1 for task in tasks])
            _expect(f"further calls of client {client.incarnation} at rank {lane.rank}", further, lane.further_calls)
            all_further += further
            _expect(
                f"waiting tasks of client {client.incarnation} at rank {lane.rank}", rows + len(tasks), lane.waiting
            )
            if lane.waiting and lane.is_queued == bool(client.pause_reasons):
                raise InvariantError(f"client {client.incarnation} at rank {lane.rank} is queued: {lane.is_queued}")
            total += rows + len(tasks)
        if client.pause_reasons & PAUSE_RESTART_HOLD and scheduler.restart_hold.deadline == float("inf"):
            raise InvariantError(f"client {client.incarnation} is held after a restart, without a deadline")
        _expect(f"tasks of client {client.incarnation} that wait again", _waiting(client), again)
        if client.is_gone and (client.lanes or not client.tasks):
            raise InvariantError(f"client {client.incarnation} has left and is still kept")
    _expect("waiting tasks", total, scheduler.counts.waiting)
    _expect("further calls of waiting tasks", all_further, scheduler.counts.further_waiting)


def _waiting(client: Client) -> int:
    return sum(task.state == WAITING for task in client.tasks.values())


def _check_queue(scheduler: Scheduler) -> None:
    core = scheduler.core_state
    for share, queue in core.queues.by_share.items():
        _expect("ranks", sorted(queue.by_rank), queue.ranks)
        for rank, lanes in queue.by_rank.items():
            if not lanes:
                raise InvariantError(f"the queue of share {share.name} at rank {rank} is empty")
            for lane in lanes:
                if not lane.is_queued or lane.rank != rank or lane.client.share is not share:
                    raise InvariantError(f"a lane of client {lane.client.incarnation} stands in the wrong queue")
                if lane.waiting and lane.client.lanes.get(lane.key) is not lane:
                    raise InvariantError(f"a lane of client {lane.client.incarnation} has been forgotten")
    for lane in core.queues.parked:
        if not (lane.is_queued and lane.waiting) or lane.client.lanes.get(lane.key) is not lane:
            raise InvariantError(f"a lane of client {lane.client.incarnation} is parked, and should not")
    known = set(scheduler.tables.workers)
    for worker in [*core.pool.idle, *core.pool.partial, *core.pool.long_running]:
        if worker not in known:
            raise InvariantError(f"worker {worker.incarnation} is gone and stands in the dispatcher's lists")
    known = {
        worker
        for worker in known
        if not (worker.is_retiring or worker.is_unreachable or worker.is_changing or worker.is_holder)
    }
    aside = scheduler.bookings.aside_of
    idle = {worker for worker in known if not worker.task_count and worker not in aside}
    _expect("workers that hold nothing", _incarnations(idle), _incarnations(core.pool.idle))
    ready = {worker for worker in known - idle if worker.is_ready}
    _expect("workers with room", _incarnations(ready), _incarnations(core.pool.partial))


def _incarnations(workers: Iterable[Worker]) -> list[int]:
    return sorted(worker.incarnation for worker in workers)


def check_collected(scheduler: Scheduler) -> None:
    """Check that no task waits that an idle worker could run. Holds after a collect.

    Left out are tasks that wait for a host with their inputs, until their time comes, and tasks that read a file for
    which enough tasks wait.

    Raises:
        InvariantError: such a task waits.
    """
    core, transfers = scheduler.core_state, scheduler.transfers
    for lane in core.queues.parked:
        if not core.hosts.is_hopeless(lane):
            raise InvariantError(
                f"a lane of client {lane.client.incarnation} is parked, and a host has {lane.resources}"
            )
    near_data, now = core.near_data, scheduler.tables.clock.now
    limits = scheduler.task_limits
    passed = 0
    """The waiting tasks of all lanes that may wait: a run of the dispatcher passes over MAX_PASSED at most."""
    neglecting: Worker | None = None
    if core.pool.idle:
        for lane in core.queues.lanes():
            tasks = max(1, lane.gang_size)
            if lane.client.share.room < tasks or (lane.limits and limits.ready_at(lane.limits, tasks) > now):
                continue
            able = [worker for worker in core.pool.idle if worker.can_serve(lane.capabilities, lane.kind)]
            if lane.resources and lane.gang_size:
                continue  # what its members need together is known only when all of it is booked
            if lane.resources:
                is_held = limits.hold_until > now or core.gangs.keeps_resources(lane)
                found = None if is_held else core.hosts.find(lane)
                able = [found] if found is not None else []
            if lane.waiting and not lane.gang_size and (lane.resources or lane.next_may_end_worker):
                # It waits for a successor: it may not run beside suspended tasks, or cpus of the host are missing. If a
                # host has its inputs, it waits for a successor there.
                coming = scheduler.successors.are_coming
                is_bound = bool(lane.resources) or (lane.requeued and has_copies(lane.first_requeued))
                waits = {worker for worker in able if coming(worker) and (worker.has_parents or is_bound)}
                able = [] if is_bound and waits else [worker for worker in able if worker not in waits]
                if is_bound and not lane.resources:
                    able = [worker for worker in able if not away_from(worker, lane.first_requeued)]
            if lane is not core.gangs.lane:
                able = [worker for worker in able if not core.gangs.keeps(worker)]
                if able and lane.resources and not _has_workers_beside_gang(scheduler, able[0].agent, lane):
                    continue
            if len(able) < tasks:
                continue
            hosts = {worker.agent for worker in [*able, *core.pool.partial]}
            all_hosts = {worker.agent for worker in scheduler.tables.workers}
            may_wait = 0
            for task in lane.requeued.values():
                if task.state == WAITING:
                    until = near_data.waits_until.get(task, 0.0)
                    if until >= scheduler.dispatcher.next_wait_at and until > now:
                        may_wait += 1
                        continue
                    # If no idle host has room for its inputs, it goes to any other.
                    has_room = any(not near_data.is_full(task, worker) for worker in able)
                    chosen = hosts if has_room else all_hosts
                    if any(transfers.has_enough_tasks(stored, host) for stored in task.inputs for host in chosen):
                        may_wait += 1
            passed += may_wait
            if lane.waiting > may_wait:
                neglecting = able[0]
    if neglecting is not None and passed < MAX_PASSED:
        raise InvariantError(f"tasks wait while worker {neglecting.incarnation} is idle")


def _check_environments(scheduler: Scheduler) -> None:
    table, functions = scheduler.tables.environments, scheduler.tables.functions
    users: dict[str, int] = {}
    size = 0
    for environment in table:
        named = sum(function.environment == environment.name for function in functions)
        _expect(f"functions of environment {environment.name}", named, environment.functions)
        size += len(environment.manifest)
        for name in environment.contents:
            users[name] = users.get(name, 0) + 1
            if (table.content(name) is None) != (name in environment.missing):
                raise InvariantError(f"content {name} of environment {environment.name} is wrongly known")
    size += sum(len(table.content(name) or b"") for name in users)
    _expect("bytes of environments", size, table.bytes)
    changing = {worker.incarnation for worker in scheduler.tables.workers if worker.is_changing}
    there = {each for each in scheduler.changes.pending() if scheduler.tables.workers.find(each) is not None}
    _expect("workers that change", sorted(changing), sorted(there))


def _check_held(tables: Tables) -> None:
    held = further = 0
    for worker in tables.workers:
        states: list[int] = []
        load = size = 0
        for serial, task in worker.tasks.items():
            _expect("serial number of a held task", serial, task.serial)
            _check_holder(task, worker)
            states.append(task.state)
            load += 0 if task.state == SUSPENDED else task.cost
            size += task.size
            further += task.options.weight - 1
        _expect(f"load of worker {worker.incarnation}", load, worker.load_ns)
        _expect(f"payload bytes of worker {worker.incarnation}", size, worker.payload_bytes)
        _expect(f"running tasks of worker {worker.incarnation}", states.count(RUNNING), worker.running)
        _expect(f"suspended tasks of worker {worker.incarnation}", states.count(SUSPENDED), worker.suspended)
        for task in worker.started_at:
            if task.worker is not worker or task.state not in (RUNNING, SUSPENDED):
                raise InvariantError(f"worker {worker.incarnation} has a start time for a task that it does not run")
        held += len(worker.tasks)
    _expect("dispatched tasks", held, tables.counts.dispatched)
    _expect("further calls of dispatched tasks", further, tables.counts.further_dispatched)


def _check_shares(tables: Tables) -> None:
    shares = tables.clients.shares
    counted = {share: [0, 0, 0, 0] for share in shares}
    for client in tables.clients.by_incarnation.values():
        counted[client.share][0] += 1
        counted[client.share][3] += not client.is_gone and not client.worker
    for worker in tables.workers:
        for task in worker.tasks.values():
            if task.state != SUSPENDED:
                counted[task.client.share][1] += 1
                counted[task.client.share][2] += task.cost
    for share, (clients, held, held_ns, owners) in counted.items():
        _expect(f"clients of share {share.name}", clients, share.client_count)
        _expect(f"clients of share {share.name} that are not nested", owners, share.owner_count)
        _expect(f"held tasks of share {share.name}", held, share.held)
        _expect(f"expected time of share {share.name}", held_ns, share.held_ns)


def _check_holdings(scheduler: Scheduler) -> None:
    """Every attempt at a worker has the tokens and resources that it needs, and nothing else is counted."""
    limits, tables, bookings = scheduler.task_limits, scheduler.tables, scheduler.bookings
    used = dict.fromkeys(limits.by_name.values(), 0)
    held: dict[Booking, int] = {}
    for incarnation, holdings in scheduler.holdings.held.items():
        worker = tables.workers.find(incarnation)
        if worker is None or not holdings or not all(holding.ids for holding in holdings):
            raise InvariantError(f"worker {incarnation} is gone and holds tokens of limits or resources")
        names = [(holding.client, task_id, holding.attempt) for holding in holdings for task_id in holding.ids]
        if len(set(names)) < len(names):
            raise InvariantError(f"an attempt holds twice at worker {incarnation}")
        for holding in holdings:
            for limit in holding.limits:
                used[limit] += len(holding.ids)
            if holding.booking is not None:
                held[holding.booking] = held.get(holding.booking, 0) + len(holding.ids)
                if holding.booking.host is not bookings.hosts.get(worker.agent):
                    raise InvariantError(f"worker {incarnation} holds resources of another host")
    for limit, count in used.items():
        _expect(f"tokens of limit {limit.name}", count, limit.used)
    for host in bookings.hosts.values():
        for booking in host.bookings:
            _expect(f"attempts of booking {booking.number}", held.pop(booking, 0), booking.attempts)
        _check_host(host, scheduler)
    if held:
        raise InvariantError(f"attempts hold booking {next(iter(held)).number}, which no host has")
    for worker in tables.workers:
        for task in worker.tasks.values():
            name = task.client.incarnation, task.id, task.attempt
            found = scheduler.holdings.find(worker.incarnation, name)
            if task.options.limits and (found is None or len(found.limits) < len(task.options.limits)):
                raise InvariantError(f"task {name} is at a worker without the tokens of its limits")
            is_released = task.options.release_resources and task.state != DISPATCHED
            if task.options.resources and not is_released and (found is None or found.booking is None):
                raise InvariantError(f"task {name} is at a worker without the resources that it asks for")


def _check_host(host: Host, scheduler: Scheduler) -> None:
    """Nothing of the host is booked twice or lost."""
    core, bookings = scheduler.core_state, scheduler.bookings
    name = f"host of agent {host.agent}"
    used: dict[str, int] = dict.fromkeys(host.pools, 0)
    units: dict[str, dict[int, int]] = {each: {} for each in host.pools}
    further = 0
    for booking in host.bookings:
        further += 0 if booking.is_suspended else booking.cpus
        if not booking.attempts:
            raise InvariantError(f"{name} has booking {booking.number}, which no attempt holds")
        for resource, amount in booking.resources:
            if resource != CPUS:
                used[resource] += amount
                parts = booking.parts.get(resource, ())
                for unit, part in parts:
                    units[resource][unit] = units[resource].get(unit, 0) + part
                if host.pools[resource].has_ids and not booking.is_restored:
                    _expect(f"parts of {resource} of booking {booking.number}", sum(part for _, part in parts), amount)
    _expect(f"further workers of {name}", further, host.further)
    for resource, pool in host.pools.items():
        _expect(f"{resource} of {name}", used[resource], pool.used)
        _expect(f"units of {resource} of {name}", units[resource], pool.units)
        if pool.is_exceeded and not host.may_exceed:
            raise InvariantError(f"{resource} of {name} is booked twice: {pool.used} of {pool.total}, {pool.units}")
    for worker in host.aside:
        if worker.task_count or worker.is_ready or bookings.aside_of.get(worker) is not host:
            raise InvariantError(f"worker {worker.incarnation} is set aside, and is not idle")
    if host not in bookings.unsettled and not bookings.reservations:
        if len(host.aside) > host.further:
            raise InvariantError(f"{name} has {len(host.aside)} workers aside for {host.further}")
        idle = list(core.pool.idle.of_agent(host.agent))
        if len(host.aside) < host.further and idle:
            raise InvariantError(f"{name} lacks workers to set aside, and worker {idle[0].incarnation} is idle")
    if host.reservation is not None and bookings.reservations.get(host.reservation.lane) is not host.reservation:
        raise InvariantError(f"{name} has a reservation that is not in the table")


def _check_holder(task: Task, worker: Worker) -> None:
    name = f"task {task.client.incarnation}/{task.id}"
    if task.worker is not worker or task.state not in (DISPATCHED, RUNNING, SUSPENDED):
        raise InvariantError(f"{name} is held while {STATE_NAMES[task.state]}")
    if task.client.tasks.get(task.id) is not task:
        raise InvariantError(f"{name} is held and unknown to its client")
    if task.state == DISPATCHED and task.function not in worker.functions:
        raise InvariantError(f"worker {worker.incarnation} holds a task of a function it was not sent")
    if task.client.is_gone != (task.intent == INTENT_ABANDON):
        raise InvariantError(f"{name} is held with intent {task.intent}; its client has left: {task.client.is_gone}")


def _check_tasks(tables: Tables) -> None:
    timers = 0
    for client in tables.clients.by_incarnation.values():
        for task in client.tasks.values():
            name = f"task {client.incarnation}/{task.id}"
            holder = task.worker
            timers += task.timer is not None
            if (holder is None) != (task.state in (WAITING, BLOCKED)):
                raise InvariantError(f"{name} is {STATE_NAMES[task.state]} on {holder}")
            if holder is not None and holder.tasks.get(task.serial) is not task:
                raise InvariantError(f"{name} is not in its worker's table")
            if holder is None and (task.intent != NO_INTENT or task.is_retracting or task.is_stopping or task.timer):
                raise InvariantError(f"{name} waits, and still has an intent, a request or a timer")
            if task.intent != NO_INTENT and not task.is_retracting and not task.is_stopping:
                raise InvariantError(f"{name} has intent {task.intent}, and its worker was not asked")
            if task.is_stopping and task.timer is None:
                raise InvariantError(f"{name} is being stopped, and has no timer")
    _expect("timers", timers, len(tables.timers))


def _check_gangs(scheduler: Scheduler) -> None:
    """Check that all members of each gang are there: at a worker, or with a result that waits for the others."""
    members: dict[Gang, int] = {}
    for client in scheduler.tables.clients.by_incarnation.values():
        for task in client.tasks.values():
            gang = task.gang
            if gang is None:
                if isinstance(task, GangTask) and (task.rank or task.worker is not None):
                    raise InvariantError(f"member {task.rank} of gang {client.incarnation}/{task.id} has no gang")
                continue
            members[gang] = members.get(gang, 0) + (task.worker is not None)
            if (
                gang.moving
                or client.tasks.get(gang.lead.id) is not gang.lead
                or gang.members[task.id - gang.lead.id] is not task
            ):
                raise InvariantError(f"task {client.incarnation}/{task.id} is no member of its gang")
            if task.worker is None and task is not gang.lead:
                raise InvariantError(f"member {client.incarnation}/{task.id} of a gang is kept, and no worker holds it")
    for gang, held in members.items():
        name = f"gang {gang.lead.client.incarnation}/{gang.lead.id}"
        _expect(f"members of {name} at workers", held, gang.held)
        done = sum(result is not None for result in gang.results)
        if not gang.is_broken and held + done != len(gang.members):
            raise InvariantError(f"{name} goes on with {held} members at workers and {done} results")
    reservation = scheduler.core_state.gangs
    if reservation.held_back:
        raise InvariantError("workers are held back for a gang between runs of the dispatcher")


def _check_functions(tables: Tables) -> None:
    counted: dict[Function, int] = dict.fromkeys(tables.functions, 0)
    further: dict[Function, int] = dict.fromkeys(tables.functions, 0)
    for client in tables.clients.by_incarnation.values():
        of_client = 0
        rows = [
            (batch.function_at(row), batch.options)
            for lane in client.lanes.values()
            for batch in lane.batches
            for row in batch.waiting_rows()
        ]
        for function, options in [*rows, *[(task.function, task.options) for task in client.tasks.values()]]:
            counted[function] += 1
            further[function] += options.weight - 1
            of_client += options.weight - 1
        _expect(f"further calls of client {client.incarnation}", of_client, client.further_calls)
    for function, count in counted.items():
        _expect(f"tasks of function {function.number}", count, function.tasks)
        _expect(f"further calls of function {function.number}", further[function], function.further_calls)


def _check_unclaimed(tables: Tables) -> None:
    counted: dict[Worker, int] = {}
    for (name, task_id), unclaimed in tables.unclaimed.items():
        counted[unclaimed.worker] = counted.get(unclaimed.worker, 0) + (not unclaimed.is_suspended)
        client = tables.clients.find(name)
        task = None if client is None else client.tasks.get(task_id)
        # The attempts may differ: an old copy is being stopped on the worker that got the task again.
        if task is not None and task.worker is unclaimed.worker and task.attempt == unclaimed.attempt:
            raise InvariantError(f"task {name}/{task_id} is held and unclaimed")
    known = set(tables.workers)
    for worker in known:
        _expect(f"unclaimed tasks of worker {worker.incarnation}", counted.pop(worker, 0), worker.unclaimed)
    if counted:
        raise InvariantError("tasks are unclaimed on a worker that is gone")


def _check_credit(tables: Tables) -> None:
    for client in tables.clients:
        if not 0 <= client.received_bytes <= client.sent_bytes:
            raise InvariantError(
                f"client {client.incarnation} has acknowledged {client.received_bytes} of {client.sent_bytes} bytes"
            )
        objects = client.objects.values()
        held = sum([stored.size + TASK_OVERHEAD for stored in objects if stored.is_from_client]) if objects else 0
        _expect(f"bytes of objects of client {client.incarnation}", held, client.object_bytes)


def _check_objects(tables: Tables) -> None:
    clients = tables.clients.by_incarnation.values()
    readers: dict[StoredObject, int] = {stored: 0 for client in clients for stored in client.objects.values()}
    _expect("objects", len(readers), len(tables.objects))
    blocked = {stored: stored.blocked_tasks for stored in readers}
    for client in clients:
        waits = sum([len(blocked[stored]) for stored in client.objects.values()])
        _expect(f"entries of blocked tasks of client {client.incarnation}", waits, len(client.blocked))
        for task in client.tasks.values():
            name = f"task {client.incarnation}/{task.id}"
            # otherwise its client was lost, and its objects are removed
            is_here = all(stored in blocked for stored in task.inputs)
            missing = sum(stored.is_missing for stored in task.inputs)
            if task.state == BLOCKED or (task.worker is not None and is_here):
                missing = sum(blocked[stored].count(task) for stored in set(task.inputs) if stored in blocked)
            elif task.worker is not None:
                missing = task.missing_inputs  # the missing inputs are gone
            if missing != (task.missing_inputs if task.state == BLOCKED or task.worker is not None else 0):
                raise InvariantError(f"{name} is {STATE_NAMES[task.state]} and misses {missing} inputs")
            for stored in task.inputs:
                if stored in readers:
                    readers[stored] += 1
    for stored, count in readers.items():
        name = f"object {stored.client.incarnation}/{stored.id}"
        _expect(f"readers of {name}", count, stored.readers)
        if not stored.is_needed:
            raise InvariantError(f"{name} is kept, and is not needed")
        if (stored.producer is not None) != (stored.state == MAKING):
            raise InvariantError(f"{name} is {VALUE_STATE_NAMES[stored.state]} by {stored.producer}")
        if (stored.frames is not None or stored.home is not None) != (stored.state == THERE):
            raise InvariantError(f"{name} is {VALUE_STATE_NAMES[stored.state]} at {stored.home}")
        home = stored.home
        if home not in (None, stored.client.place) and tables.agents.find(home.incarnation) is not home:
            raise InvariantError(f"{name} is at agent {home.incarnation}, which is gone")
        if stored.frames is not None and stored.is_blocking:
            raise InvariantError(f"{name} is here, and tasks wait for it")
        copies = stored.copies or {}
        primary = [place for place, state in copies.items() if state == PRIMARY]
        if primary != ([] if stored.home is None else [stored.home]):
            raise InvariantError(f"{name} has {len(primary)} primary copies, and its home is another")
        if stored.home is None and any(map(is_file, copies.values())):
            raise InvariantError(f"{name} is a file of a host and has no primary copy")
        for place in copies:
            if stored not in place.objects:
                raise InvariantError(f"{name} is at agent {place.incarnation}, which does not know it")
        if stored.client.is_gone or stored.client.objects.get(stored.id) is not stored:
            raise InvariantError(f"{name} is kept, and its client does not know it")
        for worker in stored.workers or ():
            if stored not in worker.objects:
                raise InvariantError(f"{name} is at worker {worker.incarnation}, which does not know it")


def _check_bytes(tables: Tables) -> None:
    payload = objects = 0
    for client in tables.clients.by_incarnation.values():
        for lane in client.lanes.values():
            payload += sum(batch.size_of(row) for batch in lane.batches for row in batch.waiting_rows())
        payload += sum([task.size for task in client.tasks.values()])
        objects += sum([stored.size for stored in client.objects.values() if stored.frames is not None])
    _expect("payload bytes of open tasks", payload, tables.counts.payload_bytes)
    _expect("bytes of objects", objects, tables.objects.bytes)


def _check_coming_bytes(scheduler: Scheduler) -> None:
    coming: dict[int, int] = {}
    for transfer in scheduler.transfers:
        target = transfer.target.incarnation
        coming[target] = coming.get(target, 0) + transfer.stored.size
    for agent in scheduler.tables.agents:
        _expect("bytes of copies of a host", sum(agent.copies.values()), agent.room.copied)
        for stored in agent.copies:
            if state_at(stored, agent) not in (SENT, CACHED):
                raise InvariantError(f"object {stored.id} is no copy of agent {agent.incarnation}")
        _expect("bytes on their way to a host", coming.get(agent.incarnation, 0), agent.room.coming)


def _has_workers_beside_gang(scheduler: Scheduler, agent: int, lane: Lane) -> bool:
    """Whether a host has as many idle workers as the lane's next task takes, without those that a gang may keep."""
    host = scheduler.bookings.hosts[agent]
    free = [
        each for each in scheduler.core_state.pool.idle.of_agent(agent) if not scheduler.core_state.gangs.keeps(each)
    ]
    is_reserved = host.reservation is not None and host.reservation.lane is lane
    aside = len(host.aside) - host.further if is_reserved else 0
    return len(free) + aside >= host.slots_for(lane.resources)
