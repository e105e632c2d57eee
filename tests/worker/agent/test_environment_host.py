"""The agent's side of environments with packages: contents, levels, locks. The real installer, without a network."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.wheel_files import make_wheel

from scaler_client.environments.environment import Environment
from scaler_client.environments.module_upload import ModuleUpload
from scaler_worker.agent.effects import PrepareEnvironment, StoreContents
from scaler_worker.agent.environment_host import EnvironmentHost, EnvironmentSettings, Outcome
from scaler_worker.fork_server.state_page import StatePage
from scaler_worker.packages.cache import PackageCache

PATIENCE_SECONDS = 60.0
LIMIT_BYTES = 500 << 20


class Host:
    """One agent's environments, and what its loop does with them."""

    def __init__(self, folder: Path, allowed: str) -> None:
        settings = EnvironmentSettings(allowed, str(folder / "cache"), LIMIT_BYTES, PATIENCE_SECONDS)
        self.cache = PackageCache(str(folder / "cache" / "packages"), LIMIT_BYTES)
        self.host = EnvironmentHost(settings, 7, StatePage(1))
        self.outcomes: list[Outcome] = []

    def prepare(self, environment: Environment) -> Outcome:
        message = environment.message()
        self.host.prepare(PrepareEnvironment(message.name, bytes(message.manifest)), self.outcomes.append)
        self.run_until(lambda: bool(self.outcomes))
        return self.outcomes.pop()

    def store(self, environment: Environment) -> None:
        stored: list[tuple[list[str], str]] = []
        names = environment.message().contents
        self.host.store(StoreContents(tuple(environment.take(dict.fromkeys(names)))), stored.append)
        self.run_until(lambda: bool(stored))
        assert stored == [(names, "")]

    def run_until(self, is_over: object) -> None:
        assert callable(is_over)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_over():
            assert time.monotonic() < deadline
            polled = self.host.builds.filenos()
            writers = [each for each, writes in polled if writes]
            select.select([self.host.thread.fileno(), *(each for each, _ in polled)], writers, [], 0.1)
            self.host.thread.finish()
            self.host.finish_builds()

    def is_kept(self) -> bool:
        """Whether somebody keeps the only environment in the cache."""
        (entry,) = self.cache.entries()
        lock = self.cache.lock(entry.key, shares=False)
        if lock is not None:
            lock.release()
        return lock is None


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    (tmp_path / "wheels").mkdir()
    make_wheel(tmp_path / "wheels", "first")
    return tmp_path / "wheels"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path, "locked")
    yield made
    made.host.close()


def test_packages_are_installed_when_their_contents_are_here(host: Host, wheels: Path) -> None:
    environment = ModuleUpload(str(wheels)).read([])
    assert host.prepare(environment) == ("", environment.message().contents)
    host.store(environment)
    assert host.prepare(environment) == ("", [])
    assert host.prepare(environment) == ("", [])  # again: nothing is left to do
    found = host.host.find(environment.name)
    assert found is not None and found.packages is not None
    assert host.host.launcher(found) is not None


def test_an_environment_is_kept_as_long_as_it_is_used(host: Host, wheels: Path) -> None:
    environment = ModuleUpload(str(wheels)).read([])
    host.store(environment)
    assert host.prepare(environment) == ("", [])
    found = host.host.find(environment.name)
    assert host.is_kept()
    host.host.remove(environment.name)
    host.run_until(lambda: host.host.find(environment.name) is None and not host.is_kept())
    launch = host.host.launcher(found)
    assert launch is not None
    with pytest.raises(OSError, match="its packages are not installed any more"):
        launch()
    assert host.prepare(environment) == ("", [])
    assert host.is_kept()


def test_a_client_that_names_a_lower_level_than_it_needs(tmp_path: Path, wheels: Path) -> None:
    environment = ModuleUpload(str(wheels)).read([])
    made = Host(tmp_path, "modules")
    try:
        made.store(environment)
        error, missing = made.prepare(environment)
        assert error.startswith("this host takes no packages (modules is set)") and not missing
    finally:
        made.host.close()


def test_a_failed_installation_is_tried_again(host: Host, wheels: Path) -> None:
    make_wheel(wheels, "second", requires=["absent"])
    environment = ModuleUpload(str(wheels)).read([])
    host.store(environment)
    for _ in range(2):
        error, missing = host.prepare(environment)
        assert "absent" in error and not missing
        assert host.host.find(environment.name) is None
    assert host.cache.total_bytes() < 10 << 20


def test_contents_that_were_changed_in_the_cache_are_asked_for_again(
    host: Host, tmp_path: Path, wheels: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_wheel(wheels, "second")
    environment = ModuleUpload(str(wheels)).read([])
    host.store(environment)
    for path in (tmp_path / "cache" / "contents").iterdir():
        path.write_bytes(path.read_bytes()[:-1] + b"x")
    for number in (1, 2):  # the list of packages, then both wheels
        error, missing = host.prepare(environment)
        assert error == "" and len(missing) == number
        assert "is damaged: its hash is" in caplog.text
        assert not (tmp_path / "cache" / "contents" / missing[0]).exists()
        host.store(environment)
    assert host.prepare(environment) == ("", [])
