"""The command `scaler_client` with its subcommands status, workers, story, dump and doctor.

Begin with `cli.py`; `status.py`, `workers.py`, `story.py`, `dump.py` and the folder `doctor` are the subcommands.
May import: errors, commands, protocol, net, monitor; the doctor also api and what is below it.
"""
