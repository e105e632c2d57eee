"""`scaler_client doctor`: checks what goes wrong at first, and says what to do.

Begin with `examination.py`, which makes the checks in their order. Each works without those that have failed before it.
May import: what `inspect` may, and api.
"""
