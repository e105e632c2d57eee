"""Ends a forked process when its parent ends, also if the parent is killed."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1


class ParentWatch:
    """The parent makes it, and each child uses it. The thread that makes it must also fork."""

    def __init__(self) -> None:
        self._parent = os.getpid()
        if sys.platform == "linux":
            self._libc = ctypes.CDLL(None, use_errno=True)
        else:
            # No process writes here. Only the parent holds the writing end, so the pipe closes when the parent ends.
            self._reader, self._writer = os.pipe()

    def die_with_parent(self) -> None:
        """Have this process killed when the parent ends. A child calls it first of all."""
        if sys.platform == "linux":
            if self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
                raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
            if os.getppid() != self._parent:  # the parent had ended before this request
                os._exit(1)
        else:
            os.close(self._writer)
            exit_at_end_of(self._reader)


def exit_at_end_of(descriptor: int) -> None:
    """End this process at once when no process holds the other end of this pipe any more."""

    def watch() -> None:
        while os.read(descriptor, 4096):
            pass
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
