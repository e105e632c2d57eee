"""Errors of the wire."""


class WireError(Exception):
    """The bytes are not a message of this protocol that a peer may send to the scheduler."""
