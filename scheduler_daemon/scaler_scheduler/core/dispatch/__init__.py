"""Dispatches waiting tasks: whose turn it is, the rows of a Dispatch, work stealing, credit.

Begin with `dispatcher.py`, then `dispatch_writer.py` (writes rows into the columns of a Dispatch). `credit.py` computes
how much a client may submit.
May import: state, values, tables, outbox, data, placement.
"""
