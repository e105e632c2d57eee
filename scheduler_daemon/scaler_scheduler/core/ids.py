"""Numbers that name things.

A peer is named by its incarnation (63 bits, drawn by the peer at its start) and, in messages of others, by the shorter
number that the scheduler gave it. A task is named by its client's number and the client's own counter. A route is
ZeroMQ's name of a connection: it changes with every reconnect, so that no answer ever goes to a connection that has
missed something.
"""

INCARNATION_LIMIT = 1 << 63
TASK_ID_LIMIT = 1 << 63
NAME_LIMIT = 256
"""Longest name, in characters, that is kept of a peer or a function; the rest is cut off."""
