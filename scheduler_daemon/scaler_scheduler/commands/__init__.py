"""Shared code of all commands: options, configuration files, addresses, logs, key files, systemd.

Begin with `options.py` (each command has one table of options) and `command_line.py`. scaler_client has links to these
files: both distributions need the same code and neither may import the other.
May import: nothing of this package.
"""
