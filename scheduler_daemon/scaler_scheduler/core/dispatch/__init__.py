"""Which worker gets which waiting tasks, and how many: ranks, fair turns, prefetch, work stealing, credit, outbox.

Begin with `dispatcher.py`, then `prefetch.py` (how much work a worker holds) and `dispatch_writer.py` (writes rows
into the columns of a Dispatch). `credit.py` computes how much a client may submit.
May import: state.
"""
