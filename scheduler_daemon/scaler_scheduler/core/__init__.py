"""The state machine of the scheduler: events in, effects out; no sockets, clock, threads or randomness.

Begin with `scheduler.py` (which part handles which event), `events.py` and `effects.py`. The parts are `state/`,
`dispatch/`, `report/`, `completion/` and `peers/`; each may import the parts before it. `invariants.py` checks what
must hold after every event.
May import: nothing of this package.
"""
