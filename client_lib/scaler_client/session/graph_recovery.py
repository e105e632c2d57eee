"""Submits graphs again if results of their nodes were lost with a host.

The client does this, because only the client knows how the results were made. The scheduler drops a task when it ends,
so a graph costs the scheduler only its unfinished part.
"""

from __future__ import annotations

from .backlog import rows_of
from .held_objects import HeldObjects
from .result_sinks import GraphSink
from .submit_batch import SubmitBatch
from .task_inputs import TaskInputs


def resubmit_graph(graph: GraphSink, batch: SubmitBatch, objects: HeldObjects, inputs: TaskInputs) -> None:
    """Submit again all tasks that the graph's open targets need.

    Tasks that were not sent yet are left out: they still wait in the backlog. The scheduler ignores tasks that it
    already has.

    Args:
        graph: the graph that has lost results.
        batch: takes the submissions, ahead of everything that waits for credit.
        objects: forgets the graph's intermediate results once its last row has been sent.
        inputs: makes the results of other tasks known that the graph reads.
    """
    graph.begin_recovery()
    batch.flush()
    for function in graph.functions():
        batch.use_function(function, graph.options)
    inputs.bind(graph.objects(), graph.first + graph.count - 1)
    backlog = batch.backlog
    sent = [task_id - graph.first for task_id in graph.needed_ids() if backlog.has_sent(task_id)]
    rows = rows_of(graph.batch(), sent)
    rows.keep_earlier = batch.pop_keep_earlier()
    backlog.resend(rows, batch.outgoing)
    objects.forget_after(graph.first + graph.count - 1, graph.kept_ids())
