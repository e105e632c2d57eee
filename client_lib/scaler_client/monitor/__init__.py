"""Reads what a scheduler publishes: the monitor socket, and a sans-IO reader of snapshots and history.

Begin with `reader.py` (follows one scheduler) and `snapshot_view.py` (the newest snapshot as rows).
`inspect/`, `top/`, `ui/` and `exporter/` are the programs that show the result.
May import: errors, commands, protocol, net.
"""
