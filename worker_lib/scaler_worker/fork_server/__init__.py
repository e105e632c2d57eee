"""The fork server: a small process with one thread that forks workers and reaps them.

Begin with `process.py` (the fork server itself) and `client.py` (how the agent uses it).
May import: objects.
"""
