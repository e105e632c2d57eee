"""How tasks end or wait again: results, errors, cancellation, suspension, graphs, kept results.

Begin with `results.py` (a worker's answers), `attempt_end.py` and `cancellation.py` (cancel, force, time limits).
May import: state, dispatch, report.
"""
