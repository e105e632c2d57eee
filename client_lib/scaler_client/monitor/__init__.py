"""Reads what a scheduler publishes: the socket, and a sans-IO reader of snapshots and history.

Begin with `reader.py` (follows one scheduler) and `snapshot_view.py` (its newest snapshot as rows). The programs in
`inspect/`, `top/`, `ui/` and `exporter/` show it.
May import: errors, commands, protocol, net.
"""
