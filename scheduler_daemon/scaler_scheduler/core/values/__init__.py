"""Values: what clients sent, and results that are kept for tasks that read them; and where copies of them are.

Begin with `copies.py`, the relation of copies, which nothing else writes. `core/state/value_states.py` has the states
of a copy and the actions. `objects.py` is the table of values.
May import: state.
"""
