"""What states a task can be in, and what leads from one to the next: the whole table."""

from scaler_scheduler.core.errors import InvariantError

WAITING = 0
DISPATCHED = 1  # a worker holds it
RUNNING = 2  # and said that it has begun
RESOLVED = 3
CANCELLED = 4
STATE_NAMES = ("waiting", "dispatched", "running", "resolved", "cancelled")

# What can happen to a task.
DISPATCH = 0
START = 1
RESULT = 2
CANCEL = 3
WORKER_LOST = 4
GIVE_UP = 5
ACTION_NAMES = ("dispatch", "start", "result", "cancel", "worker lost", "give up")

TRANSITIONS = {
    (WAITING, DISPATCH): DISPATCHED,
    (WAITING, CANCEL): CANCELLED,
    (WAITING, GIVE_UP): RESOLVED,
    (DISPATCHED, START): RUNNING,
    (DISPATCHED, RESULT): RESOLVED,
    (DISPATCHED, WORKER_LOST): WAITING,
    (RUNNING, START): RUNNING,
    (RUNNING, RESULT): RESOLVED,
    (RUNNING, WORKER_LOST): WAITING,
}

# The same as a tuple of tuples: two look-ups without hashing on the hot path (`make bench`, scheduler alone).
_NEXT = tuple(tuple(TRANSITIONS.get((state, action), -1) for action in range(6)) for state in range(5))


def next_state(state: int, action: int) -> int:
    """Where `action` leads from `state`.

    Raises:
        InvariantError: nowhere.
    """
    following = _NEXT[state][action]
    if following < 0:
        raise InvariantError(f"no transition for {ACTION_NAMES[action]} in state {STATE_NAMES[state]}")
    return following
