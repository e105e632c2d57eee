"""The command `scaler_client`: status, workers, story, dump, problems.

Begin with `cli.py`; each subcommand is a module of its name.
May import: errors, commands, protocol, net, monitor.
"""
