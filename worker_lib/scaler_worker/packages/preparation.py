"""Prepares the packages of one environment on this host: checks what is allowed, looks into the cache, builds.

It blocks, so it runs in a process of its own (build_process.py), which the agent may end at any time. Begin with
`prepare`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import select
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from scaler_client.errors import PackagesError
from scaler_client.packages.package_set import (
    CONSTRAINTS_FILE,
    PEX,
    REQUIREMENTS_FILE,
    PackageFile,
    PackageSet,
    hash_of_file,
)
from scaler_client.packages.requirements import RequirementsText, parse_canonical

from .cache import DOWNLOADS, CacheError, Lock, PackageCache, folder_bytes
from .installer import (
    Installer,
    InstallError,
    Limits,
    find_installer,
    install_command,
    installer_variables,
    run_limited,
)
from .interpreters import Interpreter, find_interpreter, minor_versions, without_python_variables
from .launch import PreparedPackages
from .scaler_runtime import OWN, REQUIRED, linked_runtime, make_links, own_package_links, requirements, runtime_key
from .seal import BrokenSealError, read_seal, write_seal

LOCKED = "locked"
ANY = "any"
FORMAT = 1
WAIT_SECONDS = 0.1
"""Time between two attempts to lock an environment that another agent builds."""
_PEX_CHECK = "import sys;print('scaler-python','%d.%d'%sys.version_info[:2])"

_log = logging.getLogger(__name__)


class CannotPrepareError(Exception):
    """The environment cannot be made here. The text says why, and ends with the installer's own lines.

    Args:
        text: why.
        damaged: the SHA-256 of contents that are missing, or were changed since they came.
    """

    def __init__(self, text: str, damaged: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.damaged = damaged


class _ContentError(Exception):
    """Contents are missing, or were changed."""

    def __init__(self, text: str, digests: Sequence[str]) -> None:
        super().__init__(text)
        self.digests = digests


@dataclass(frozen=True)
class Request:
    """What is to be prepared."""

    packages: PackageSet
    files: dict[str, str]
    """The paths of the files' contents, by sha256. Their hashes are checked again."""
    allowed: str
    """What the operator allows: `locked` or `any`."""
    cache: str
    """The folder of the cache."""
    limit_bytes: int
    """How large the cache may be."""
    seconds: float
    """How long a build may take."""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    cancelled: int = 0
    """A descriptor: the build ends when it can be read."""


def prepare(request: Request) -> tuple[PreparedPackages, list[Lock]]:
    """Prepare packages. Builds them if they are not in the cache.

    Returns:
        How to run Python with these packages, and the locks that keep them in the cache.

    Raises:
        CannotPrepareError: they are not allowed here, or the build has failed.
    """
    try:
        text = _check(request)
        return _Preparation(request, text).run()
    except _ContentError as error:
        raise CannotPrepareError(str(error), error.digests) from None
    except (PackagesError, CacheError, InstallError) as error:
        raise CannotPrepareError(str(error)) from None
    except OSError as error:
        raise CannotPrepareError(f"the cache of environments {request.cache}: {error}") from None


def _check(request: Request) -> RequirementsText | None:
    """Check the packages before anything is run. Returns the requirements; None for a PEX file.

    Raises:
        PackagesError: a file is damaged, a line is not allowed, or the operator does not allow such packages.
    """
    packages = request.packages
    if request.allowed not in (LOCKED, ANY):
        option = "scaler_cluster --environments locked, or any"
        raise PackagesError(f"this host takes no packages ({request.allowed} is set): {option}")
    if packages.kind == PEX:
        return None
    wheels = [file.name for file in packages.files if file.name.endswith(".whl")]
    text = RequirementsText()
    for name in (REQUIREMENTS_FILE, CONSTRAINTS_FILE):
        file = packages.file(name)
        if file is None:
            continue
        with open(_content(request, file), "rb") as content:
            data = content.read(file.size + 1)
        _check_hash(file, hashlib.sha256(data).hexdigest())
        try:
            read = parse_canonical(data.decode(), wheels if name == REQUIREMENTS_FILE else (), name)
        except UnicodeDecodeError as error:
            raise PackagesError(f"{name}: {error}") from None
        if name == REQUIREMENTS_FILE:
            text.requirements, text.options = read.requirements, read.options
        elif read.options:
            raise PackagesError(f"{name}: options are not allowed here")
        else:
            text.constraints = read.requirements
    if request.allowed != ANY and text.unlocked:
        hint = "give exact versions with hashes (scaler_client environment lock --hashes), or a folder of wheels"
        raise PackagesError(f"this host takes locked packages alone (--environments), and {text.unlocked}: {hint}")
    return text


def _content(request: Request, file: PackageFile) -> str:
    path = request.files.get(file.sha256)
    if path is None or not os.path.isfile(path):
        raise _ContentError(f"{file.name} of the environment did not arrive", [file.sha256])
    return path


def _check_hash(file: PackageFile, found: str) -> None:
    if found != file.sha256:
        text = f"is damaged: its hash is {found[:12]}..., not {file.sha256[:12]}..."
        raise _ContentError(f"{file.name} of the environment {text}", [file.sha256])


class _Preparation:
    """One environment, from the look into the cache to the result."""

    def __init__(self, request: Request, text: RequirementsText | None) -> None:
        self._request = request
        self._text = text
        self._packages = request.packages
        self._cache = PackageCache(request.cache, request.limit_bytes)
        self._deadline = time.monotonic() + request.seconds
        self._python = self._find_python()
        platform_facts = [sys.platform, platform.machine(), *platform.libc_ver()]
        facts = [FORMAT, self._packages.key, self._python.version, os.path.realpath(self._python.path), platform_facts]
        self._key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()

    def run(self) -> tuple[PreparedPackages, list[Lock]]:
        with ExitStack() as undo:
            locks = []
            facts, lock, seconds = self._entry(self._key, self._build)
            undo.callback(lock.release)
            locks.append(lock)
            if self._python.path == sys.executable:
                runtime = linked_runtime(self._cache.root, self._python.version)
            else:
                _, runtime_lock, _ = self._entry(runtime_key(self._python.version), self._build_runtime)
                undo.callback(runtime_lock.release)
                locks.append(runtime_lock)
                runtime = self._cache.folder(runtime_key(self._python.version))
            undo.pop_all()
        return self._result(facts, runtime, seconds), locks

    def _find_python(self) -> Interpreter:
        environ, wanted = self._request.environ, self._packages.python
        found = find_interpreter(wanted, environ, find_uv_if_any(environ))
        if found is None:
            there = ", ".join(minor_versions(environ)) or "none"
            raise PackagesError(
                f"the environment needs Python {wanted}, which this host does not have (CPythons here: {there}): "
                f"install python{wanted} on PATH, by pyenv or by uv, or run the program with one of these"
            )
        return found

    def _entry(self, key: str, build: Callable[[str], str]) -> tuple[dict[str, Any], Lock, float]:
        """Find an entry of the cache, or build it. Returns its facts, the shared lock, and how long the build took."""
        seconds = 0.0
        while True:
            lock = self._cache.lock(key, shares=True)
            if lock is not None:
                try:
                    facts = self._sealed(key)
                except BaseException:
                    lock.release()
                    raise
                if facts is not None:
                    self._cache.touch(key)
                    return facts, lock, seconds
                lock.release()
            lock = self._cache.lock(key, shares=False)
            if lock is None:
                self._wait()
                continue
            try:
                if self._sealed(key, is_alone=True) is None:
                    began = time.monotonic()
                    self._build_alone(key, build)
                    seconds = time.monotonic() - began
            finally:
                lock.release()

    def _sealed(self, key: str, is_alone: bool = False) -> dict[str, Any] | None:
        """The facts of a finished entry whose files are as they were; None: it must be built."""
        try:
            return read_seal(self._cache.folder(key))
        except BrokenSealError as error:
            if is_alone:
                _log.warning("environment %s in %s is made again: %s", key[:12], self._cache.root, error)
            return None  # if others use it, wait until they have ended

    def _wait(self) -> None:
        """Wait a moment for another process that builds or uses this entry."""
        if time.monotonic() > self._deadline:
            raise InstallError(
                "another process of this host builds the environment, or uses one whose files were changed, for more "
                f"than {self._request.seconds:.0f} seconds"
            )
        if select.select([self._request.cancelled], [], [], WAIT_SECONDS)[0]:
            raise InstallError("the agent has ended, or does not need the environment any more")

    def _build_alone(self, key: str, build: Callable[[str], str]) -> None:
        """Build an entry whose lock this process holds alone. It is finished with its seal, or not at all."""
        folder = self._cache.folder(key)
        self._cache.clear(key)
        os.makedirs(os.path.join(folder, "tmp"), 0o700)
        try:
            installer = build(folder)
            shutil.rmtree(os.path.join(folder, "tmp"), ignore_errors=True)
            size = folder_bytes(folder)
            self._cache.set_size(key, size)
            write_seal(folder, {"installer": installer})
        except BaseException:
            self._cache.clear(key)
            self._cache.set_size(key, 0)
            raise
        self._cache.make_room(key)

    def _build(self, folder: str) -> str:
        """Build the environment itself. Returns the name of the installer."""
        files = os.path.join(folder, "files")
        os.mkdir(files)
        self._copy_contents(files)
        if self._text is None:
            return self._unpack_pex(folder)
        arguments = ["-r", _written(files, REQUIREMENTS_FILE, self._text.canonical())]
        if "--no-index" in self._text.options:  # a folder of wheels. Otherwise this would replace UV_FIND_LINKS
            arguments += ["--find-links", files]
        if self._text.constraints:
            arguments += ["-c", _written(files, CONSTRAINTS_FILE, self._text.canonical_constraints())]
        installer = find_installer(self._request.environ)
        venv = os.path.join(folder, "venv")
        variables = without_python_variables(self._request.environ)
        command = [self._python.path, "-m", "venv", "--without-pip", venv]
        self._run(command, variables, folder, folder, "venv")
        is_locked = not self._text.unlocked
        self._install(installer, os.path.join(venv, "bin", "python"), arguments, folder, files, is_locked=is_locked)
        shutil.rmtree(files)
        return installer.name

    def _copy_contents(self, files: str) -> None:
        """Copy the wheels, or the PEX file, and check the copies. All that are damaged are named at once."""
        failed: list[_ContentError] = []
        for file in self._packages.files:
            if file.name not in (REQUIREMENTS_FILE, CONSTRAINTS_FILE):
                try:
                    copy = shutil.copyfile(_content(self._request, file), os.path.join(files, file.name))
                    _check_hash(file, hash_of_file(copy)[0])
                except _ContentError as error:
                    failed.append(error)
        if failed:
            raise _ContentError(str(failed[0]), [digest for error in failed for digest in error.digests])

    def _build_runtime(self, folder: str) -> str:
        """Install what scaler_worker requires, for another version of Python than the agent's."""
        target = os.path.join(folder, REQUIRED)
        os.mkdir(target)
        installer = find_installer(self._request.environ)
        arguments = ["--target", target, "--only-binary", ":all:", *requirements()]
        try:
            self._install(installer, self._python.path, arguments, folder, folder, is_locked=False)
        except InstallError as error:
            raise InstallError(
                f"this host runs Python {sys.version.split()[0]}, and what scaler_worker requires could not be "
                f"installed for Python {self._python.version}: {error}"
            ) from None
        make_links(os.path.join(folder, OWN), dict(own_package_links()))
        return installer.name

    def _install(
        self, installer: Installer, python: str, arguments: list[str], folder: str, where: str, *, is_locked: bool
    ) -> None:
        downloads = os.path.join(self._cache.root, DOWNLOADS)
        self._cache.limit_downloads(self._request.limit_bytes // 2)
        lock = self._cache.downloads_lock(shares=True)
        while lock is None:
            self._wait()
            lock = self._cache.downloads_lock(shares=True)
        try:
            temporary = os.path.join(folder, "tmp")
            variables = installer_variables(self._request.environ, downloads, temporary, is_locked=is_locked)
            command = install_command(installer, python, arguments, is_locked=is_locked)
            self._run(command, variables, where, folder, installer.name)
        finally:
            lock.release()

    def _unpack_pex(self, folder: str) -> str:
        """Have a PEX file unpack itself, and see which Python it runs in."""
        command, variables = self._pex_command(folder)
        environment = {**without_python_variables(self._request.environ), **variables}
        output = self._run([*command, "-c", _PEX_CHECK], environment, folder, folder, "the PEX file")
        if f"scaler-python {self._packages.python}" not in output:
            raise InstallError(f"the PEX file does not run in Python {self._packages.python}: {output[-300:]}")
        return "pex"

    def _pex_command(self, folder: str) -> tuple[list[str], dict[str, str]]:
        file = os.path.join(folder, "files", self._packages.files[0].name)
        variables = {"PEX_INTERPRETER": "1", "PEX_ROOT": os.path.join(folder, "pex"), "PEX_INHERIT_PATH": "false"}
        return [self._python.path, file], variables

    def _run(self, command: list[str], variables: Mapping[str, str], where: str, folder: str, what: str) -> str:
        request = self._request
        key = os.path.basename(folder)
        limits = Limits(
            self._deadline, request.seconds, request.limit_bytes, lambda: self._exceeded(key, folder), request.cancelled
        )
        return run_limited(command, variables, where, limits, what)

    def _exceeded(self, key: str, folder: str) -> str:
        """Note the size of the build, and make room for it. Returns why it must end, or nothing."""
        size = folder_bytes(folder)
        self._cache.set_size(key, size)
        if self._cache.total_bytes() <= self._request.limit_bytes or self._cache.make_room(key):
            return ""
        limit, mib = self._request.limit_bytes, 1 << 20
        return (
            f"with {size / mib:.0f} MiB it finds no room in the cache of {limit / mib:.0f} MiB "
            f"(--environment-cache-limit), of which {self._cache.total_bytes() / mib:.0f} MiB are in use"
        )

    def _result(self, facts: dict[str, Any], runtime: str, seconds: float) -> PreparedPackages:
        folder = self._cache.folder(self._key)
        locks = [self._cache.lock_path(self._key)]
        if self._python.path != sys.executable:
            locks.append(self._cache.lock_path(runtime_key(self._python.version)))
        scripts = ""
        if self._packages.kind == PEX:
            command, variables = self._pex_command(folder)
        else:
            scripts = os.path.join(folder, "venv", "bin")
            command, variables = [os.path.join(scripts, "python")], {"VIRTUAL_ENV": os.path.join(folder, "venv")}
        return PreparedPackages(
            tuple(command), variables, scripts, runtime, tuple(locks), self._python.version, facts["installer"], seconds
        )


def find_uv_if_any(environ: Mapping[str, str]) -> str:
    """The program uv, or nothing, also where there is no installer at all."""
    try:
        return find_installer(environ).uv
    except InstallError:
        return ""


def _written(folder: str, name: str, content: str) -> str:
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)
    return path
