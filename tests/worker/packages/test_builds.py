"""The agent's side: processes that build, at the same time, cancelled, and killed."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.wheel_files import make_wheel
from tests.worker.packages.environment_requests import make_sdist, own_index, request_of, requirements

from scaler_client.packages.sources import read_packages
from scaler_worker.packages import builds
from scaler_worker.packages.builds import BuildResult, PackageBuilds
from scaler_worker.packages.cache import PackageCache
from scaler_worker.packages.preparation import Request

PATIENCE_SECONDS = 60.0


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    return folder


def results_of(running: PackageBuilds, number: int) -> list[BuildResult]:
    """Step until so many preparations have ended."""
    found: list[BuildResult] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(found) < number:
        assert time.monotonic() < deadline, found
        polled = running.filenos()
        select.select([each for each, _ in polled], [each for each, writes in polled if writes], [], 0.1)
        found += running.step()
    return found


def wait_for_file(path: Path) -> str:
    """Wait until a build has written a file, and return its content."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not path.exists() or not path.read_text():
        assert time.monotonic() < deadline
        select.select([], [], [], 0.02)
    return path.read_text()


def wait_for_end(pid: int) -> None:
    """Wait until a process is gone."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return
        except (FileNotFoundError, ProcessLookupError):
            return
        assert time.monotonic() < deadline
        select.select([], [], [], 0.02)


def release(results: list[BuildResult]) -> None:
    for result in results:
        for lock in result.locks:
            lock.release()


def test_several_agents_build_an_environment_once(tmp_path: Path, wheels: Path) -> None:
    make_wheel(wheels, "first")
    request = request_of(read_packages(wheels), tmp_path)
    agents = [PackageBuilds() for _ in range(3)]
    try:
        for agent in agents:
            agent.start("e", request)
        found = [result for agent in agents for result in results_of(agent, 1)]
        assert [result.error for result in found] == ["", "", ""]
        seconds = [result.prepared.build_seconds for result in found if result.prepared is not None]
        assert sorted(each > 0 for each in seconds) == [False, False, True]
        cache = PackageCache(request.cache, request.limit_bytes)
        (entry,) = cache.entries()
        assert not cache.remove(entry.key)  # all three agents use it
        release(found[:2])
        assert not cache.remove(entry.key)
        release(found[2:])
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not cache.remove(entry.key):  # the processes that have built it end by themselves
            assert time.monotonic() < deadline
        assert cache.entries() == []
    finally:
        for agent in agents:
            agent.close()


def slow_request(tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Request, Path]:
    """A build that does not end, and the file to which it writes its process id."""
    pid_file = tmp_path / "pid"
    code = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(1000)"
    make_sdist(wheels, "slow", code)
    for name, value in own_index(wheels).items():
        monkeypatch.setenv(name, value)
    return request_of(requirements(tmp_path, "slow==1.0\n"), tmp_path, allowed="any"), pid_file


def test_a_cancelled_build_ends_with_its_processes(
    tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, pid_file = slow_request(tmp_path, wheels, monkeypatch)
    agent = PackageBuilds()
    agent.start("slow", request)
    pid = int(wait_for_file(pid_file))
    agent.cancel("slow")
    wait_for_end(pid)
    agent.close()


def test_builds_of_a_killed_agent_end(tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request, pid_file = slow_request(tmp_path, wheels, monkeypatch)
    code = (
        "import json, select, sys; from scaler_worker.packages.builds import PackageBuilds;"
        "from scaler_worker.packages.build_process import request_from;"
        "agent = PackageBuilds(); agent.start('e', request_from(json.loads(sys.argv[1])));"
        "[(select.select([each for each, _ in agent.filenos()], [], [], 0.1), agent.step()) for _ in range(1000)]"
    )
    plain = json.dumps(builds.request_to_plain(request))
    agent = subprocess.Popen([sys.executable, "-c", code, plain])
    try:
        pid = int(wait_for_file(pid_file))
        os.kill(agent.pid, signal.SIGKILL)
        wait_for_end(pid)
    finally:
        agent.kill()
        agent.wait()
    # Its lock is released, and the next agent builds the environment from the beginning.
    (wheels / "slow-1.0.tar.gz").unlink()
    make_wheel(wheels, "slow")
    other = PackageBuilds()
    try:
        other.start("slow", request)
        (result,) = results_of(other, 1)
        assert result.error == "" and result.prepared is not None and result.prepared.build_seconds > 0
        release([result])
    finally:
        other.close()


def test_one_broken_build_does_not_disturb_others(tmp_path: Path, wheels: Path) -> None:
    make_wheel(wheels, "first")
    good = request_of(read_packages(wheels), tmp_path)
    bad_wheels = tmp_path / "bad"
    bad_wheels.mkdir()
    make_wheel(bad_wheels, "second", requires=["absent"])
    agent = PackageBuilds()
    try:
        agent.start("bad", request_of(read_packages(bad_wheels), tmp_path))
        agent.start("good", good)
        agent.start("wrong", replace(good, cache="/proc/nowhere"))
        found = {result.name: result for result in results_of(agent, 3)}
        assert "absent" in found["bad"].error and "\n" in found["bad"].error
        assert found["good"].prepared is not None
        assert found["wrong"].error.startswith("cannot make the cache of environments /proc/nowhere: ")
        release(list(found.values()))
    finally:
        agent.close()


def test_a_build_process_that_is_killed_is_said(tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request, pid_file = slow_request(tmp_path, wheels, monkeypatch)
    agent = PackageBuilds()
    try:
        agent.start("slow", request)
        pid = int(wait_for_file(pid_file))
        agent._running[0].process.kill()
        (result,) = results_of(agent, 1)
        assert result.error == "the process that builds it has ended"
        os.kill(pid, signal.SIGKILL)  # SIGKILL of the builder leaves its installer: nothing else could end it
    finally:
        agent.close()
