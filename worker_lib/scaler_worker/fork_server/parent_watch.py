"""Makes a forked process end when the process that forked it ends, however that happens."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1


class ParentWatch:
    """Made in the parent, which must fork from the thread that made it; used in each child."""

    def __init__(self) -> None:
        self._parent = os.getpid()
        if sys.platform == "linux":
            self._libc = ctypes.CDLL(None, use_errno=True)
        else:
            # Nobody ever writes here; only the parent holds the writing end, so its end is the end of the pipe.
            self._reader, self._writer = os.pipe()

    def die_with_parent(self) -> None:
        """Called by a child first thing: from now on it is killed when the parent is gone."""
        if sys.platform == "linux":
            if self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
                raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
            if os.getppid() != self._parent:  # it was gone before the request was in place
                os._exit(1)
        else:
            os.close(self._writer)
            exit_at_end_of(self._reader)


def exit_at_end_of(descriptor: int) -> None:
    """End this process at once when nobody holds the other end of this pipe any more."""

    def watch() -> None:
        while os.read(descriptor, 4096):
            pass
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
