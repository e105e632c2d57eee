"""The rules of the house (ARCHITECTURE.md), read from the imports, the folders and the codemap."""

import ast
import re
import sys
from collections.abc import Callable, Iterable
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "scaler_scheduler": ROOT / "scheduler_daemon" / "scaler_scheduler",
    "scaler_client": ROOT / "client_lib" / "scaler_client",
    "scaler_worker": ROOT / "worker_lib" / "scaler_worker",
}

# What each package may import besides the standard library and itself.
ALLOWED_OUTSIDE = {
    "scaler_scheduler": {"zmq", "capnpy", "tomli", "uvloop"},
    "scaler_client": {
        "zmq",
        "capnp",
        "capnpy",
        "cloudpickle",
        "tomli",
        "dask",
        "joblib",
        "threadpoolctl",
        "tqdm",
        "numpy",
        "graphblas",
        "aiohttp",
        "prometheus_client",
        "urwid",
        "msgpack",
    },
    "scaler_worker": {"zmq", "psutil", "cloudpickle", "tomli", "scaler_client"},
}

# What the core may import besides itself: data structures and what types need, nothing that has an effect.
CORE_STANDARD_LIBRARY = {
    "__future__", "abc", "array", "bisect", "collections", "dataclasses", "enum", "functools", "heapq", "itertools",
    "math", "operator", "types", "typing",
}  # fmt: skip

# Which part of the scheduler may import which others. A part is a module, or a folder of them, of scaler_scheduler.
SCHEDULER_PARTS: dict[str, set[str]] = {
    "core": {"core"},
    "wire": {"wire", "core.events", "core.effects", "core.ids", "core.lines"},
    "sockets": {
        "addresses",
        "bound_socket",
        "connections",
        "doorkeeper",
        "handshakes",
        "monitor_socket",
        "taken_paths",
    },
    "bound_socket": {"addresses"},
    "monitor_socket": {"addresses", "allowances", "bound_socket", "taken_paths"},
    "doorkeeper": {"connections", "handshakes"},
    "connections": {"handshakes", "syn_filter", "descriptors"},
    "syn_filter": {"descriptors"},
    "handshakes": {"syn_filter", "descriptors"},
}
IMPORT_ZMQ = {"sockets", "bound_socket", "monitor_socket", "doorkeeper", "key_files"}
TABLES = ["functions", "clients", "workers", "objects", "timers"]
NAMES_THAT_SAY_NOTHING = {"utils", "util", "common", "helpers", "helper", "mixins", "mixin", "manager", "managers"}

FOLDERS = {"scheduler_daemon", "client_lib", "worker_lib", "packaging", "systemd", "tests", "benchmarks"}
FILES = {
    "Makefile", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "LICENSE",
    "pyproject.toml",
}  # fmt: skip


def module_name(package: str, path: Path) -> str:
    """The dotted name of a package's source file."""
    parts = (package, *path.relative_to(PACKAGES[package]).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(source: str, module: str, is_package: bool) -> set[str]:
    """The dotted names that a module imports anywhere in it, relative ones made absolute.

    `from a import b` counts as a.b: whether b is a module can't be seen here, and every rule holds for prefixes.
    """
    names = set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")
                parents = parents[: len(parents) - node.level + is_package]
                base = ".".join([*parents, base] if base else parents)
            names.update(f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("__import__", "importlib.import_module"):
            names.update(argument.value for argument in node.args[:1] if isinstance(argument, ast.Constant))
    return names


def imports_of(package: str) -> dict[str, set[str]]:
    """What each module of a package imports."""
    found = {}
    for path in sorted(PACKAGES[package].rglob("*.py")):
        module = module_name(package, path)
        found[module] = imported(path.read_text("utf-8"), module, path.name == "__init__.py")
    return found


def module_among(modules: Iterable[str]) -> Callable[[str], str | None]:
    """What finds, of these, the module of an imported name, which may be something in it."""
    known = set(modules)
    return lambda name: next((each for each in (name, name.rpartition(".")[0]) if each in known), None)


def is_within(name: str, part: str) -> bool:
    return name == part or name.startswith(part + ".")


def breaches(imports: dict[str, set[str]], rule: str) -> list[str]:
    """What breaks a rule of SCHEDULER_PARTS, a line for each import."""
    lines = []
    for module, names in imports.items():
        if is_within(module, f"scaler_scheduler.{rule}"):
            for name in sorted(names):
                if is_within(name, "scaler_scheduler") and not any(
                    is_within(name, f"scaler_scheduler.{part}") for part in SCHEDULER_PARTS[rule]
                ):
                    lines.append(f"{module} imports {name}")
    return lines


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_only_what_they_may(package: str) -> None:
    imports = imports_of(package)
    assert package in imports
    allowed = ALLOWED_OUTSIDE[package] | sys.stdlib_module_names | {package}
    wrong = {
        f"{module} imports {name}"
        for module, names in imports.items()
        for name in names
        if name.partition(".")[0] not in allowed
    }
    assert not wrong


@pytest.mark.parametrize("rule", SCHEDULER_PARTS)
def test_imports_inside_the_scheduler_go_one_way(rule: str) -> None:
    imports = imports_of("scaler_scheduler")
    assert any(is_within(module, f"scaler_scheduler.{rule}") for module in imports), f"there is no {rule}"
    assert not breaches(imports, rule)


def test_the_core_has_no_effects() -> None:
    wrong = [
        f"{module} imports {name}"
        for module, names in imports_of("scaler_scheduler").items()
        if is_within(module, "scaler_scheduler.core")
        for name in names
        if name.partition(".")[0] not in CORE_STANDARD_LIBRARY | {"scaler_scheduler"}
    ]
    assert not wrong


def test_tables_do_not_import_each_other() -> None:
    tables = [f"scaler_scheduler.core.{table}" for table in TABLES]
    imports = imports_of("scaler_scheduler")
    assert set(tables) <= set(imports)
    wrong = [
        f"{module} imports {name}"
        for module in tables
        for name in imports[module]
        if any(is_within(name, other) for other in tables if other != module)
    ]
    assert not wrong


def test_few_modules_import_zmq_in_the_scheduler() -> None:
    importers = {
        module for module, names in imports_of("scaler_scheduler").items() if any(is_within(n, "zmq") for n in names)
    }
    assert importers == {f"scaler_scheduler.{name}" for name in IMPORT_ZMQ}


def test_only_the_command_imports_the_daemon() -> None:
    importers = {
        module
        for module, names in imports_of("scaler_scheduler").items()
        if any(is_within(name, "scaler_scheduler.daemon") for name in names)
    }
    assert importers == {"scaler_scheduler.cli"}


@pytest.mark.parametrize("package", PACKAGES)
def test_module_names_say_something(package: str) -> None:
    modules = imports_of(package)
    assert not [module for module in modules if NAMES_THAT_SAY_NOTHING.intersection(module.split("."))]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_imports_itself_by_way_of_others(package: str) -> None:
    """Imports for type checkers count too."""
    all_imports = imports_of(package)
    of = module_among(all_imports)
    imports = {module: {of(name) for name in names} - {None, module, package} for module, names in all_imports.items()}
    assert any(imports.values())
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def named_in_codemap(text: str) -> set[str]:
    return set(re.findall(r"`([\w./]+\.py)`", text))


def test_the_codemap_names_every_module_and_no_other() -> None:
    named = named_in_codemap((ROOT / "ARCHITECTURE.md").read_text("utf-8"))
    modules = [
        path for folder in PACKAGES.values() for path in folder.rglob("*.py") if path.stem.strip("_") == path.stem
    ]
    names = {name.rpartition("/")[2] for name in named}
    assert not [str(path.relative_to(ROOT)) for path in modules if path.name not in names]
    others = [path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    there = ["/" + path.relative_to(ROOT).as_posix() for path in [*modules, *others]]
    assert not [name for name in sorted(named) if not any(path.endswith("/" + name) for path in there)]


def test_top_level_is_fixed() -> None:
    seen = {entry.name: entry.is_dir() for entry in ROOT.iterdir() if not entry.name.startswith(".")}
    seen.pop("__pycache__", None)
    assert {name for name, is_folder in seen.items() if is_folder} <= FOLDERS
    assert {name for name, is_folder in seen.items() if not is_folder} <= FILES


def test_imports_are_read_as_python_reads_them() -> None:
    source = "import a.b, c\nfrom d import e\nfrom . import f\nfrom ..g.h import i\ndef j():\n    import k\n"
    assert imported(source, "p.q.r", False) == {"a.b", "c", "d.e", "p.q.f", "p.g.h.i", "k"}
    assert imported("from . import f\nfrom .g import h\n", "p.q", True) == {"p.q.f", "p.q.g.h"}
    assert imported("importlib.import_module('l.m')", "p", False) == {"l.m"}


def test_the_module_of_an_imported_name_is_found() -> None:
    assert module_among(["p.q", "p.r"])("p.q.name") == "p.q" and module_among(["p.q"])("p.s") is None


def test_a_breach_is_found() -> None:
    imports = {
        "scaler_scheduler.core.tasks": {"scaler_scheduler.core.ids.TaskId", "scaler_scheduler.wire.decode"},
        "scaler_scheduler.wire.decode": {"scaler_scheduler.core.events", "scaler_scheduler.core.tasks.TaskTable"},
        "scaler_scheduler.daemon": {"scaler_scheduler.core.scheduler"},
    }
    assert breaches(imports, "core") == ["scaler_scheduler.core.tasks imports scaler_scheduler.wire.decode"]
    assert breaches(imports, "wire") == ["scaler_scheduler.wire.decode imports scaler_scheduler.core.tasks.TaskTable"]
