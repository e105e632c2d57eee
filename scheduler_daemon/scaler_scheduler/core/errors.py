"""What can go wrong in the core."""


class ProtocolError(Exception):
    """A legal message that is wrong here. It changed nothing; its sender is told the text."""


class InvariantError(Exception):
    """The core contradicts itself: a defect. The process ends with it, and clients submit all to the next."""
