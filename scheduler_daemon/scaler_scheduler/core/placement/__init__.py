"""Where waiting tasks run, or until when they wait: the queues, the workers with room, and the policies.

Begin with `placement.py`, which asks the policies in their order. `share_queue.py` has the lanes that wait, and
`worker_pool.py` the workers that have room.
May import: state, values, tables, outbox, data.
"""
