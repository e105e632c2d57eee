"""What holds for all tests."""

import signal

import hypothesis

# A shell starts commands in the background with SIGINT ignored, processes inherit that, and tests send it to theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No time limit for one example: it would fail on a machine that other programs keep busy.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")
