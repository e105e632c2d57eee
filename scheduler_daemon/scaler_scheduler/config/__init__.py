"""The scheduler's table of options, and the frozen `Config` with their values.

Begin with `config.py`. `limits.py` has the options that limit peers. `pending_config.py` finds changed options that
take effect only at the next start.
May import: commands.
"""
