"""What the scheduler publishes for monitors: snapshots, history, graphs; and when.

Begin with `publisher.py` and `snapshots.py`.
May import: commands, net, wire, core.
"""
