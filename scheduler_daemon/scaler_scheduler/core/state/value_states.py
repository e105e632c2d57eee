"""The states of a value, and of a copy of it at a place, with the tables of all actions that lead from one state to the
next.

A place is a host, or a client that keeps its large objects in files. The scheduler's memory (`StoredObject.frames`) and
worker processes have no such states: a worker has got the bytes of a value, or it reads the file of its host
(`StoredObject.workers`).
"""

from scaler_scheduler.core.errors import InvariantError

# --------------------------------------------------------------------------------------------------------------- values

AWAITED = 0
"""Its client is going to send it."""
CLAIMED = 1
"""Its client refers to it, as the result of a task that ended before this scheduler began. A host may have it."""
MAKING = 2
"""An open task is going to make it."""
THERE = 3
"""The scheduler has its bytes, or some place has a primary copy."""
DROPPED = 4
"""Nobody needs it any more, or it is lost. If its client makes it again, that is another value of this name."""
VALUE_STATE_NAMES = ("awaited", "claimed", "making", "there", "dropped")

# The actions.
CLAIM = 0  # the client names it as one that a host has
MAKE = 1  # the client submits the task that makes it
FILL = 2  # its bytes are there: from the client, from the task, from the place of its primary copy, or at a host
REMOVE = 3
HAND_OVER = 4  # the task that makes it has written it to a file of its client
VALUE_ACTION_NAMES = ("claim", "make", "fill", "remove", "hand over")

VALUE_TRANSITIONS = {
    (AWAITED, CLAIM): CLAIMED,
    (AWAITED, MAKE): MAKING,
    (AWAITED, FILL): THERE,
    (AWAITED, REMOVE): DROPPED,
    (CLAIMED, MAKE): MAKING,
    (CLAIMED, FILL): THERE,
    (CLAIMED, REMOVE): DROPPED,
    (MAKING, FILL): THERE,
    (MAKING, REMOVE): DROPPED,
    (MAKING, HAND_OVER): AWAITED,
    (THERE, FILL): THERE,
    (THERE, REMOVE): DROPPED,
}

# --------------------------------------------------------------------------------------------------------------- copies

ABSENT = 0
"""Nothing of it is there. Such copies have no record."""
COMING = 1
"""The host was told to get the file from another place. A part of the file may be there."""
SENT = 2
"""The scheduler has sent the bytes to the host's agent, which writes the file."""
PRIMARY = 3
"""The file that the scheduler asks for when it needs the bytes. At most one copy of a value is primary."""
CACHED = 4
"""A file like the primary one. The host may lose it at any time, and others may get the value from it."""
COPY_STATE_NAMES = ("absent", "coming", "sent", "primary", "cached")

# The actions.
WRITE = 0  # a worker of the host, or the client, has written the file
SEND = 1  # the scheduler sends the bytes to the agent
ORDER = 2  # the host is told to get the file from another place
ARRIVE = 3  # the host has got it
PROMOTE = 4  # the primary copy is lost: this one takes its place
DEMOTE = 5  # another copy becomes the primary one
DAMAGE = 6  # the file is wrong or can't be read, or only a part of it came
REJOIN = 7  # the agent has a new connection: what was on its way to it may be lost
DROP = 8  # the host was told to remove the file, or is lost
COPY_ACTION_NAMES = (
    "write", "send", "order", "arrive", "promote", "demote", "damage", "rejoin", "drop",
)  # fmt: skip

COPY_TRANSITIONS = {
    (ABSENT, WRITE): PRIMARY,
    (ABSENT, SEND): SENT,
    (ABSENT, ORDER): COMING,
    (ABSENT, ARRIVE): CACHED,
    (ABSENT, DAMAGE): ABSENT,
    (ABSENT, DROP): ABSENT,
    (COMING, SEND): SENT,
    (COMING, ARRIVE): CACHED,
    (COMING, DAMAGE): ABSENT,
    (COMING, REJOIN): COMING,  # the order is sent again
    (COMING, DROP): ABSENT,
    (SENT, SEND): SENT,
    (SENT, ARRIVE): SENT,  # the bytes were sent meanwhile
    (SENT, DAMAGE): SENT,
    (SENT, REJOIN): ABSENT,
    (SENT, DROP): ABSENT,
    (PRIMARY, ARRIVE): PRIMARY,
    (PRIMARY, DEMOTE): CACHED,
    (PRIMARY, DAMAGE): ABSENT,
    (PRIMARY, REJOIN): PRIMARY,
    (PRIMARY, DROP): ABSENT,
    (CACHED, ARRIVE): CACHED,
    (CACHED, PROMOTE): PRIMARY,
    (CACHED, DAMAGE): ABSENT,
    (CACHED, REJOIN): CACHED,
    (CACHED, DROP): ABSENT,
}

Table = tuple[tuple[int, ...], ...]


def _rows(transitions: dict[tuple[int, int], int], states: int, actions: int) -> Table:
    """A table as a tuple of tuples, as in `transitions.py`."""
    return tuple(tuple(transitions.get((state, action), -1) for action in range(actions)) for state in range(states))


_NEXT_VALUE = _rows(VALUE_TRANSITIONS, len(VALUE_STATE_NAMES), len(VALUE_ACTION_NAMES))
_NEXT_COPY = _rows(COPY_TRANSITIONS, len(COPY_STATE_NAMES), len(COPY_ACTION_NAMES))


def next_value_state(state: int, action: int) -> int:
    """Return the state of a value that `action` leads to.

    Raises:
        InvariantError: `action` is not allowed in `state`.
    """
    following = _NEXT_VALUE[state][action]
    if following < 0:
        raise InvariantError(f"no transition for {VALUE_ACTION_NAMES[action]} of a value {VALUE_STATE_NAMES[state]}")
    return following


def next_copy_state(state: int, action: int) -> int:
    """Return the state of a copy that `action` leads to.

    Raises:
        InvariantError: `action` is not allowed in `state`.
    """
    following = _NEXT_COPY[state][action]
    if following < 0:
        raise InvariantError(f"no transition for {COPY_ACTION_NAMES[action]} of a copy {COPY_STATE_NAMES[state]}")
    return following


def is_file(state: int) -> bool:
    """Whether a copy in this state is a file that others can get."""
    return state in (PRIMARY, CACHED)


def is_known(state: int) -> bool:
    """Whether the workers of a host can read a copy in this state, now or soon."""
    return state in (SENT, PRIMARY, CACHED)
