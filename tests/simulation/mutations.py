"""Deliberate faults in the core, and in how clients and workers handle objects and maps.

Each is a small change of the source. They show that the simulation finds such faults.
"""

from __future__ import annotations

from tests.simulation.mutation import Mutation

from scaler_client.api import map_run
from scaler_client.futures import open_graphs
from scaler_client.pickling import call_rows
from scaler_client.session import (
    backlog,
    cancels,
    graph_recovery,
    held_objects,
    kept_values,
    map_feed,
    open_tasks,
    submit_queue,
    task_inputs,
)
from scaler_client.session import session as client_session
from scaler_scheduler.core import scheduler, submissions, unread_answers
from scaler_scheduler.core import tables as state_tables
from scaler_scheduler.core.completion import (
    agent_wait,
    attempt_end,
    cancellation,
    gangs,
    graphs,
    host_results,
    results,
    suspension,
    takeover,
    task_end,
    transfer_end,
)
from scaler_scheduler.core.data import spare_copies, transfers
from scaler_scheduler.core.dispatch import credit, dispatch_writer, dispatcher, followers, work_stealing
from scaler_scheduler.core.environments import worker_changes
from scaler_scheduler.core.peers import leases, nested_hello, peer_loss, reattach, restart_hold, successors, welcome
from scaler_scheduler.core.placement import (
    bookings,
    data_placement,
    gang_reservation,
    holdings,
    host_choice,
    near_data,
    placement,
    task_limits,
)
from scaler_scheduler.core.state import functions, records, resource_pools
from scaler_scheduler.core.state import workers as worker_tables
from scaler_scheduler.core.values import objects
from scaler_worker import sent_answers
from scaler_worker.agent import environments as agent_environments
from scaler_worker.agent import worker_table
from scaler_worker.worker import interruption, runner, task_host
from scaler_worker.worker import session as worker_session

MUTATIONS = (
    Mutation(
        "do not ask the client for a result in its file that another task reads",
        graphs.Graphs, "_hand_over", "if stored.is_needed:", "if False:",
    ),
    Mutation(
        "remove the files of results whose tasks are open",
        client_session.Session, "_send_heartbeat", "self.tasks.is_known", "lambda _: False",
    ),
    Mutation(
        "forget results in files of clients that come before their clients",
        results.ResultHandler, "_keep_early", "outcome in (OUTCOME_STORED, OUTCOME_FILE)", "outcome == OUTCOME_STORED",
    ),
    Mutation(
        "answer no result in a file of its client again when the scheduler restarts",
        sent_answers, "is_final", "outcome in VALUES", "outcome == Outcome.STORED",
    ),
    Mutation(
        "send no small kept result to its client",
        graphs.Graphs, "complete", "len(payload) < LARGE_BYTES", "False",
    ),
    Mutation(
        "run a kept result again that the client has",
        task_inputs.TaskInputs, "send_wanted", " and not stored.frames", "",
    ),
    Mutation(
        "give up kept results while hellos wait after a restart",
        takeover.Takeover, "check", "if is_held and self._claimed:", "if False:",
    ),
    Mutation(
        "keep the names of files of hosts that have left",
        takeover.Takeover, "agent_left", "list(self._offers.items())", "()",
    ),
    Mutation(
        "never remove the files of results that do not count",
        client_session.Session, "_send_heartbeat", "self.objects.files.remove_results(self.tasks.is_known)", "pass",
    ),
    Mutation(
        "count no attempt of suspended tasks whose process dies",
        peer_loss.PeerLoss, "worker_died", "for task in _begun(worker, running):",
        "for task in [] if running is None else [running]:",
    ),
    Mutation(
        "count no attempt of tasks whose suspension is not known when their process dies",
        peer_loss, "_begun", "task.state != DISPATCHED or task.options.weight == 1", "task.state == SUSPENDED",
    ),
    Mutation(
        "run tasks with a time limit beside suspended tasks",
        placement.Placement, "place", "and worker.has_parents and lane.next_may_end_worker", "and False",
    ),
    Mutation(
        "do not wait for workers whose tasks their agents name",
        restart_hold.RestartHold, "release", "and any(awaited)", "and False",
    ),
    Mutation(
        "run what has ended a process beside suspended tasks",
        scheduler.Scheduler, "_worker_died",
        "self.tables.functions.note_end_of_worker(running.function)", "pass",
    ),
    Mutation(
        "keep rows with a time limit that came before a suspension",
        worker_session.WorkerSession, "_clashes", "return True", "return False",
    ),
    Mutation(
        "let a task wait for a successor that does not come",
        successors.Successors, "find",
        "self._change(agent, worker, effects.CHANGE_BESIDE)", "self._coming[-1] = (worker, 1e9)",
    ),
    Mutation(
        "remove the file of an early result when its worker says hello again",
        reattach.Reattach, "_keep_early", "there is not None and there.results is not None", "False",
    ),
    Mutation(
        "remove files that came for the scheduler of before",
        scheduler.Scheduler, "_transferred",
        "self._takeover.take(agent, self._transfer_end.transferred(agent, event))",
        "for name in self._transfer_end.transferred(agent, event):\n"
        "            self._host_results.discard_unless_needed(agent, name)",
    ),
    Mutation(
        "start a task anew that runs already when its last input comes",
        scheduler.Scheduler, "collect", "if self._graphs.ready:", "if False:",
    ),
    Mutation(
        "wait for ever for a successor that was lost",
        successors.Successors, "_check_host", "now >= short_since + START_SECONDS", "False",
    ),
    Mutation(
        "end holders that have suspended tasks",
        successors.Successors, "_check_host", "if holder.tasks or self._has_suspended(holder):", "if False:",
    ),
    Mutation(
        "give the slot of a holder to further tasks",
        successors.Successors, "find", "worker.is_holder = True\n    self._coming", "self._coming",
    ),
    Mutation(
        "take tasks that have begun from a worker that does not answer",
        work_stealing, "queued_tasks", "takewhile(", "filter(",
    ),
    Mutation(
        "lose nested clients whose process is kept busy",
        leases.Leases, "expire", "tables.workers.find(client.worker) if client.worker else None", "None",
    ),
    Mutation(
        "say goodbye for suspended tasks of a damaged process",
        worker_session.WorkerSession, "close", "if not (is_damaged and self.suspended):", "if True:",
    ),
    Mutation(
        "with keys, reject what a task submits if the scheduler learns of its end first",
        nested_hello.NestedHellos,
        "check_submit",
        "now >= client.parent_until",
        "not self._has_parent(client.worker)",
    ),
    Mutation(
        "send a task of a high priority before what it reads",
        submit_queue.SubmitQueue, "add", "entry.priority < priority", "False",
    ),
    Mutation(
        "let a batch that waits say which results of sent tasks are kept",
        backlog.Backlog, "add", "if batch.keep_earlier:", "if False:",
    ),
    Mutation(
        "take tasks that wait for credit for sent ones",
        backlog.Backlog, "has_sent", "and not self.waits(task_id)", "",
    ),
    Mutation(
        "dispatch the members of a gang one by one",
        gang_reservation.GangReservation, "choose", "return None", "return chosen or None",
    ),
    Mutation(
        "let members of a gang go on when one has failed",
        gangs.Gangs, "_break", "self.broken.append(gang)", "pass",
    ),
    Mutation(
        "answer a gang that has lost a member with the results that there are",
        gangs.Gangs, "_finish", "if not gang.is_broken:", "if gang.verdict is None:",
    ),
    Mutation(
        "answer a gang with the failure of a member that was stopped",
        gangs.Gangs, "end_with_result", "elif intent >= INTENT_FORCE:", "elif False:",
    ),
    Mutation(
        "attach single members of a gang after a restart of the scheduler",
        reattach.Reattach, "match_batch", "if batch.options.gang_size:", "if False:",
    ),
    Mutation(
        "do not tell members that wait that another one has ended",
        gangs.Gangs, "end_with_result", "if gang.values and task.rank not in gang.values:", "if False:",
    ),
    Mutation(
        "do not tell a member that another one has ended before",
        gangs.Gangs, "exchange", "elif gang.held < len(gang.members):", "elif False:",
    ),
    Mutation(
        "leave tasks parked when a host with their resources joins",
        dispatcher.Dispatcher, "run", "self._queues.unpark()", "pass",
    ),
    Mutation(
        "keep a reservation for a gang that waits no longer",
        gang_reservation.GangReservation, "check", "self.cancel()", "pass",
    ),
    Mutation(
        "give what was kept for a task to those of lower ranks first",
        dispatcher.Dispatcher, "_goes_on", "self._bookings.has_cancelled and not self._is_last_run", "False",
    ),
    Mutation(
        "leave the inputs of a cancelled task that waits at the scheduler",
        cancels.Cancels, "_request", "self._unsent[force].append(each)", "pass",
    ),
    Mutation(
        "reserve no host for a task that wants much",
        host_choice.HostChoice, "reserve", "if best is None:", "if True:",
    ),
    Mutation(
        "let small tasks take what is reserved for a large one",
        bookings.Host, "has_amounts", "0 if kept is None else kept.needs.get(name, 0)", "0",
    ),
    Mutation(
        "leave tasks in the queue behind a long task though others go first",
        work_stealing, "tasks_to_overtake", "if worker.running or worker.unclaimed:", "if False:",
    ),
    Mutation(
        "let short tasks wait as long as a gang does",
        gang_reservation.GangReservation, "backfill", "if not self.held_back or", "if True or",
    ),
    Mutation(
        "let long tasks take workers that a gang needs soon",
        gang_reservation.GangReservation, "backfill", "> self._waits_until", "> INFINITY",
    ),
    Mutation(
        "let gangs that wait take workers from one another",
        worker_changes.WorkerChanges, "_demands", "if lane.gang_size and", "if False and",
    ),
    Mutation(
        "keep workers for a gang on hosts that lack its resources",
        gang_reservation.GangReservation, "_candidates", "if lane.resources:", "if False:",
    ),
    Mutation(
        "change the environment of workers that a gang gathers",
        gang_reservation.GangReservation, "gathers", "<= members", "< 0",
    ),
    Mutation(
        "reserve no host whose workers must change their environment for the task",
        host_choice.HostChoice, "_is_able", "self.could_change(worker, lane)", "False",
    ),
    Mutation(
        "leave the environment of workers that are set aside for a task",
        worker_changes.WorkerChanges, "_serve", "*self._aside(demand)", "",
    ),
    Mutation(
        "reserve a host whose workers wait for their tasks' tasks and so cannot change",
        worker_changes.WorkerChanges, "_could_change_at_once", "or worker.suspended", "",
    ),
    Mutation(
        "keep the file of a client's object that nobody needs",
        held_objects.HeldObjects, "dropped_by_scheduler", "self.files.remove(each)", "pass",
    ),
    Mutation(
        "do not tell a scheduler of files without references",
        held_objects.HeldObjects, "send_all", "self._forgotten.append(object_id)", "pass",
    ),
    Mutation(
        "do not announce arguments again whose only copy is a file",
        held_objects.HeldObjects, "_message", "if not stored.frames and self.files.has(stored.id):", "if False:",
    ),
    Mutation(
        "forget the bytes of arguments that are no file",
        held_objects.HeldObjects, "share", "shared.file_bytes and stored is not None", "stored is not None",
    ),
    Mutation(
        "do not send the file of a client that no host can get",
        held_objects.HeldObjects, "send_wanted", "if self.files.has(each):", "if False:",
    ),
    Mutation(
        "do not ask a client again that has a new connection for its file",
        welcome.Welcomes, "welcome_client",
        "stored.is_awaited or (client.place is not None and stored.fetched_from is client.place)", "stored.is_awaited",
    ),
    Mutation(
        "take the bytes of a client's file for the file again",
        host_results.HostResults, "receive_from_client", "self._graphs.object_available(stored)", "pass",
    ),
    Mutation(
        "send the orders of a client's old connection",
        welcome.Welcomes, "welcome_client", "client.place.route = event.route", "pass",
    ),
    Mutation(
        "forget to requeue the tasks of a lost worker",
        peer_loss.PeerLoss, "remove_worker",
        "self._attempt_end.retry_or_end(task, worker, OUTCOME_WORKER_DIED, printable_line(cause.encode()))", "pass",
    ),
    Mutation(
        "accept the result of an old attempt",
        results.ResultHandler, "handle", "task.worker is not worker or task.attempt != attempts[row]",
        "task.worker is None",
    ),
    Mutation(
        "drop a cancel that crosses a retract for balance",
        cancellation.Cancellation, "_set_intent", "if intent <= task.intent:",
        "if intent <= task.intent or task.is_retracting:",
    ),
    Mutation(
        "never answer a cancel that came too late",
        cancellation.Cancellation, "process_retracted", "if task.intent == INTENT_CANCEL:", "if False:",
    ),
    Mutation(
        "count the death for tasks that were only queued",
        peer_loss.PeerLoss, "worker_died", "self.worker_left(worker, now, cause)",
        "[setattr(t, 'failures', t.failures + (t is not running)) for t in worker.tasks.values()]\n"
        "    [setattr(t, 'deaths', t.deaths or ['']) for t in worker.tasks.values()]\n"
        "    self.worker_left(worker, now, cause)",
    ),
    Mutation(
        "count an attempt for the tasks of a worker that left in order",
        peer_loss.PeerLoss, "worker_left", "self.remove_worker(worker, cause=cause)",
        "[setattr(t, 'failures', t.failures + 9) for t in worker.tasks.values() if cause == 'it has left']\n"
        "    self.remove_worker(worker, cause=cause)",
    ),
    Mutation(
        "start no worker in the place of one that a stop has damaged",
        worker_table.WorkerTable, "replace", "worker.restart_at = now + _back_off_seconds(worker.failed_starts)",
        "worker.restart_at = None if 'damaged' in ended.cause() else now",
    ),
    Mutation(
        "never send EndWorker",
        cancellation.Cancellation, "_end_worker", "if agent is not None:", "if False:",
    ),
    Mutation(
        "forget to free the slot of a suspended task",
        suspension, "suspend", "worker.suspended += 1", "worker.suspended += 0",
    ),
    Mutation(
        "do not free the slot of a suspended task",
        scheduler.Scheduler, "_suspended", "suspend_named(event, client, worker, self.tables, self.holdings)", "{}",
    ),
    Mutation(
        "lose credit on cancel",
        cancellation.Cancellation, "_end_row", "client.returned_bytes += batch.size_of(row) + TASK_OVERHEAD", "pass",
    ),
    Mutation(
        "lose credit with every result",
        results.ResultHandler, "handle", "client.returned_bytes += task.size + TASK_OVERHEAD", "pass",
    ),
    Mutation(
        "answer a client that is gone",
        results.ResultHandler, "handle", "batch = None if client.is_gone else outbox.resolved_batch(client)",
        "batch = outbox.resolved_batch(client)",
    ),
    Mutation(
        "answer a client that is gone with an answer of the scheduler itself",
        task_end, "answer_task", "if not client.is_gone:", "if True:",
    ),
    Mutation(
        "requeue a cancelled task",
        attempt_end.AttemptEnd, "retry_or_end", "elif intent in (INTENT_CANCEL, INTENT_FORCE):",
        "elif intent == INTENT_FORCE:",
    ),
    Mutation(
        "dispatch tasks of lower priority first",
        dispatcher.Dispatcher, "_run_once", "queue.ranks[::-1], is_alone", "queue.ranks[:], is_alone",
    ),
    Mutation(
        "never ask a client again for a result when it has joined again",
        welcome.Welcomes, "welcome_client", "if stored.is_awaited or (", "if (",
    ),
    Mutation(
        "keep what the attempts of a lost worker hold",
        peer_loss.PeerLoss, "remove_worker", "self._holdings.worker_lost(worker)", "pass",
    ),
    Mutation(
        "give a task that runs already no token of its limit",
        dispatch_writer.DispatchWriter, "_count_reattached", "task.options.limits or ", "",
    ),
    Mutation(
        "keep the tokens of limits when tasks have ended",
        scheduler.Scheduler, "_take_results", "if self.holdings.held:", "if False:",
    ),
    Mutation(
        "give a unit of a resource to two tasks",
        resource_pools.ResourcePool, "choose", "if unit not in units]", "]",
    ),
    Mutation(
        "let fractions take more of a unit than there is",
        resource_pools.ResourcePool, "choose", "if used + part <= UNIT", "if used <= UNIT",
    ),
    Mutation(
        "book beyond what a host has",
        bookings.Host, "has_amounts", "if pool is None or not", "if pool is not None and False and not",
    ),
    Mutation(
        "let a row keep a booking that has ended",
        holdings.Holdings, "take", "booking.attempts += len(ids)", "booking.attempts += 1",
    ),
    Mutation(
        "lose the booking of a row that comes back",
        scheduler.Scheduler, "_retracted", "self._give_back_returned(event, worker)", "pass",
    ),
    Mutation(
        "forget what a worker names when it joins again",
        welcome.Welcomes, "welcome_worker", "self._holdings.restore(worker, event.bookings)", "pass",
    ),
    Mutation(
        "give no workers for further cpus",
        bookings.Bookings, "_add", "host.further += booking.cpus", "pass",
    ),
    Mutation(
        "keep the cpus of a task that waits for its own tasks",
        suspension, "suspend", "if task.options.resources:", "if False:",
    ),
    Mutation(
        "let rows join the booking of a task that waits for its own tasks",
        worker_session.WorkerSession, "_clashes", 'number != "" and any(', "any(() and ",
    ),
    Mutation(
        "let the workers that are set aside for a lost reservation wait",
        bookings.Bookings, "cancel", "self.unsettled[reservation.host] = None", "pass",
    ),
    Mutation(
        "begin more tasks than a limit allows",
        task_limits.TaskLimit, "ready_at", "self.used + tasks > settings.most", "self.used + tasks > settings.most + 1",
    ),
    Mutation(
        "charge a share for a suspended task",
        suspension, "suspend", "share.held_ns -= task.cost", "pass",
    ),
    Mutation(
        "charge a share for tasks that have ended",
        results.ResultHandler, "handle", "freed_ns += task.cost", "pass",
    ),
    Mutation(
        "move a nested client with open tasks to another share",
        scheduler.Scheduler, "_join_share_of_parent", "if client.tasks or client.lanes:", "if not client.worker:",
    ),
    Mutation(
        "order only the tasks of one share by priority although the operator wants all",
        dispatcher.Dispatcher, "_run_once", "elif self._has_common_ranks:", "elif False:",
    ),
    Mutation(
        "attach no task when a worker joins again",
        welcome.Welcomes, "welcome_worker", "self._reattach.attach(worker, name, now)", "pass",
    ),
    Mutation(
        "release a function while tasks of it wait",
        functions.Function, "is_unused", "not self.tasks and not self.clients", "not self.clients",
    ),
    Mutation(
        "forget the time limit",
        scheduler.Scheduler, "_record_start", "self.tables.timers.set(task, now + limit)", "pass",
    ),
    Mutation(
        "accept a task twice that is submitted again",
        submissions.Submissions, "_drop_known_rows", "batch.leave_out((row,))", "pass",
    ),
    Mutation(
        "never resume a slow client that has acknowledged its results",
        credit.Credits, "acknowledge", "self._queues.resume(client, PAUSE_SLOW_CONSUMER)", "pass",
    ),
    Mutation(
        "give tasks to workers that lack a capability",
        records.Worker, "can_serve", "own.get(name, 0) >= amount", "True",
    ),
    Mutation(
        "never ask the scheduler whether it still knows an idle worker",
        worker_session.WorkerSession, "next_deadline", "min(IDLE_INTERVALS * seconds, self._lease_seconds / 4)", "1e9",
    ),
    Mutation(
        "let an agent's heartbeat renew its own lease only",
        leases.Leases, "heartbeat", "named.deadline = worker_deadline", "pass",
    ),
    Mutation(
        "keep the tasks of a client that has left",
        peer_loss.PeerLoss, "client_left", "self._cancellation.abandon(client, now)", "pass",
    ),
    Mutation(
        "count no retries",
        task_end, "has_retries_left", "task.failures <=", "0 <=",
    ),
    Mutation(
        "forget the running tasks of a worker whose client comes later",
        submissions.Submissions, "_enqueue", "if self._tables.unclaimed or self._tables.early:", "if False:",
    ),
    Mutation(
        "give two attempts the same number",
        dispatch_writer.DispatchWriter, "_dispatch_tasks", "task.attempt = client.next_attempt(task.attempt)",
        "task.attempt = max(1, task.attempt)",
    ),
    Mutation(
        "ignore that a worker keeps a task",
        cancellation.Cancellation, "process_retracted", "if event.returned[row]:", "if True:",
    ),
    Mutation(
        "leave the clients of a dead worker's tasks",
        peer_loss.PeerLoss, "worker_left", "self.client_left(client, now)", "pass",
    ),
    Mutation(
        "count a task twice that begins twice",
        cancellation, "mark_started", "if task.state == DISPATCHED:", "if True:",
    ),
    Mutation(
        "forget that a task of a function is still open",
        functions.FunctionTable, "remove_task", "function.tasks -= 1", "function.tasks = 0",
    ),
    Mutation(
        "mix up the bytes of answers",
        results.ResultHandler, "handle", "batch.rows.sizes.append(size)", "batch.rows.sizes.append(size and size - 1)",
    ),
    Mutation(
        "do not fail the readers of a failed task",
        graphs.Graphs, "fail_readers", "if reader.state == BLOCKED:", "if False:",
    ),
    Mutation(
        "free an object while a task still reads it",
        records.StoredObject, "is_needed", "self.is_referenced or self.readers > 0", "self.is_referenced",
    ),
    Mutation(
        "forget an object and not the ended tasks that wait for it",
        objects.ObjectTable, "remove", "stored.unblock()", "pass",
    ),
    Mutation(
        "run a task before its last input is there",
        graphs.Graphs, "object_available", "reader.state == BLOCKED and not reader.missing_inputs",
        "reader.state == BLOCKED",
    ),
    Mutation(
        "do not send objects again after a restart of the scheduler",
        held_objects.HeldObjects, "send_all", "self.send_now(stored, outgoing)", "pass",
    ),
    Mutation(
        "release results before the rows that read them are sent",
        held_objects.HeldObjects, "pop_messages", "self._backlog.is_past(self._deferred[0][0])", "True",
    ),
    Mutation(
        "forget a kept result whose row waits for credit before this row",
        held_objects.HeldObjects, "_drop", "elif self._backlog.waits(stored.id):", "elif False:",
    ),
    Mutation(
        "never repeat that a client forgets an object",
        held_objects.HeldObjects, "resend_forgotten", "self._without_needed(unconfirmed)", "()",
    ),
    Mutation(
        "leave unneeded objects at workers",
        graphs.Graphs, "drop_unneeded", "for worker in stored.workers or ():", "for worker in ():",
    ),
    Mutation(
        "leave unneeded files on hosts",
        graphs.Graphs, "drop_unneeded", "for place in stored.copies or ():", "for place in ():",
    ),
    Mutation(
        "do not send files again to a host agent that joins again",
        welcome.Welcomes, "welcome_agent", "send_object(stored, agent.route, self._outbox)", "pass",
    ),
    Mutation(
        "give up a task that can't read a file of its host",
        results.ResultHandler, "_process_special", "outcome == OUTCOME_INPUT_LOST and task.reads_files", "False",
    ),
    Mutation(
        "grant no credit beside objects",
        credit.Credits, "_grant", " + _unreturnable_bytes(client, window)", "",
    ),
    Mutation(
        "run tasks whose results are not needed",
        graphs.Graphs, "drop_unneeded", "self.unneeded.append(stored.producer)", "pass",
    ),
    Mutation(
        "run a task with inputs beside its copy on a worker that joins again",
        graphs.Graphs, "_make_ready", "self.ready.append(task)", "pass",
    ),
    Mutation(
        "count the end of a reader twice",
        graphs.Graphs, "release_inputs", "stored.readers -= 1", "stored.readers = max(0, stored.readers - 2)",
    ),
    Mutation(
        "number the attempts of a task that comes again from 1",
        records.Client, "next_attempt", "max(last, self.stale_attempt)", "last",
    ),
    Mutation(
        "reassign a silent worker's queue and do not tell the worker",
        cancellation.Cancellation, "reassign", "self._outbox.retract(task)", "pass",
    ),
    Mutation(
        "submit all open tasks once more when a second welcome comes",
        client_session.Session, "_has_joined", "return self.state is State.JOINED and", "return False and",
    ),
    Mutation(
        "forget the sent answers when the scheduler restarts",
        sent_answers.SentAnswers, "pop_final", "= self._sent, deque()", "= deque(), deque()",
    ),
    Mutation(
        "drop a result that comes before its client",
        results.ResultHandler, "_keep_early", "is_over = ", "is_over = True or ",
    ),
    Mutation(
        "let a task follow that a worker which joins again has named",
        state_tables.Tables, "is_named", "name in self.unclaimed or name in self.early", "False",
    ),
    Mutation(
        "drop the results that have come before their client when their worker is lost",
        reattach.Reattach, "remove_worker", " and early.is_awaited", "",
    ),
    Mutation(
        "ignore a death that a former scheduler has not answered",
        scheduler.Scheduler, "_worker_died", "self._reattach.note_death", "(lambda *_: None)",
    ),
    Mutation(
        "forget that a worker died before its client had submitted its task",
        reattach.Reattach, "worker_died", "self.note_death", "(lambda *_: None)",
    ),
    Mutation(
        "dispatch resubmitted tasks at once after a restart",
        restart_hold.RestartHold, "hold", "self._queues.pause(client, PAUSE_RESTART_HOLD)", "pass",
    ),
    Mutation(
        "never release the clients that are held after a restart",
        restart_hold.RestartHold, "release", "held, self._held = self._held, []", "held, self._held = [], []",
    ),
    Mutation(
        "do not forget again what the scheduler asked for before it was forgotten",
        held_objects.HeldObjects, "send_wanted", "self._forgotten += self._without_needed(unneeded)", "pass",
    ),
    Mutation(
        "do not ask again for contents when an agent joins again",
        agent_environments.AgentEnvironments, "order", "return self._ask(state, now)", "return []",
    ),
    Mutation(
        "tell a client of a lost result before the answer that it is kept",
        host_results.HostResults, "_tell_missing", "self._outbox.flush_answers(client)", "pass",
    ),
    Mutation(
        "do not fail the readers of results that are lost with their host",
        host_results.HostResults, "lose_objects", "self._fail_reader(task, stored)", "pass",
    ),
    Mutation(
        "do not fail tasks that wait for a result which is lost while it is fetched",
        host_results.HostResults, "lose_objects", "task.state == WAITING or task.state == BLOCKED",
        "task.state == WAITING",
    ),
    Mutation(
        "ignore the lost results of an agent that says goodbye",
        leases.Leases, "goodbye", "self._peer_loss.agent_left(agent)", "self._tables.agents.remove(agent)",
    ),
    Mutation(
        "count no reader of a result that stays on its host",
        graphs.Graphs, "_bind", "stored.readers += 1", "stored.readers += stored.home is None",
    ),
    Mutation(
        "send readers to files of other hosts",
        records.StoredObject, "is_on", "self.home.incarnation == agent", "True",
    ),
    Mutation(
        "leave readers blocked when their transfer has failed",
        transfer_end.TransferEnd, "_give_up", "self._fetches.fetch(stored)", "pass",
    ),
    Mutation(
        "leave readers blocked when the file has come from another host",
        transfer_end.TransferEnd, "_end_well", "self._graphs.object_available(stored)", "pass",
    ),
    Mutation(
        "hand on another file than the result of the row before",
        runner.Runner, "_run_queue", "result_file(file_of((client, task_id, attempt)))",
        "result_file(file_of((client, task_id - 1, attempt)))",
    ),
    Mutation(
        "keep the place of a transfer that has ended",
        transfers.Transfers, "end", "_count(self._outgoing, transfer.source, -transfer.part)", "pass",
    ),
    Mutation(
        "keep the place of a transfer that has ended between its two hosts",
        transfers.Transfers, "end", "_count(self._between, (transfer.source, transfer.target), -transfer.part)", "pass",
    ),
    Mutation(
        "let a task wait for a host with its inputs beyond its time",
        near_data.NearData, "choose", "now >= self.waits_until.get(task, INFINITY)", "False",
    ),
    Mutation(
        "let a task wait for a host that has no room either",
        near_data.NearData, "choose", "if not self.has_room(host, task):", "if False:",
    ),
    Mutation(
        "do not wake up when a task has waited for a host",
        dispatcher.Dispatcher, "_note", "if wait.until < self.next_wait_at:", "if False:",
    ),
    Mutation(
        "forget a task that waits for a host",
        data_placement.DataPlacement, "place", "self._passed.append(task)", "pass",
    ),
    Mutation(
        "send a task to the worker of a host with its inputs, whatever it needs",
        near_data.NearData, "_queue", "worker.can_serve(*need)", "True",
    ),
    Mutation(
        "count a file that has come as still on its way",
        transfers.Transfers, "_remove", "transfer.target.room.coming -= transfer.stored.size", "pass",
    ),
    Mutation(
        "make a lost result again before what it reads is sent",
        task_inputs.TaskInputs, "submit_again", "batch.backlog.send_ahead(submit.inputs, batch.outgoing)", "pass",
    ),
    Mutation(
        "keep the results of ended graphs when their client joins again",
        held_objects.HeldObjects, "send_all", "(0, list(ids)) for _, ids in self._deferred", "",
    ),
    Mutation(
        "let a task wait for room on a host whose workers have other environments",
        host_choice.HostChoice, "busy_hosts", "self._has_able_worker(host, lane) and any(worker.task_count", "any(True",
    ),
    Mutation(
        "remove a copy that a task at its host reads",
        spare_copies.SpareCopies, "_read_at", "for task in worker.tasks.values():", "for task in ():",
    ),
    Mutation(
        "send tasks to read a copy that was removed",
        spare_copies.SpareCopies, "_remove", "move(stored, agent, DROP)",
        "agent.room.copied -= agent.copies.pop(stored)",
    ),
    Mutation(
        "fetch nothing again from an agent that joins again",
        welcome.Welcomes, "welcome_agent", "stored.fetched_from is agent", "False",
    ),
    Mutation(
        "leave the files that an agent names when it joins again",
        takeover.Takeover, "take", "removed.append(name)", "pass",
    ),
    Mutation(
        "never give up a result that no host has after a restart",
        takeover.Takeover, "check", "now >= until", "False",
    ),
    Mutation(
        "forget a result that waits for its host after a restart",
        takeover.Takeover, "claim", "self._claimed[stored] = now + HOST_SECONDS", "pass",
    ),
    Mutation(
        "send no value to its client that came back with its host",
        host_results.HostResults, "adopt", "if stored.is_wanted:", "if False:",
    ),
    Mutation(
        "leave readers blocked when a host has come back with what they read",
        host_results.HostResults, "adopt", "self._graphs.object_available(stored)", "pass",
    ),
    Mutation(
        "remove the files of a host before their client has come",
        takeover.Takeover, "_offer", "now >= self._offers_until", "True",
    ),
    Mutation(
        "keep the files of a host that their client does not need",
        takeover.Takeover, "check", "self._host_results.discard_unless_needed(agent, (client, file))", "pass",
    ),
    Mutation(
        "keep the file of a late result",
        host_results.HostResults, "discard_late_file", "self.discard_unless_needed(agent, name)", "pass",
    ),
    Mutation(
        "remove the file of a result that comes once more",
        host_results.HostResults, "discard_late_file", "self.discard_unless_needed(agent, name)",
        "self._outbox.forget_object(agent.route, *name)",
    ),
    Mutation(
        "keep the file of a result that has come before its client, and that nobody needs",
        reattach.Reattach, "_drop_early", "early.is_file", "False",
    ),
    Mutation(
        "forget the results in files that have come before their clients",
        results.ResultHandler, "_keep_early", "(OUTCOME_STORED, OUTCOME_FILE)", "(OUTCOME_FILE,)",
    ),
    Mutation(
        "let an ended task wait until its inputs are made again",
        graphs.Graphs, "_has_early_result", "early is not None", "False",
    ),
    Mutation(
        "let a worker with hidden suspended tasks be a successor",
        successors.Successors, "_has_suspended", "worker.has_parents", "worker.suspended > 0",
    ),
    Mutation(
        "answer no result in a file again when the scheduler restarts",
        sent_answers, "is_final", "outcome in VALUES", "outcome == Outcome.FILE",
    ),
    Mutation(
        "name an attempt as finished whose task has begun again",
        worker_session.WorkerSession, "_rejoin", "name[2] == last[name[:2]]", "True",
    ),
    Mutation(
        "count a death that is reported again for a task that waits for a file",
        reattach.Reattach, "note_death", "known is not None and known.attempt >= attempt",
        "known is not None and known.attempt > attempt",
    ),
    Mutation(
        "return no credit for rows that a client submits again",
        graphs.Graphs, "submit", "client.returned_bytes += size", "client.sent_bytes += 0 * size",
    ),
    Mutation(
        "submit again only the targets of a graph that has lost results",
        graph_recovery, "resubmit_graph", "graph.needed_ids()", "graph.open_ids()",
    ),
    Mutation(
        "fail a graph whose results are lost",
        open_graphs.GraphTasks, "can_resubmit", "== Outcome.INPUT_LOST", "== None",
    ),
    Mutation(
        "treat a cancel of the scheduler as a failure",
        open_graphs.GraphTasks, "record_failures", "row not in self.targets", "False",
    ),
    Mutation(
        "send the last call again that a row has answered",
        map_feed.MapFeed, "_take_row", "self._return(row, begin + count,", "self._return(row, begin + count - 1,",
    ),
    Mutation(
        "lose the first call that comes back from a row",
        map_feed.MapFeed, "_take_row", "self._return(row, begin + count,", "self._return(row, begin + count + 1,",
    ),
    Mutation(
        "lose the results in front of a row's failed call",
        map_feed.MapFeed, "_take_row", "if count:", "if count and not outcome:",
    ),
    Mutation(
        "fail a map when its worker dies in a row of several calls",
        map_feed.MapFeed, "resolve", "elif outcome == Outcome.WORKER_DIED and end - begin > 1:", "elif False:",
    ),
    Mutation(
        "send the calls of a row whose worker died as one row again",
        map_feed.MapFeed, "resolve", "is_single=True", "is_single=False",
    ),
    Mutation(
        "retry a row of several calls",
        task_end, "has_retries_left", "if task.options.calls > 1:", "if False:",
    ),
    Mutation(
        "forget the calls in front of a failed one that came back",
        map_feed.MapFeed, "_fail", "self._unsent.extend(unsent)", "pass",
    ),
    Mutation(
        "report all calls of a row that ended early",
        runner.Runner, "_run_calls", "= ended", "= 0",
    ),
    Mutation(
        "submit no more rows when an answer comes",
        map_feed.MapFeed, "resolve", "self.fill()", "pass",
    ),
    Mutation(
        "submit all calls of a block when a row is submitted again",
        map_feed._Row, "row", "self.block.row(self.begin, self.end)", "self.block.row(0, self.block.count)",
    ),
    Mutation(
        "run the first calls of a pickle, whatever the row",
        call_rows.PackedCalls, "row", "begin - first * each", "0",
    ),
    Mutation(
        "take a repeated answer once more",
        open_tasks.OpenTasks, "resolve_all", "pop = self.single.pop", "pop = self.single.get",
    ),
    Mutation(
        "send calls again that come back to a cancelled map",
        map_feed.MapFeed, "_return", "if row.is_cancelled:", "if False:",
    ),
    Mutation(
        "submit the calls of a map whose scheduler is lost",
        map_feed.MapFeed, "abort", "self._drop_unsent()", "pass",
    ),
    Mutation(
        "never ask a client for the result of a task that has ended",
        graphs.Graphs, "keep_results", "self._outbox.fetch_object(client.route, client.incarnation, task_id)", "pass",
    ),
    Mutation(
        "let the readers of a result wait that its client does not have",
        graphs.Graphs, "release_objects", "self._fail_awaited(stored)", "pass",
    ),
    Mutation(
        "let the readers of a result wait when its client has sent it",
        graphs.Graphs, "add_object", "if not is_new:", "if False:",
    ),
    Mutation(
        "keep no result for a batch whose readers were cancelled",
        backlog.Backlog, "keep_with_next", "if not self._waiting.keep(each)", "if False",
    ),
    Mutation(
        "forget a result before the rows that say that it is kept",
        held_objects.HeldObjects, "_drop", "result.last_reader >= 0", "result.last_reader < -1",
    ),
    Mutation(
        "never send a result that the scheduler waits for",
        task_inputs.TaskInputs, "send_available", "self._objects.send_now(stored, self._batch.outgoing)", "pass",
    ),
    Mutation(
        "let a node wait whose argument was cancelled",
        open_graphs.GraphTasks, "record_failures", "if cause is None and", "if",
    ),
    Mutation(
        "hand a failure to the row behind it",
        runner.Runner, "_run_queue", "if outcome == _VALUE:", "if outcome != _STORED:",
    ),
    Mutation(
        "ignore a row that comes back unasked",
        cancellation, "_may_come_back", "task.state != DISPATCHED", "True",
    ),
    Mutation(
        "let a task follow two that go to different workers",
        followers, "_can_follow", "stored.producer in makers", "stored.producer is not None",
    ),
    Mutation(
        "fail a reader otherwise than the task whose result it reads",
        open_tasks.OpenTasks, "_fail_single", "if cause is None:", "if True:",
    ),
    Mutation(
        "do not tell a client which of its kept results are lost",
        host_results.HostResults, "_tell_missing", "if ids and not client.is_gone:", "if False:",
    ),
    Mutation(
        "never make a lost kept result again",
        task_inputs.TaskInputs, "make_again", "if self.is_joined:", "if False:",
    ),
    Mutation(
        "do not free the inputs again that were made again for a kept result",
        task_inputs.TaskInputs, "_bind_kept", "self._objects.lend(stored, reader)", "pass",
    ),
    Mutation(
        "make the inputs again of a kept result that can't be made again",
        task_inputs.TaskInputs, "make_again", "[stored for stored in can_run if stored.id in wanted]", "can_run",
    ),
    Mutation(
        "forget that a client wants the value of a kept result",
        host_results.HostResults, "send_to_client", "stored.is_wanted = True", "pass",
    ),
    Mutation(
        "ask only once for the values of kept results, whatever becomes of the scheduler",
        kept_values.KeptValues, "restart", "self._queue.extendleft(reversed(self._asked.values()))", "pass",
    ),
    Mutation(
        "forget the wanted value of a kept result that is being made again for a reader",
        kept_values.KeptValues, "note_lost", "self._pending.append(stored)", "pass",
    ),
    Mutation(
        "give the calls of a map that read results to one row",
        map_run.CallPacker, "_pack", "if reads_results(packed.inputs):", "if False:",
    ),
    Mutation(
        "let a map wait for a call whose input has failed",
        map_feed._Row, "fail_input", "self.feed.fail_input(self, cause)", "pass",
    ),
    Mutation(
        "change the environment of a worker whose task waits for its children",
        worker_changes.WorkerChanges, "advance", "now >= change.deadline or has_parent", "now >= change.deadline",
    ),
    Mutation(
        "change the environment of a worker that holds tasks",
        worker_changes.WorkerChanges, "_send_if_empty", "not worker.tasks and", "",
    ),
    Mutation(
        "let a worker run functions of all environments",
        records.Worker, "can_serve", "split_kind(kind)[1] != self.environment", "False",
    ),
    Mutation(
        "start a worker without the environment that it changes to",
        worker_table.WorkerTable, "changed", 'worker.next_environment or ""', '""',
    ),
    Mutation(
        "give a worker no tasks after a change of its environment was given up",
        worker_changes.WorkerChanges, "_give_up", "worker.is_changing = False", "pass",
    ),
    Mutation(
        "send results to the scheduler from a host whose agent has not joined",
        worker_tables.AgentTable, "is_expected", "or now < worker.agent_until", "",
    ),
    Mutation(
        "take a result at once from a host whose agent has not joined",
        agent_wait.AgentWait, "hold", "if now >= worker.agent_until:", "if True:",
    ),
    Mutation(
        "never give up a result of a host whose agent has not joined",
        agent_wait.AgentWait, "hold", "self.deadline = min(self.deadline, worker.agent_until)", "pass",
    ),
    Mutation(
        "count a failed attempt for a result of a host whose agent has not joined",
        results.ResultHandler, "_process_special",
        "if is_here and (task.keep != KEEP_YES or task.since >= worker.agent_until):", "if True:",
    ),
    Mutation(
        "remove all results of a host whose agent has not joined before",
        takeover.Takeover, "take", "self._host_results.is_needed(agent, name)",
        "stored is not None and state_at(stored, agent) != ABSENT",
    ),
    Mutation(
        "repeat no answers for a client that joins again",
        welcome.Welcomes, "welcome_client", "client.unread.repeat(client.route)", "[]",
    ),
    Mutation(
        "drop an answer when the next one goes to its client",
        unread_answers.UnreadAnswers, "add", "self._rows > MOST_ROWS", "self._rows > len(batch.ids)",
    ),
    Mutation(
        "run an answered task again that its client submits again",
        submissions.Submissions, "_drop_known_rows", "task_id in answered", "False",
    ),
    Mutation(
        "run a task again whose answer is on its way since the welcome",
        unread_answers.UnreadAnswers, "ids", "for _, batch in self._sent", "for _, batch in ()",
    ),
    Mutation(
        "forget an answer that follows the first resubmitted task",
        unread_answers.UnreadAnswers, "add", "if self._ids is not None:", "if False:",
    ),
    Mutation(
        "submit a task again from the backlog whose answer has come",
        backlog.Backlog, "drop_answered", "self.drop(task_id)", "pass",
    ),
    Mutation(
        "run an answered reader again that its client submits again",
        graphs.Graphs, "_is_known", "if not keep and task_id in client.unread.ids(client.outgoing):", "if False:",
    ),
    Mutation(
        "wait for the host of the inputs although only suspended tasks are in the way",
        placement.Placement, "_without_parents", "if elsewhere and not parents and", "if False and",
    ),
    Mutation(
        "let the children of a call run until its row ends",
        task_host.WorkerTaskHost, "current", "self._interruption.stop_children(task.name)", "pass",
    ),
    Mutation(
        "leave the children of a task that has ended",
        interruption.Interruption, "finish", "self.stop_children(name)",
        "if place is not None: self.stop_children(name)",
    ),
)  # fmt: skip
