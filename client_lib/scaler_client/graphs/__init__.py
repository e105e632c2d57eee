"""A dict of nodes becomes rows with inputs: nodes, their order, their payloads; dask's graphs too.

Begin with `nodes.py` (what names what), `order.py` (inputs first) and `rows.py` (nodes into rows to submit).
May import: errors, commands, protocol, pickling, nested, futures, session, io.
"""
