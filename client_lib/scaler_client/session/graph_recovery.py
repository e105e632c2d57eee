"""Graphs of which results were lost with the host that they had stayed on."""

from __future__ import annotations

from .backlog import Backlog, rows_of
from .held_objects import HeldObjects
from .result_sinks import GraphSink
from .submit_batch import SubmitBatch


def submit_again(graph: GraphSink, rows: SubmitBatch, backlog: Backlog, objects: HeldObjects) -> None:
    """Submit what the graph's open targets need, as far as it was sent; what the scheduler has of it, it passes over.

    It is the client that does this as nobody else knows how the results were made: the scheduler drops a task when it
    is over, so that what a graph costs there is what is left of it.
    """
    graph.begin_recovery()
    rows.flush()
    for function in graph.functions():
        rows.use_function(function, graph.options)
    sent = [task_id - graph.first for task_id in graph.needed_ids() if backlog.has_sent(task_id)]
    backlog.resend(rows_of(graph.batch(), sent), rows.outgoing)
    objects.forget_after(graph.first + graph.count - 1, graph.kept_ids())
