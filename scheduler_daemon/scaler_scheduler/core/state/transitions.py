"""The states of a task, the table of all actions that lead from one state to the next, and the intents. An intent is
the scheduler's plan for a task that a worker holds. It is not a state, because the worker's answer decides the next
state.
"""

from scaler_scheduler.core.errors import InvariantError

WAITING = 0
DISPATCHED = 1  # a worker holds it
RUNNING = 2  # a worker holds it and says that it has begun
SUSPENDED = 3  # it has begun and waits for tasks of its own; its slot is free
RESOLVED = 4
CANCELLED = 5
BLOCKED = 6  # an input does not exist yet, or is being fetched
STATE_NAMES = ("waiting", "dispatched", "running", "suspended", "resolved", "cancelled", "blocked")

# The actions.
DISPATCH = 0
START = 1
SUSPEND = 2
RESUME = 3
RESULT = 4
RETRY = 5  # the task asked for another attempt by its result
RETRACT = 6  # its worker gave it back
CANCEL = 7
WORKER_LOST = 8
GIVE_UP = 9
REATTACH = 10  # a worker that joins again runs it already
READY = 11  # all inputs are there
UNREADY = 12  # an input is computed again, or fetched from the only host that has it
ACTION_NAMES = (
    "dispatch",
    "start",
    "suspend",
    "resume",
    "result",
    "retry",
    "retract",
    "cancel",
    "worker lost",
    "give up",
    "reattach",
    "ready",
    "unready",
)

TRANSITIONS = {
    (BLOCKED, READY): WAITING,
    (BLOCKED, CANCEL): CANCELLED,
    (BLOCKED, GIVE_UP): RESOLVED,
    (WAITING, UNREADY): BLOCKED,
    (WAITING, DISPATCH): DISPATCHED,
    (WAITING, REATTACH): RUNNING,
    (WAITING, CANCEL): CANCELLED,
    (WAITING, GIVE_UP): RESOLVED,
    (DISPATCHED, START): RUNNING,
    (DISPATCHED, SUSPEND): SUSPENDED,
    (DISPATCHED, RETRACT): WAITING,
    (DISPATCHED, RESULT): RESOLVED,
    (DISPATCHED, RETRY): WAITING,
    (DISPATCHED, WORKER_LOST): WAITING,
    (RUNNING, START): RUNNING,
    (RUNNING, SUSPEND): SUSPENDED,
    (RUNNING, RESUME): RUNNING,
    (RUNNING, RETRACT): WAITING,  # a bad worker: it gave back a task that it had begun
    (RUNNING, RESULT): RESOLVED,
    (RUNNING, RETRY): WAITING,
    (RUNNING, WORKER_LOST): WAITING,
    # A worker and its nested client have a connection each, so START may come after SUSPEND.
    (SUSPENDED, START): SUSPENDED,
    (SUSPENDED, SUSPEND): SUSPENDED,
    (SUSPENDED, RESUME): RUNNING,
    (SUSPENDED, RETRACT): WAITING,
    (SUSPENDED, RESULT): RESOLVED,
    (SUSPENDED, RETRY): WAITING,
    (SUSPENDED, WORKER_LOST): WAITING,
}

# Intents. A task has one. An intent with a higher number replaces a lower one.
NO_INTENT = 0
INTENT_BALANCE = 1  # retract it, to run it on another worker
INTENT_CANCEL = 2  # the user's cancel: retract it if it has not begun
INTENT_FORCE = 3  # the user's cancel by force: retract or stop it
INTENT_TIME_LIMIT = 4  # its time limit is over: stop it
INTENT_ABANDON = 5  # its client has left: retract or stop it, without an answer
INTENT_RERUN = 6  # its client had left and came back: the task waits again when it has stopped

# TRANSITIONS as a tuple of tuples. Two look-ups without hashing on the hot path (`make bench ONLY=scheduler`).
_NEXT = tuple(
    tuple(TRANSITIONS.get((state, action), -1) for action in range(len(ACTION_NAMES)))
    for state in range(len(STATE_NAMES))
)


def next_state(state: int, action: int) -> int:
    """Return the state that `action` leads to.

    Raises:
        InvariantError: `action` is not allowed in `state`.
    """
    following = _NEXT[state][action]
    if following < 0:
        raise InvariantError(f"no transition for {ACTION_NAMES[action]} in state {STATE_NAMES[state]}")
    return following
