"""What clients and workers do for all their messages."""

from __future__ import annotations

import errno
import subprocess
import sys
from typing import Any

import pytest
import zmq

from scaler_client.net.sockets import ReconnectWatcher

PROGRAM = """
from scaler_client.net.sockets import FREED_BYTES, keep_freed_memory

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

before = peak()
keep_freed_memory()
print(peak() - before < FREED_BYTES // 4)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_the_block_that_teaches_the_c_library_is_not_touched() -> None:
    """To touch it cost each client and each worker 10 to 30 ms at its start."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, stdout=subprocess.PIPE, text=True, timeout=60)
    assert done.stdout == "True\n"


class InterruptedSocket(zmq.Socket[bytes]):
    """Behaves as if a signal had come in its first call."""

    def monitor(self, *args: Any) -> None:
        """Fail once."""
        if not self.__dict__.get("was_interrupted"):
            self.__dict__["was_interrupted"] = True
            raise zmq.error.InterruptedSystemCall(errno.EINTR)
        super().monitor(*args)


def test_a_signal_does_not_end_the_start_of_a_client() -> None:
    with zmq.Context() as context:
        with InterruptedSocket(context, zmq.DEALER) as socket:
            reconnects = ReconnectWatcher(socket)
            assert socket.__dict__["was_interrupted"] and not reconnects.has_reconnected()
            reconnects.close()
