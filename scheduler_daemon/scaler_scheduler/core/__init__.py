"""The state machine of the scheduler: events in, effects out; no sockets, clock, threads or randomness.

Begin with `scheduler.py` (which part takes which event), `events.py` and `effects.py`. The parts, each of which may
import those before it: `state/`, `dispatch/`, `report/`, `completion/`, `peers/`; `invariants.py` says what holds after
every event.
May import: nothing of this package.
"""
