"""The transition table. Runs under PyPy and CPython."""

from __future__ import annotations

import itertools

import pytest

from scaler_scheduler.core.errors import InvariantError
from scaler_scheduler.core.state import transitions

ALL_STATES = range(len(transitions.STATE_NAMES))
ALL_ACTIONS = range(len(transitions.ACTION_NAMES))
ENDS = {transitions.RESOLVED, transitions.CANCELLED}


def test_every_pair_is_in_the_table_or_raises():
    for state, action in itertools.product(ALL_STATES, ALL_ACTIONS):
        following = transitions.TRANSITIONS.get((state, action))
        if following is not None:
            assert transitions.next_state(state, action) == following
            continue
        names = f"no transition for {transitions.ACTION_NAMES[action]} in state {transitions.STATE_NAMES[state]}"
        with pytest.raises(InvariantError, match=names):
            transitions.next_state(state, action)


def test_the_names_are_the_constants():
    for names in (transitions.STATE_NAMES, transitions.ACTION_NAMES):
        for number, name in enumerate(names):
            assert getattr(transitions, name.upper().replace(" ", "_")) == number


def test_the_table_names_known_states_and_actions_only():
    for (state, action), following in transitions.TRANSITIONS.items():
        assert state in ALL_STATES and action in ALL_ACTIONS and following in ALL_STATES


def test_ends_are_final_and_every_other_state_is_reached_and_left():
    for state in ALL_STATES:
        leaving = {following for (begun, _), following in transitions.TRANSITIONS.items() if begun == state}
        assert (leaving == set()) == (state in ENDS)
    reached = {transitions.WAITING, transitions.BLOCKED}  # the states in which tasks begin
    while True:
        further = {following for (begun, _), following in transitions.TRANSITIONS.items() if begun in reached}
        if further <= reached:
            break
        reached |= further
    assert reached == set(ALL_STATES)


def test_every_action_has_its_place():
    assert {action for _, action in transitions.TRANSITIONS} == set(ALL_ACTIONS)
    # A held task is cancelled only by its worker's answer. A waiting task has no result.
    assert (transitions.DISPATCHED, transitions.CANCEL) not in transitions.TRANSITIONS
    assert (transitions.WAITING, transitions.RESULT) not in transitions.TRANSITIONS
