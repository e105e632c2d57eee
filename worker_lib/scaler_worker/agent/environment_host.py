"""Carries out what `AgentEnvironments` decides: the cache, the folders, the fork servers of environments."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
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
from .disk_thread import DiskThread
from .effects import PrepareEnvironment, StoreContents
from .launched_fork_server import LaunchedForkServer

_log = logging.getLogger(__name__)


class EnvironmentHost:
    """The environments of one agent on its host. Work that may take long happens in a thread."""

    def __init__(self, cache_folder: str, limit_bytes: int, incarnation: int, page: StatePage) -> None:
        """
        Args:
            cache_folder: the folder of the cache; empty: the default.
            limit_bytes: the most bytes of contents in the cache.
            incarnation: the agent's own.
            page: the state page of its workers.
        """
        self._places = [cache_folder] if cache_folder else [default_cache_folder(), temporary_cache_folder()]
        self._how = limit_bytes, incarnation
        self._page = page
        self._folders: EnvironmentFolders | None = None
        self._failure = ""
        self.thread = DiskThread()

    def missing_contents(self, names: Sequence[str]) -> list[str]:
        """Return those of these contents that the cache does not have."""
        folders = self._open()
        return list(names) if folders is None else folders.contents.missing(names)

    def store(self, effect: StoreContents, then: Callable[[tuple[list[str], str]], None]) -> None:
        """Write contents to the cache. `then` gets the names of those that are there, and why others are not."""
        self.thread.run(partial(self._store, effect), then)

    def prepare(self, effect: PrepareEnvironment, then: Callable[[tuple[str, list[str]]], None]) -> None:
        """Prepare an environment. `then` gets an error, or the contents that are missing, or neither."""
        self.thread.run(partial(self._prepare, effect), then)

    def remove(self, name: str) -> None:
        """Remove what was prepared."""
        folders = self._folders
        if folders is not None:
            self.thread.run(lambda: folders.remove(name))

    def find(self, name: str) -> PreparedEnvironment | None:
        """Return a prepared environment."""
        return None if self._folders is None else self._folders.prepared.get(name)

    def launcher(self, environment: PreparedEnvironment | None) -> Callable[[], WorkerStarter] | None:
        """Return what starts the fork server of an environment; None: the agent's own suits."""
        if environment is None or not environment.python:
            return None
        return partial(LaunchedForkServer, environment.python, self._page, os.environ)

    def close(self) -> None:
        """Remove all folders."""
        if self._folders is not None:
            self._folders.close()

    def _open(self) -> EnvironmentFolders | None:
        """Make the folders when the first environment comes: most agents need none."""
        if self._folders is None and not self._failure:
            for place in self._places:
                try:
                    self._folders = EnvironmentFolders(place, *self._how)
                    self._failure = ""
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

    def _prepare(self, effect: PrepareEnvironment) -> tuple[str, list[str]]:
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
