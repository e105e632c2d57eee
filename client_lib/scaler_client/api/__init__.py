"""The public API: clients, executors, map, graphs, objects, local clusters, waiting for futures.

Begin with `client.py` (connecting and disconnecting) and `submit.py` (submitting tasks). Applications import the public
names from `scaler_client`.
May import: every room except adapters and the programs.
"""
