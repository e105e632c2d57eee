"""Numbers that name things.

A peer is named by its incarnation: 63 bits, drawn by the peer at its start. A task is named by its client's incarnation
and the client's own counter, so that the name outlives the scheduler. A route is ZeroMQ's name of a connection: it
changes with every reconnect, so that no answer ever goes to a connection that has missed something.
"""

INCARNATION_LIMIT = 1 << 63
ATTEMPT_LIMIT = 1 << 31
"""No task gets there; what a peer says of larger ones must not make a counter overflow on the wire."""
NAME_LIMIT = 256
"""Longest name, in characters, that is kept of a peer or a function; the rest is cut off."""
