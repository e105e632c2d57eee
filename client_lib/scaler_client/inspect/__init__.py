"""The command `scaler_client` with its subcommands status, workers, story, dump, doctor and environment.

Begin with `cli.py`; `status.py`, `workers.py`, `story.py`, `dump.py`, `environment.py` and the folder `doctor` are the
subcommands.
May import: errors, commands, packages, protocol, net, monitor; the doctor also api and what is below it.
"""
