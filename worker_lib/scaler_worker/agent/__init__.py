"""The host agent: its process, its session, the table of its workers, the object files that it serves.

Begin with `session.py` (all decisions of an agent, sans-IO) and `process.py` (the poll loop that carries them out).
May import: every other room.
"""
