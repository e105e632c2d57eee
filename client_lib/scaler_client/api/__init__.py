"""What applications call: clients, executors, map, graphs, objects, local clusters, helpers for futures.

Begin with `client.py` (the life of a client) and `submit.py` (its tasks). Applications import these names from
`scaler_client`.
May import: every room but adapters and the programs.
"""
