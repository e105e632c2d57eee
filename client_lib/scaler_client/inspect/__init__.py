"""The command `scaler_client`: status, workers, story, dump, problems.

Begin with `cli.py`; `status.py`, `workers.py`, `story.py` and `dump.py` are subcommands.
May import: errors, commands, protocol, net, monitor.
"""
