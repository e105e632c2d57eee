"""How values come to where tasks read them: transfers between hosts, fetches to the scheduler, delivery with the rows.

Begin with `input_delivery.py`, then `fetches.py` and `transfers.py`. `spare_copies.py` says which copies a full host
removes.
May import: state, values, tables, outbox.
"""
