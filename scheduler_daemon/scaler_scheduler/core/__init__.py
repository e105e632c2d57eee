"""The scheduler's state machine: events in, effects out. No sockets, no clock, no threads, no randomness, no logging."""
