"""Graphs: turns a dict of nodes, or a graph of dask, into rows with inputs.

Begin with `nodes.py` (which node reads which), `order.py` (inputs first) and `rows.py` (rows to submit).
May import: errors, commands, protocol, pickling, nested, futures, session, io.
"""
