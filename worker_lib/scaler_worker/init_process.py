"""Process 1 of a container without an init: it reaps the processes that have lost their parent."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT")


def run_as_child_of_init() -> None:
    """If this is process 1, go on in a child. Process 1 forwards signals to it, reaps, and ends with its status.

    The command itself must not reap what it has not started: its libraries wait for processes of theirs.
    """
    if os.getpid() != 1 or not hasattr(os, "fork"):
        return
    forwarded = [getattr(signal, name) for name in _FORWARDED]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [*forwarded, signal.SIGCHLD])
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)  # Ctrl-C in a terminal reaches process 1 alone, and comes once
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    while True:
        number = signal.sigwait([*forwarded, signal.SIGCHLD])
        if number == signal.SIGCHLD:
            _reap(child)
        else:
            with suppress(ProcessLookupError):
                os.kill(child, number)


def _reap(child: int) -> None:
    """Reap all processes that have ended. Ends this process if the child has."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                os._exit(code if code >= 0 else 128 - code)
