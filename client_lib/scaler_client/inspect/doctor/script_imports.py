"""The modules that a script imports, found without running it."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import all_suffixes

from ...commands.options import OptionError
from ...pickling.pickled_packages import is_package_name

MAX_SCRIPT_BYTES = 16 << 20
_OPTIONAL = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


@dataclass(frozen=True)
class ScriptImports:
    """What a script imports: top-level names of modules outside of the standard library."""

    path: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    """Imported only inside a `try` that catches ImportError."""
    uploads: tuple[str, ...] = ()
    """The literals in `modules=[...]` and `upload_modules(...)`: paths relative to the current directory."""

    @property
    def folder(self) -> str:
        """The folder of the script, which Python searches first when it runs the script."""
        return os.path.dirname(os.path.abspath(self.path))

    @property
    def names(self) -> tuple[str, ...]:
        return self.required + self.optional

    def is_uploaded(self, name: str) -> bool:
        """Whether the script uploads this module, as far as its literals tell."""
        return any(_has_module(os.path.abspath(path), name) for path in self.uploads)


def read_imports(path: str) -> ScriptImports:
    """Read the imports of a script.

    Raises:
        OptionError: the file cannot be read, or is no Python source.
    """
    try:
        with open(path, "rb") as file:
            source = file.read(MAX_SCRIPT_BYTES + 1)
    except OSError as failure:
        raise OptionError(f"--script: cannot read {path}: {failure.strerror}") from None
    if len(source) > MAX_SCRIPT_BYTES:
        raise OptionError(f"--script: {path} is larger than {MAX_SCRIPT_BYTES >> 20} MiB")
    try:
        tree = ast.parse(source, path)
    except SyntaxError as failure:
        raise OptionError(f"--script: {path}, line {failure.lineno}: {failure.msg}") from None
    except (ValueError, RecursionError, MemoryError) as failure:
        raise OptionError(f"--script: {path} is no Python source: {failure}") from None
    required, optional = set[str](), set[str]()
    try:
        _collect(tree.body, required, optional)
    except RecursionError:
        raise OptionError(f"--script: {path} is nested too deeply") from None
    return ScriptImports(
        path, tuple(sorted(required)), tuple(sorted(optional - required)), tuple(dict.fromkeys(_uploads(tree)))
    )


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


def _has_module(path: str, name: str) -> bool:
    """Whether an upload of this file, package or other folder has a module or package of this name."""
    if os.path.isfile(path):
        return os.path.basename(path).partition(".")[0] == name
    if os.path.isfile(os.path.join(path, "__init__.py")):
        return os.path.basename(path) == name
    inside = os.path.join(path, name)
    return os.path.isdir(inside) or any(os.path.isfile(inside + suffix) for suffix in all_suffixes())


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
