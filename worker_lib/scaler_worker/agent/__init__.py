"""The host agent: its process, its session, the table of its workers, the object files of its host.

Begin with `session.py` (the decisions of an agent, sans-IO) and `process.py` (the poll loop, which carries them out).
May import: every other room.
"""
