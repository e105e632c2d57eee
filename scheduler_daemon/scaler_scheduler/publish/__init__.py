"""What the scheduler publishes for monitors, and when: snapshots, history, graphs. Memory given back when idle.

Begin with `publisher.py` and `snapshots.py`.
May import: commands, net, wire, core.
"""
