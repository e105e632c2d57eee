"""Many idle connections to the data address of a process that may open few files. Real processes."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from tests.integration.commands import cluster, scheduler
from tests.waiting import wait_until

from scaler_client import Client

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it needs prlimit and shared memory"),
]

SECONDS = 60
FILES = 400
SCAN_SECONDS = 3.0
BEATS = "--heartbeat-interval-seconds", "0.2"

CLIENT = """
import logging, resource, sys
from scaler_client import Client
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), int(sys.argv[2])))
client = Client(sys.argv[1], timeout_seconds=60)
first = client.send_object(bytes(2000000))
print("sum", client.submit(len, first).result(60), flush=True)
sys.stdin.readline()
second = client.send_object(bytes(2000001))
print("sum", client.submit(len, second).result(60), client.submit(len, first).result(60), flush=True)
with open("/etc/hosts"):
    client.disconnect()
"""


def first_free_descriptor(pid: int) -> int:
    """Return the lowest number that is not an open file of the process. With less, a poll of its sockets would fail."""
    taken = set(os.listdir(f"/proc/{pid}/fd"))
    return next(number for number in range(len(taken) + 1) if str(number) not in taken)


def scan(port: int) -> None:
    """Make idle connections for a while, up to FILES at once."""
    until = time.monotonic() + SCAN_SECONDS
    while time.monotonic() < until:
        with ExitStack() as made:
            for _ in range(FILES):
                with suppress(OSError):
                    made.enter_context(socket.create_connection(("127.0.0.1", port), 1))


def test_an_agent(tmp_path: Path) -> None:
    with scheduler(tmp_path) as daemon, cluster(tmp_path, daemon.address, 1, *BEATS) as host:
        port = int(host.logged(r"object files at tcp://[^:]*:(\d+)"))
        with Client(daemon.address, timeout_seconds=SECONDS) as client:
            assert client.submit(abs, -1).result(SECONDS) == 1
            pid = host.process.pid
            soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            assert soft == hard, "the agent has raised its limit"
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (FILES, FILES))
            scan(port)
            assert host.process.poll() is None
            assert client.submit(abs, -2).result(SECONDS) == 2
            kept = client.options(keep=True).submit(bytes, 2_000_000)
            assert len(kept.result(SECONDS)) == 2_000_000

            def is_open() -> bool:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    return True
                return False

            wait_until(is_open, what="the address is open again")
        assert "is closed for 1 s" in host.log()
        assert "Traceback" not in host.log()


def test_an_agent_that_can_open_no_file_for_a_while(tmp_path: Path) -> None:
    with scheduler(tmp_path) as daemon, cluster(tmp_path, daemon.address, 1, *BEATS) as host:
        with Client(daemon.address, timeout_seconds=SECONDS) as client:
            assert client.submit(abs, -1).result(SECONDS) == 1
            pid = host.process.pid
            _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            for _ in range(2):
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (first_free_descriptor(pid), hard))
                host.logged("(no further file can be opened, trying again)")
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))
                assert client.submit(abs, -2).result(SECONDS) == 2
        assert host.log().count("no further file can be opened") == 1
        assert "Traceback" not in host.log()


def test_a_client(tmp_path: Path) -> None:
    with scheduler(tmp_path) as daemon, cluster(tmp_path, daemon.address, 1):
        with subprocess.Popen(
            [sys.executable, "-c", CLIENT, daemon.address, str(FILES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert process.stdout is not None
                lines: list[str] = []
                while not lines or not lines[-1].startswith("sum"):
                    lines.append(process.stdout.readline())
                    assert lines[-1], lines
                [port] = [line.strip().rpartition(":")[2] for line in lines if "large objects at" in line]
                scan(int(port))
                out, _ = process.communicate("\n", timeout=SECONDS)
            finally:
                process.kill()
        assert "sum 2000001 2000000" in out
        assert process.returncode == 0
        assert "is closed for 1 s" in out and "I/O thread failed" not in out
