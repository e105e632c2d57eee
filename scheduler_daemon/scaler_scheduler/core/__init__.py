"""The scheduler's state machine: events in, effects out. No sockets, clock, threads, randomness or logging."""
