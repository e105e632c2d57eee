"""The command `scaler_client` with its subcommands status, workers, story and dump.

Begin with `cli.py`; `status.py`, `workers.py`, `story.py` and `dump.py` are the subcommands.
May import: errors, commands, protocol, net, monitor.
"""
