"""What holds for all tests."""

import signal

# A shell starts commands in the background with SIGINT ignored, processes inherit that, and tests send it to theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
