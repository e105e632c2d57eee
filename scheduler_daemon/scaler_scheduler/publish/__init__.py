"""Publishing for monitors: snapshots, history, graphs. Also the release of memory when the scheduler is idle.

Begin with `publisher.py` and `snapshots.py`.
May import: commands, net, wire, core.
"""
