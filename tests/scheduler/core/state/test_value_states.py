"""The tables of states of values and of their copies. Runs under PyPy and CPython."""

from __future__ import annotations

import pytest

from scaler_scheduler.core.errors import InvariantError
from scaler_scheduler.core.state import value_states
from scaler_scheduler.core.state.value_states import (
    ABSENT,
    ARRIVE,
    CACHED,
    COPY_STATE_NAMES,
    DAMAGE,
    DROP,
    FILL,
    PROMOTE,
    THERE,
    next_copy_state,
    next_value_state,
)


@pytest.mark.parametrize("action", [ARRIVE, DAMAGE, DROP])
def test_what_peers_say_is_allowed_in_every_state(action):
    """No message from outside ends the scheduler."""
    for state in range(len(COPY_STATE_NAMES)):
        next_copy_state(state, action)


def test_other_actions_are_errors():
    with pytest.raises(InvariantError, match="promote of a copy absent"):
        next_copy_state(ABSENT, PROMOTE)
    with pytest.raises(InvariantError, match="write of a copy cached"):
        next_copy_state(CACHED, value_states.WRITE)  # a file of another attempt is of another value
    with pytest.raises(InvariantError, match="fill of a value dropped"):
        next_value_state(value_states.DROPPED, FILL)
    assert next_value_state(value_states.MAKING, FILL) == THERE
