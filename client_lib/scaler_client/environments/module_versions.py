"""Which version of a program's own modules a function needs.

Functions and classes of modules are sent by name. A worker that has imported such a module before would run its old
version after the module was edited. So the pickle of a function begins with the hashes of the files of its modules,
which the worker compares with what it has imported. Only modules outside of Python and of installed packages count.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import io
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

Versions = tuple[tuple[str, str, str], ...]
"""Names of modules with the SHA-256 and the path of their files. A module comes after those that it imports."""

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
        self._prefixes: dict[tuple[str, ...], bytes] = {}
        """Pickles of the comparison, by the modules that a function names."""
        self._caches: weakref.WeakSet[PickleCache] = weakref.WeakSet()

    def watch(self, cache: PickleCache) -> None:
        """Let this cache forget its pickles when a module is loaded again."""
        self._caches.add(cache)

    def with_versions(self, pickled: bytes, names: Iterable[str]) -> bytes:
        """Return the pickle of a function behind a comparison of the modules that it names.

        Args:
            pickled: the pickle.
            names: the modules whose functions and classes it names.
        """
        key = tuple(names)
        prefix = self._prefixes.get(key)
        if prefix is None:  # once for each set of modules and each reload, as methods are pickled at each submit
            versions = self.versions(key)
            prefix = self._prefixes[key] = _comparison(versions) if versions else b""
        return prefix + pickled[2:] if prefix else pickled

    def versions(self, names: Iterable[str]) -> Versions:
        """Return the versions of these modules, of those that they import, and of those that were loaded again."""
        found: dict[str, _Version] = {}
        for name in (*names, *tuple(self._reloaded)):
            self._add(name, found, set())
        return tuple([(name, version.digest, version.path) for name, version in found.items()])

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
                if _ImportWatcher not in sys.meta_path:
                    sys.meta_path.insert(0, _ImportWatcher)
            self._known[name] = known
        return known

    def note_import(self, name: str) -> None:
        """Note that a module is being imported. If its functions were sent before, it is loaded again."""
        known = self._known.pop(name, None)
        if known is not None and known.digest:
            self._reloaded[name] = None
            self._prefixes.clear()
            for cache in tuple(self._caches):
                cache.forget_pickles()


program = ProgramModules()


class _ImportWatcher:
    """A finder that finds nothing: Python asks it before a module is imported or reloaded."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None) -> None:
        """Note the import."""
        program.note_import(name)


def _source(path: Any) -> bytes | None:
    """Return the source file of a module of the program; None: it has none, or it is of Python or of a package."""
    if type(path) is not str or not path.endswith(".py") or os.path.realpath(path).startswith(_FOLDERS):
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


def _comparison(versions: Versions) -> bytes:
    """Return the beginning of a pickle that compares versions, and goes on with another pickle without its header."""
    with io.BytesIO() as file:
        pickler = pickle.Pickler(file, 3)  # without frames
        pickler.fast = True  # without a memo, whose places the other pickle counts
        pickler.dump(_Comparison(versions))
        return pickle.PROTO + b"\x05" + file.getvalue()[2:-1] + pickle.POP


class _Comparison:
    def __init__(self, versions: Versions) -> None:
        self._versions = versions

    def __reduce__(self) -> Any:
        return take_versions, (self._versions,)


# ---------------------------------------------------------------------------------------------------------- workers

_taken: dict[str, str] = {}
"""The versions of modules that this process has imported."""
_lock = threading.RLock()


def take_versions(versions: Versions) -> None:
    """Have modules in these versions. A module that was imported in another version is loaded again.

    Args:
        versions: of the program that has sent a function.

    Raises:
        ImportError: the file of a module is another version here.
    """
    with _lock:
        is_old = False
        for name, digest, program_path in versions:
            if _taken.get(name) == digest and not is_old and name in sys.modules:
                continue
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
                continue
            here = hashlib.sha256(source).hexdigest()
            if module is None or (name not in _taken and not _is_newer(path)):
                _taken[name] = here
            if _taken.get(name) == digest and not is_old:
                continue
            if here != digest:
                raise ImportError(
                    f"the module {name!r} of the program is another version than {path} here: send it with "
                    "Client(modules=[...]), or with upload_modules() if it was changed since",
                    name=name,
                )
            is_old = is_old or module is not None  # modules that follow may have imported names of this one
            if module is not None:
                linecache.checkcache(path)
                exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
                program.note_import(name)
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
    if folder not in sys.path:
        sys.path.append(folder)
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
