"""What all commands share: options, configuration files, addresses, logs, key files, systemd.

Begin with `options.py` (one table of options a command) and `command_line.py`. The links in this folder lead to the
scheduler's files: both distributions need the same code and neither may import the other.
May import: nothing of this package.
"""
