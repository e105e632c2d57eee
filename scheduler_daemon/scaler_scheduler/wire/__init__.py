"""Bytes <-> events and effects: the only code that knows how messages look on the wire."""
