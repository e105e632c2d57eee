"""The scheduler's options as a table, and the frozen `Config` that comes out of them.

Begin with `config.py`; `limits.py` has the options that bound a peer, `pending_config.py` says which changed options
wait for the next start.
May import: commands.
"""
