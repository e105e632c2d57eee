"""Which version of a program's own modules a function needs.

Functions and classes of modules are sent by name. A worker that has imported such a module before would run its old
version after the module was edited. So the pickle of a function begins with the hashes of the files of its modules,
which the worker compares with what it has imported. Only modules outside of Python and of installed packages count.

Objects and arguments may be of any module. So each function also brings the modules that its program has loaded again.
A worker takes their new versions if it can. If it can't, only functions and arguments that name such a module fail.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import io
import itertools
import linecache
import os
import pickle
import site
import sys
import sysconfig
import threading
import time
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from typing import Any, Protocol

from ..commands import module_folders

Versions = tuple[tuple[str, str, str, tuple[str, ...]], ...]
"""Names of modules with the SHA-256 and the path of their files, and the modules of the program that they import. A
module comes after those that it imports."""

MAX_MODULES = 200
"""The most modules of one function that are compared."""

_STARTED = time.time()
"""A file that was changed later may be another version than the one that this process has imported."""

_PATHS = sysconfig.get_paths()
_FOLDERS = tuple(
    {
        os.path.join(os.path.realpath(folder), "")
        for folder in (
            *(_PATHS[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")),
            *site.getsitepackages(),
            site.getusersitepackages(),
            os.path.dirname(os.path.dirname(__file__)),
        )
    }
)
"""Modules in these folders come with Python or with a package."""


class PickleCache(Protocol):
    """Keeps pickles of functions."""

    def forget_pickles(self) -> None:
        """Pickle all functions again."""


@dataclass(frozen=True)
class _Version:
    """A version of one module of the program."""

    spec: Any
    """The spec of the module. A reload makes a new one."""
    digest: str
    """The hash of its file; empty: the module is of Python or of a package."""
    path: str = ""
    """Its absolute path."""
    imports: tuple[str, ...] = ()
    """Modules that it may import."""


class ProgramModules:
    """The versions of this program's modules. Any thread may use it."""

    def __init__(self) -> None:
        self._known: dict[str, _Version] = {}
        """The modules whose functions were sent, and those that they import."""
        self._reloaded: dict[str, None] = {}
        """Modules that were loaded again. Arguments of any function may name them, so each function has them."""
        self._seen: set[str] = set()
        """Modules that were imported, or that somebody has tried to import."""
        self._path: list[str] = []
        """`sys.path`, when the late folders were determined."""
        self._folders: tuple[str, ...] = ()
        """The late folders, which the pickles in the caches name."""
        self._prefixes: dict[tuple[str, ...], bytes] = {}
        """Pickles of the comparison, by the modules that a function names."""
        self._caches: weakref.WeakSet[PickleCache] = weakref.WeakSet()

    def watch(self, cache: PickleCache) -> None:
        """Let this cache forget its pickles when a module is loaded again, or `sys.path` was extended."""
        self._caches.add(cache)
        self._seen.update(tuple(sys.modules))
        if _ImportWatcher not in sys.meta_path:
            sys.meta_path.insert(0, _ImportWatcher)

    def with_versions(self, pickled: bytes, names: Iterable[str]) -> bytes:
        """Return the pickle of a function or of arguments behind a comparison of the modules that it names.

        Args:
            pickled: the pickle.
            names: the modules whose functions and classes it names.
        """
        self._check_folders()
        key = tuple(names)
        prefix = self._prefixes.get(key)
        if prefix is None:  # once for each set of modules and each reload, as methods are pickled at each submit
            versions, others = self.versions(key)
            folders = self._folders
            is_needed = versions or others or folders
            prefix = self._prefixes[key] = _comparison(versions, others, folders) if is_needed else b""
        return prefix + pickled[2:] if prefix else pickled

    def versions(self, names: Iterable[str]) -> tuple[Versions, Versions]:
        """Return the versions of these modules and of those that they import, and of others that were loaded again."""
        found: dict[str, _Version] = {}
        for name in names:
            self._add(name, found, set())
        named = len(found)
        for name in tuple(self._reloaded):
            self._add(name, found, set())
        versions = [
            (name, version.digest, version.path, tuple([each for each in version.imports if each in found]))
            for name, version in found.items()
        ]
        return tuple(versions[:named]), tuple(versions[named:])

    def _add(self, name: str, found: dict[str, _Version], open_names: set[str]) -> None:
        """Add a module behind those that it imports."""
        if name in found or name in open_names or len(found) + len(open_names) >= MAX_MODULES:
            return
        version = self._version(name)
        if version.digest:
            open_names.add(name)
            for other in version.imports:
                self._add(other, found, open_names)
            found[name] = version

    def _version(self, name: str) -> _Version:
        module = sys.modules.get(name)
        spec = getattr(module, "__spec__", None)
        known = self._known.get(name)
        if known is None or known.spec is not spec:
            source = None if spec is None or name == "__main__" else _source(getattr(module, "__file__", None))
            if source is None:
                known = _Version(spec, "")
            else:
                digest, path = hashlib.sha256(source).hexdigest(), os.path.abspath(str(getattr(module, "__file__", "")))
                known = _Version(spec, digest, path, _imports(source, name, module))
            self._known[name] = known
        return known

    def note_import(self, name: str, path: Sequence[str] | None = None) -> None:
        """Note that a module is being imported. A module of the program that was imported before is loaded again.

        Args:
            name: of the module.
            path: where it is searched; None: in the folders of `sys.path`.
        """
        self._check_folders()
        module = sys.modules.get(name)
        if module is None and name not in self._seen:
            self._seen.add(name)
            return
        known = self._known.get(name)
        if known is not None and known.path:
            file: Any = known.path
        elif module is None:  # it was removed from sys.modules, or was not found before
            file = getattr(PathFinder.find_spec(name, path), "origin", None)
        else:
            file = getattr(module, "__file__", None)
        if _is_of_program(file):
            self._known.pop(name, None)
            self._reloaded[name] = None
            self._forget_pickles()

    def _check_folders(self) -> None:
        """Forget all pickles if `sys.path` was extended."""
        if sys.path != self._path:
            self._path = list(sys.path)
            folders = module_folders.late()
            if folders != self._folders:
                self._folders = folders
                self._forget_pickles()

    @property
    def compares_arguments(self) -> bool:
        """Whether arguments need versions. Before the first reload they don't: that would cost time at each call."""
        return bool(self._reloaded)

    def _forget_pickles(self) -> None:
        self._prefixes.clear()
        for cache in tuple(self._caches):
            cache.forget_pickles()


program = ProgramModules()


class _ImportWatcher:
    """A finder that finds nothing: Python asks it before a module is imported or reloaded."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None) -> None:
        """Note the import."""
        program.note_import(name, path)


def _is_of_program(path: Any) -> bool:
    """Whether a module's file is a source file that is not of Python or of a package."""
    return type(path) is str and path.endswith(".py") and not os.path.realpath(path).startswith(_FOLDERS)


def _source(path: Any) -> bytes | None:
    """Return the source file of a module of the program; None: it has none, or it is of Python or of a package."""
    if not _is_of_program(path):
        return None
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _imports(source: bytes, name: str, module: Any) -> tuple[str, ...]:
    """Return the imported modules that the import statements of a source file name."""
    names: dict[str, None] = {}
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):  # it was edited since it was imported
        return ()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            try:
                relative = "." * node.level + (node.module or "")
                base = importlib.util.resolve_name(relative, getattr(module, "__package__", None) or name)
            except ImportError:
                continue
            names.update({base: None, **{f"{base}.{alias.name}": None for alias in node.names}})
    return tuple(each for each in names if each in sys.modules)


def _comparison(*arguments: Any) -> bytes:
    """Return the beginning of a pickle that compares versions, and goes on with another pickle without its header."""
    with io.BytesIO() as file:
        pickler = pickle.Pickler(file, 3)  # without frames
        pickler.fast = True  # without a memo, whose places the other pickle counts
        pickler.dump(_Comparison(arguments))
        return pickle.PROTO + b"\x05" + file.getvalue()[2:-1] + pickle.POP


class _Comparison:
    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self._arguments = arguments

    def __reduce__(self) -> Any:
        return take_versions, self._arguments


# ---------------------------------------------------------------------------------------------------------- workers

_taken: dict[str, str] = {}
"""The versions of modules that this process has imported."""
_newest: dict[str, int] = {}
"""The newest change that a module has seen: of its own file, or of the file of a module that it imports. The changes of
files are counted. So modules that import each other are loaded again once for each change, and in any order of calls
all modules have seen all changes."""
_changes = itertools.count(1)
_lock = threading.RLock()


def take_versions(versions: Versions, others: Versions = (), folders: Sequence[str] = ()) -> None:
    """Have modules in these versions. A module that was imported in another version is loaded again.

    Args:
        versions: of the modules that a function needs.
        others: of modules that its program has loaded again. They are left as they are if that fails.
        folders: in a local cluster, search modules there too.

    Raises:
        ImportError: the file of a module that the function needs is another version here.
    """
    with _lock:
        module_folders.add_late(folders)
        for each in versions:
            _take(*each)
        for each in others:
            try:
                _take(*each)
            except Exception:  # a function that names the module fails
                continue


def _take(name: str, digest: str, program_path: str, imports: Iterable[str]) -> None:
    """Have a module in this version.

    It is loaded again if it may have imported names of a module before that was loaded again.

    Args:
        name: of the module.
        digest: of its file.
        program_path: the path of its file in the program.
        imports: modules that it imports.

    Raises:
        ImportError: its file is another version here.
        Exception: the module has raised it.
    """
    newest = max([_newest.get(each, 0) for each in imports], default=0)
    is_old = newest > _newest.get(name, 0)
    if _taken.get(name) == digest and not is_old and name in sys.modules:
        return
    module = sys.modules.get(name)
    path = _path(name) if module is None else getattr(module, "__file__", None)
    if path is None and module is None and _add_folder(name, digest, program_path):
        path = program_path
    source = _source(path)
    if source is None and module is not None:  # this process has imported another one, perhaps of Python
        path = getattr(PathFinder.find_spec(name, _parent_path(name)), "origin", None)
        source = _source(path)
        if source is not None and hashlib.sha256(source).hexdigest() == digest:
            del sys.modules[name]
            module = None
    if source is None:  # it is missing or installed here: the import says what is wrong
        return
    here = hashlib.sha256(source).hexdigest()
    if module is None or (name not in _taken and not _is_newer(path)):
        _taken[name] = here
    if module is None:
        is_old = False
    if _taken.get(name) == digest and not is_old:
        _newest[name] = max(newest, _newest.get(name, 0))
        return
    if here != digest:
        raise ImportError(
            f"the module {name!r} of the program is another version than {path} here: send it with "
            "Client(modules=[...]), or with upload_modules() if it was changed since",
            name=name,
        )
    if module is not None:
        is_changed = _taken.get(name) != digest
        _taken[name] = ""  # neither version, if its code fails
        linecache.checkcache(path)
        exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
        program.note_import(name)
        _newest[name] = next(_changes) if is_changed else newest
    _taken[name] = digest


def _path(name: str) -> Any:
    """Return the file of a module that was not imported; None: it is not found."""
    try:
        return getattr(importlib.util.find_spec(name), "origin", None)
    except (ImportError, ValueError, AttributeError):
        return None


def _add_folder(name: str, digest: str, path: str) -> bool:
    """Search modules in the folder from which the program has imported one, if the same file is here.

    The program may have added the folder to `sys.path` after its local cluster was started.
    """
    source = _source(path)
    if source is None or hashlib.sha256(source).hexdigest() != digest:
        return False
    folder = os.path.dirname(path)
    for _ in range(name.count(".") + os.path.basename(path).startswith("__init__.")):
        folder = os.path.dirname(folder)
    module_folders.add([folder])
    return True


def _parent_path(name: str) -> Any:
    """Return where the module would be searched; None: in the folders of `sys.path`."""
    parent = name.rpartition(".")[0]
    return getattr(sys.modules.get(parent), "__path__", None) if parent else None


def _is_newer(path: Any) -> bool:
    """Whether a file was changed since this process began."""
    try:
        return os.stat(path).st_mtime > _STARTED
    except OSError:
        return True
