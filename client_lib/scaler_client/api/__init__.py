"""What applications call: clients, futures' helpers, executors, map, graphs, objects, local clusters.

Begin with `client.py` (the life of a client) and `submit.py` (its tasks). Applications import these names from
`scaler_client` itself.
May import: every room but adapters and the programs.
"""
