"""Another fork server, in an interpreter of its own: workers with the packages of an environment need it.

Its command ends with three numbers. The first two are descriptors that the process inherits: the socket to the agent,
and the memory of the state page. The third one is the number of slots of this page.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

from scaler_client.commands import module_folders

from ..fork_server.client import ForkServer
from ..fork_server.json_lines import JsonLines
from ..fork_server.process import AGENT_SIGNALS, run_fork_server
from ..fork_server.state_page import StatePage

MODULE = "scaler_worker.agent.launched_fork_server"

END_SECONDS = 5.0
"""How long such a process may take to end after its socket is closed."""


class LaunchedForkServer(ForkServer):
    """A fork server in an interpreter of its own, from the agent's side."""

    def __init__(
        self, command: Sequence[str], page: StatePage, environ: Mapping[str, str], locks: Sequence[int] = ()
    ) -> None:
        """Start it.

        Args:
            command: runs this module in the other interpreter.
            page: the state page of the agent.
            environ: the environment variables of the process.
            locks: descriptors that the process keeps open as long as it lives.

        Raises:
            OSError: the interpreter cannot be started.
        """
        ours, theirs = socket.socketpair()
        numbers = map(str, (theirs.fileno(), page.descriptor, page.slots))
        try:
            self._process = subprocess.Popen(
                [*command, *numbers],
                pass_fds=(theirs.fileno(), page.descriptor, *locks),
                stdin=subprocess.DEVNULL,
                env=dict(environ),
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self.pid = self._process.pid
        self._channel = JsonLines(ours)

    def close(self) -> None:
        """Have it end its workers and itself."""
        self._channel.end_writing()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._channel.close()


def main() -> None:
    """Run the fork server in this process."""
    module_folders.restore(os.environ)
    signal.pthread_sigmask(signal.SIG_BLOCK, AGENT_SIGNALS)
    connection, page, slots = map(int, sys.argv[1:4])
    from ..worker.process import run_worker  # before the forks: all workers share its memory

    run_fork_server(socket.socket(fileno=connection), run_worker, StatePage(slots, page), None)


if __name__ == "__main__":
    main()
