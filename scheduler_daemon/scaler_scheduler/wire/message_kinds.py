"""The names of messages in logs, errors and counters."""

from scaler_scheduler.wire.schema import Message__tag__

KIND_NAMES: tuple[str, ...] = tuple(Message__tag__.__members__)
"""Names by the ordinals of the schema."""
