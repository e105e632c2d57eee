"""The host agent: its process, its session, the table of its workers, the object files that it serves.

Begin with `session.py` (all that an agent decides, sans-IO) and `process.py` (the poll loop that does it).
May import: every other room.
"""
