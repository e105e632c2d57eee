"""The modules that a script imports, found without running it."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import all_suffixes

from ...commands.options import OptionError
from ...environments.module_files import is_uploaded
from ...pickling.package_versions import is_package_name

MAX_SCRIPT_BYTES = 16 << 20
MAX_FILES = 1000
"""At most so many files of uploaded modules are read."""

_OPTIONAL = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


@dataclass(frozen=True)
class ScriptImports:
    """What a script and the modules that it uploads import: top-level names of modules outside of the standard
    library."""

    path: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    """Imported only inside a `try` that catches ImportError."""
    uploads: tuple[str, ...] = ()
    """The literals in `modules=[...]` and `upload_modules(...)`: paths relative to the current directory."""
    has_environment: bool = False
    """Whether a call has `environment=`: then the workers have its packages, whatever the hosts have."""

    @property
    def folder(self) -> str:
        """The folder of the script, which Python searches first when it runs the script."""
        return os.path.dirname(os.path.abspath(self.path))

    @property
    def names(self) -> tuple[str, ...]:
        return self.required + self.optional

    def is_uploaded(self, name: str) -> bool:
        """Whether the script uploads this module, as far as its literals tell."""
        return any(_module_path(os.path.abspath(path), name) for path in self.uploads)


def read_imports(path: str) -> ScriptImports:
    """Read the imports of a script, and those of the modules that it uploads and imports.

    Raises:
        OptionError: the file cannot be read, or is no Python source.
    """
    tree = _parsed(path)
    required, optional = _imports(tree, path)
    uploads = tuple(dict.fromkeys(_uploads(tree)))
    _add_uploaded(uploads, required, optional)
    return ScriptImports(
        path, tuple(sorted(required)), tuple(sorted(optional - required)), uploads, _has_environment(tree)
    )


def _add_uploaded(uploads: tuple[str, ...], required: set[str], optional: set[str]) -> None:
    """Add the imports of the uploaded modules among these. A file that is no Python source is left out: the script can
    be checked without it."""
    files = 0
    seen = set[str]()
    while new := (required | optional) - seen:
        for name in sorted(new):
            seen.add(name)
            for path in filter(None, (_module_path(os.path.abspath(each), name) for each in uploads)):
                for file in _sources(path):
                    files += 1
                    if files > MAX_FILES:
                        return
                    try:
                        further, further_optional = _imports(_parsed(file), file)
                    except OptionError:
                        continue
                    # The script may not import the other files of a package.
                    is_run = name in required and file in (path, os.path.join(path, "__init__.py"))
                    (required if is_run else optional).update(further)
                    optional.update(further_optional)


def _sources(path: str) -> Iterator[str]:
    """Yield the Python sources of a module: a file, or those of a package."""
    if not os.path.isdir(path):
        if path.endswith(".py"):
            yield path
        return
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(each for each in folders if each.isidentifier() and each != "__pycache__")
        yield from (os.path.join(folder, each) for each in sorted(files) if each.endswith(".py"))


def _parsed(path: str) -> ast.Module:
    try:
        with open(path, "rb") as file:
            source = file.read(MAX_SCRIPT_BYTES + 1)
    except OSError as failure:
        raise OptionError(f"--script: cannot read {path}: {failure.strerror}") from None
    if len(source) > MAX_SCRIPT_BYTES:
        raise OptionError(f"--script: {path} is larger than {MAX_SCRIPT_BYTES >> 20} MiB")
    try:
        return ast.parse(source, path)
    except SyntaxError as failure:
        raise OptionError(f"--script: {path}, line {failure.lineno}: {failure.msg}") from None
    except (ValueError, RecursionError, MemoryError) as failure:
        raise OptionError(f"--script: {path} is no Python source: {failure}") from None


def _imports(tree: ast.Module, path: str) -> tuple[set[str], set[str]]:
    """Return the names that a module imports, and those that it imports only if they are there."""
    required, optional = set[str](), set[str]()
    try:
        _collect(tree.body, required, optional)
    except RecursionError:
        raise OptionError(f"--script: {path} is nested too deeply") from None
    return required, optional


def _uploads(tree: ast.Module) -> Iterator[str]:
    """Yield the literals among the modules that a script uploads."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        given = [keyword.value for keyword in call.keywords if keyword.arg == "modules"]
        paths = [path for each in given if isinstance(each, (ast.List, ast.Tuple, ast.Set)) for path in each.elts]
        if isinstance(call.func, ast.Attribute) and call.func.attr == "upload_modules":
            paths += call.args
        for path in paths:
            if isinstance(path, ast.Constant) and isinstance(path.value, str):
                yield path.value


def _has_environment(tree: ast.Module) -> bool:
    """Whether some call has an `environment` that is not None."""
    keywords = (each for call in ast.walk(tree) if isinstance(call, ast.Call) for each in call.keywords)
    return any(
        each.arg == "environment" and not (isinstance(each.value, ast.Constant) and each.value.value is None)
        for each in keywords
    )


def _module_path(path: str, name: str) -> str:
    """Return the file or folder of the module of this name in an upload of this file, package or other folder. Empty:
    it has none."""
    if os.path.isfile(path):
        return path if os.path.basename(path).partition(".")[0] == name else ""
    if os.path.isfile(os.path.join(path, "__init__.py")):
        return path if os.path.basename(path) == name else ""
    inside = os.path.join(path, name)
    if os.path.isdir(inside) and is_uploaded(inside):
        return inside
    return next((inside + suffix for suffix in all_suffixes() if os.path.isfile(inside + suffix)), "")


def _collect(body: list[ast.stmt], required: set[str], optional: set[str]) -> None:
    """Note the imports of some statements."""
    for statement in body:
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            names = [statement.module or ""] if not statement.level else []
        else:
            names = []
            if isinstance(statement, ast.Try):
                inner = optional if any(map(_catches_import_error, statement.handlers)) else required
                _collect(statement.body, inner, optional)
                for handler in statement.handlers:
                    _collect(handler.body, optional, optional)
                _collect(statement.orelse + statement.finalbody, required, optional)
            elif isinstance(statement, ast.If) and _is_type_checking(statement.test):
                _collect(statement.orelse, required, optional)
            else:
                for field in ("body", "orelse"):
                    _collect(getattr(statement, field, []), required, optional)
                for case in getattr(statement, "cases", []):
                    _collect(case.body, required, optional)
        required.update(top for top in (name.partition(".")[0] for name in names) if is_package_name(top))


def _catches_import_error(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(kind, ast.Name) and kind.id in _OPTIONAL for kind in kinds)


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else ""
    return name == "TYPE_CHECKING"
