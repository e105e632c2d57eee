"""Graphs: turns a dict of nodes, or a dask graph, into rows of tasks with inputs.

Begin with `nodes.py` (which node reads which), `order.py` (inputs before their readers) and `rows.py` (rows to submit).
May import: errors, commands, protocol, pickling, nested, futures, session, io.
"""
