"""While it serves, a scheduler writes, makes and removes only its log and its sockets (checked with strace)."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.integration.commands import STOP_SECONDS, cluster, environment, scheduler_command
from tests.waiting import wait_until

from scaler_client import Client

SECONDS = 60

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not here: apt-get install strace")

CALLS = (
    "open,openat,openat2,creat,mkdir,mkdirat,mknod,mknodat,unlink,unlinkat,rmdir,rename,renameat,renameat2,link,linkat,"
    "symlink,symlinkat,truncate,chmod,fchmodat,chown,fchownat,bind"
)
READS = re.compile(r"^(?:\[pid +\d+\] |\d+ +)?open(?:at|at2)?\((?!.*(?:O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND))")
PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')


def touched(trace: str) -> set[str]:
    """The paths that were opened to write, made or removed, whether that succeeded or not."""
    found = set()
    for line in trace.splitlines():
        if READS.match(line) or "sa_family=AF_INET" in line or "sa_family=AF_NETLINK" in line:
            continue
        found.update(path for path in PATH.findall(line) if path)
    return found


def test_reads_and_writes_are_distinguished() -> None:
    reading = '12 openat(AT_FDCWD, "/etc/passwd", O_RDONLY|O_CLOEXEC) = 3'
    writing = '[pid  12] openat(AT_FDCWD, "/tmp/a", O_WRONLY|O_CREAT|O_APPEND, 0666) = 3\n12 unlink("/tmp/b") = 0'
    assert touched(reading) == set() and touched(writing) == {"/tmp/a", "/tmp/b"}


def test_it_writes_its_log_and_its_sockets_and_nothing_else(tmp_path: Path) -> None:
    address, monitor, log = f"ipc://{tmp_path}/scheduler", f"ipc://{tmp_path}/monitor", tmp_path / "log"
    trace = tmp_path / "trace"
    command = scheduler_command(address, "--monitor-address", monitor, "--logging-paths", str(log))
    # Modules of an installed scheduler are compiled already. Here Python may still compile them.
    variables = environment(PYTHONDONTWRITEBYTECODE="1")
    traced = ["strace", "-f", "-qq", "-e", f"trace={CALLS}", "-o", str(trace), *command]
    process = subprocess.Popen(traced, env=variables, stdin=subprocess.DEVNULL)
    try:
        wait_until(lambda: log.exists() and "monitor address" in log.read_text(), SECONDS)
        with cluster(tmp_path, address, 1), Client(address, timeout_seconds=SECONDS) as client:
            assert client.map(pow, [(2, i) for i in range(100)]) == [2**i for i in range(100)]
            reference = client.send_object(bytes(1 << 20))
            assert client.submit(len, reference).result(SECONDS) == 1 << 20
        [own] = [int(pid) for pid in children(process.pid)]
        subprocess.run(["kill", str(own)], check=True)
        assert process.wait(STOP_SECONDS * 4) == 0
    finally:
        process.kill()
        process.wait()
    allowed = {str(log), f"{tmp_path}/scheduler", f"{tmp_path}/monitor", "/dev/null", "/dev/tty"}
    # Clients on its host write large objects as files into its directory, and it removes them.
    files = {each for each in touched(trace.read_text()) if not each.startswith("/dev/shm/scaler-")}
    assert {str(log), f"{tmp_path}/scheduler"} <= files <= allowed


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
