"""Carries out what `AgentEnvironments` decides: cache and folders of environments, their packages and fork servers."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from ..environments.content_cache import default_cache_folder, temporary_cache_folder
from ..environments.preparation import (
    ContentsMissingError,
    EnvironmentFolders,
    PreparationError,
    PreparedEnvironment,
)
from ..fork_server.client import WorkerStarter
from ..fork_server.state_page import StatePage
from ..packages.builds import BuildResult, PackageBuilds
from ..packages.cache import Lock
from ..packages.launch import PreparedPackages
from ..packages.preparation import Request
from .disk_thread import DiskThread
from .effects import PrepareEnvironment, StoreContents
from .launched_fork_server import MODULE, LaunchedForkServer

CONTENTS_SHARE = 5
"""The contents may take one part in so many of the cache's limit, and installed packages the rest."""

_log = logging.getLogger(__name__)

Outcome = tuple[str, list[str]]
"""An error, or the contents that are missing, or neither."""


@dataclass(frozen=True)
class EnvironmentSettings:
    """What the operator has set."""

    allowed: str
    """Which environments: none, modules, locked or any."""
    cache: str
    """The folder of the cache; empty: the default."""
    limit_bytes: int
    """How large the cache may be."""
    build_seconds: float
    """How long packages may take to be installed."""


@dataclass
class _Installed:
    """Installed packages, and the locks that keep them in the cache."""

    packages: PreparedPackages
    locks: Sequence[Lock] = field(default_factory=tuple)


class EnvironmentHost:
    """The environments of one agent on its host. Work that may take long happens in a thread."""

    def __init__(self, settings: EnvironmentSettings, incarnation: int, page: StatePage) -> None:
        """
        Args:
            settings: what the operator has set.
            incarnation: the agent's own.
            page: the state page of its workers.
        """
        self._settings = settings
        self._places = [settings.cache] if settings.cache else [default_cache_folder(), temporary_cache_folder()]
        self._how = settings.limit_bytes // CONTENTS_SHARE, incarnation
        self._page = page
        self._folders: EnvironmentFolders | None = None
        self._failure = ""
        self._installed: dict[str, _Installed] = {}
        """By the name of the environment."""
        self._building: dict[str, Callable[[Outcome], None]] = {}
        self.thread = DiskThread("environments")
        self.builds = PackageBuilds()

    def missing_contents(self, names: Sequence[str]) -> list[str]:
        """Return those of these contents that the cache does not have."""
        folders = self._open()
        return list(names) if folders is None else folders.contents.missing(names)

    def store(self, effect: StoreContents, then: Callable[[tuple[list[str], str]], None]) -> None:
        """Write contents to the cache. `then` gets the names of those that are there, and why others are not."""
        self.thread.run(partial(self._store, effect), then)

    def prepare(self, effect: PrepareEnvironment, then: Callable[[Outcome], None]) -> None:
        """Prepare an environment. `then` gets an error, or the contents that are missing, or neither."""
        self.thread.run(partial(self._prepare, effect), partial(self._install, effect.name, then))

    def finish_builds(self) -> None:
        """Handle what the processes have sent that install packages. Call it when a descriptor of `builds` is ready."""
        for result in self.builds.step():
            then = self._building.pop(result.name, None)
            if then is None:
                _release(result.locks)
                continue
            then(self._built(result))

    def remove(self, name: str) -> None:
        """Remove what was prepared. Its packages stay in the cache."""
        self._release(name)
        folders = self._folders
        if folders is not None:
            self.thread.run(lambda: folders.remove(name))

    def find(self, name: str) -> PreparedEnvironment | None:
        """Return a prepared environment."""
        return None if self._folders is None else self._folders.prepared.get(name)

    def launcher(self, environment: PreparedEnvironment | None) -> Callable[[], WorkerStarter] | None:
        """Return what starts the fork server of an environment; None: the agent's own suits."""
        if environment is None or environment.packages is None:
            return None
        installed = self._installed.get(environment.name)
        if installed is None:
            return _without_packages
        packages = installed.packages
        locks = [lock.fileno() for lock in installed.locks]
        variables = packages.process_variables(os.environ)
        return partial(LaunchedForkServer, packages.arguments(MODULE, []), self._page, variables, locks)

    def close(self) -> None:
        """End the processes that install packages, and remove all folders of this agent."""
        self._building.clear()
        self.builds.close()
        for name in list(self._installed):
            self._release(name)
        if self._folders is not None:
            self._folders.close()

    def _open(self) -> EnvironmentFolders | None:
        """Make the folders when the first environment comes: most agents need none."""
        if self._folders is None and not self._failure:
            for place in self._places:
                try:
                    self._folders = EnvironmentFolders(place, *self._how)
                    self._failure = ""
                    self._places = [place]
                    break
                except OSError as error:
                    self._failure = f"the cache of environments cannot be used (--environment-cache): {error}"
            if self._failure:
                _log.error("%s", self._failure)
        return self._folders

    def _store(self, effect: StoreContents) -> tuple[list[str], str]:
        stored: list[str] = []
        folders = self._open()
        if folders is None:
            return stored, self._failure
        try:
            for content in effect.payloads:
                stored.append(folders.contents.add(content))
        except OSError as error:
            return stored, f"{error.strerror}: {self._places[0]} (--environment-cache)"
        return stored, ""

    def _install(self, name: str, then: Callable[[Outcome], None], outcome: Outcome) -> None:
        """Install the packages of an environment whose modules are prepared."""
        environment, folders = self.find(name), self._folders
        if outcome != ("", []) or environment is None or folders is None or environment.packages is None:
            then(outcome)
            return
        if name in self._installed:
            then(outcome)
            return
        if sys.platform == "win32":
            then(("packages of clients are installed on Linux and macOS alone", []))
            return
        digests = [file.sha256 for file in environment.packages.files]
        missing = folders.contents.missing(digests)
        if missing:
            folders.prepared.pop(name)
            then(("", missing))
            return
        files = {digest: folders.contents.path(digest) for digest in digests}
        settings = self._settings
        limit_bytes = settings.limit_bytes - settings.limit_bytes // CONTENTS_SHARE
        cache = os.path.join(self._places[0], "packages")
        self._building[name] = then
        self.builds.start(
            name, Request(environment.packages, files, settings.allowed, cache, limit_bytes, settings.build_seconds)
        )

    def _built(self, result: BuildResult) -> Outcome:
        """Keep installed packages."""
        if result.prepared is None:
            if self._folders is not None:
                self._folders.prepared.pop(result.name, None)
                if result.damaged:
                    _log.warning("%s: it is got again", result.error)
                    for digest in result.damaged:
                        self._folders.contents.remove(digest)
                    return "", list(result.damaged)
            return result.error, []
        prepared = result.prepared
        how = f"{prepared.build_seconds:.1f} s of {prepared.installer}" if prepared.build_seconds else "in the cache"
        _log.info("environment %s has its packages (%s, for Python %s)", result.name[:12], how, prepared.python)
        self._installed[result.name] = _Installed(prepared, result.locks)
        return "", []

    def _release(self, name: str) -> None:
        """Let the cache remove the packages of an environment, as far as no process uses them."""
        then = self._building.pop(name, None)
        if then is not None:
            self.builds.cancel(name)
        installed = self._installed.pop(name, None)
        if installed is not None:
            _release(installed.locks)

    def _prepare(self, effect: PrepareEnvironment) -> Outcome:
        folders = self._open()
        if folders is None:
            return self._failure, []
        try:
            folders.prepare(effect.name, effect.manifest)
        except PreparationError as error:
            return str(error), []
        except ContentsMissingError as error:
            return "", error.names
        except Exception as error:  # the agent and its other workers must go on
            _log.exception("an environment could not be prepared")
            return f"{type(error).__name__}: {error}", []
        return "", []


def _without_packages() -> WorkerStarter:
    raise FileNotFoundError("its packages are not installed any more")


def _release(locks: Sequence[Lock]) -> None:
    for lock in locks:
        lock.release()
