"""A process that runs out of file descriptors."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest
from tests.client.scheduler_stand_in import WAIT_SECONDS, FakeScheduler
from tests.client.session.stand_ins import be_silent, joined_session

from scaler_client.net import file_limit
from scaler_client.net.file_limit import FOR_CLIENT, check_free_files, file_shortage

PROGRAM = f"""
import os, resource, sys
from scaler_client import Client
from scaler_client.io import connection, io_thread
from scaler_client.net import file_limit

_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (150, hard))
taken = []
try:
    while True:
        taken.append(os.dup(0))
except OSError:
    pass
for left in range({FOR_CLIENT} + 1):
    try:
        client = Client(sys.argv[1], timeout_seconds=20)
    except OSError as error:
        assert left < {FOR_CLIENT} and error.errno == 24, (left, error)
        said = str(error)
    else:
        assert left == {FOR_CLIENT}, left
    os.close(taken.pop())
print(said)
client.disconnect()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts the descriptors that ZeroMQ takes there")
def test_too_few_descriptors_raise_an_error_that_names_the_limit(scheduler: FakeScheduler) -> None:
    """Without the check, libzmq aborts the process with 3 to 5 descriptors left."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, scheduler.address], capture_output=True, text=True, timeout=3 * WAIT_SECONDS
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "[Errno 24] too few file descriptors are left for a client: this process may open 150 files and has about as "
        "many open. Close some, or raise the limit: ulimit -n (hard limit: "
    )


def fail_with(number: int) -> object:
    def fail(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    return fail


def test_the_text_for_a_system_without_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    assert file_shortage() == ""
    monkeypatch.setattr(os, "open", fail_with(errno.ENFILE))
    assert "fs.file-max" in file_shortage()
    monkeypatch.setattr(os, "open", fail_with(errno.EACCES))
    assert file_shortage() == ""
    check_free_files("a client")
    monkeypatch.setattr(os, "open", fail_with(errno.EMFILE))
    monkeypatch.setitem(sys.modules, "resource", None)
    with pytest.raises(OSError, match="reached its limit of open files"):
        file_limit.check_free_files("a client")


def test_the_error_of_a_lost_scheduler_names_the_shortage() -> None:
    session = joined_session()
    session.file_shortage = lambda: "too few file descriptors are left"
    be_silent(session, 0.0, 200.0)
    assert str(session.loss).endswith(" seconds: too few file descriptors are left")
