"""The rules of the house (ARCHITECTURE.md), read from the imports, the folders and the documents."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
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
    "scaler_scheduler": {"zmq", "capnpy", "tomli", "uvloop", "pypyjit"},  # pypyjit is a module of PyPy
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
        "uv",
    },
    "scaler_worker": {
        "zmq",
        "psutil",
        "cloudpickle",
        "tomli",
        "threadpoolctl",
        "scaler_client",
        "kubernetes",
        "urllib3",
        "yaml",
    },
}

# The layers of each package, the lowest first. A module imports its own room and rooms of lower layers, types included.
# A room is a folder, or a module outside of folders. Rooms of one layer do not import one another.
LAYERS: dict[str, list[set[str]]] = {
    "scaler_scheduler": [
        {"commands", "core.events", "core.effects", "core.errors", "core.ids", "core.limits", "core.lines"},
        {"core.unread_answers"},
        {"config", "core.state", "wire"},
        {"core.values"},
        {"core.tables", "core.outbox"},
        {"core.data"},
        {"core.placement"},
        {"net", "core.dispatch"},
        {"auth", "core.report"},
        {"core.completion"},
        {"core.environments"},
        {"core.peers"},
        {"core.submissions"},
        {"core.scheduler"},
        {"core.invariants", "publish"},
        {"daemon"},
        {"cli"},
        {"__main__"},
    ],
    "scaler_client": [
        {"errors", "commands"},
        {"protocol", "packages"},
        {"net", "environments"},
        {"pickling"},
        {"nested", "monitor"},
        {"autoscale", "futures"},
        {"session"},
        {"io"},
        {"graphs"},
        {"api"},
        {"adapters", "inspect", "top", "ui", "exporter"},
        {"__main__"},
    ],
    "scaler_worker": [
        {"config", "init_process", "objects", "output", "packages"},
        {"environments", "task_rows", "sent_answers", "task_environment"},
        {"fork_server"},
        {"worker"},
        {"agent"},
        {"autoscaler", "cli"},
        {"__main__"},
    ],
}

# Modules of one folder whose order is part of the layers above.
INSIDE = {
    "core.events": {"core.ids", "core.errors", "core.lines", "core.limits"},
    "core.effects": {"core.ids", "core.errors", "core.lines", "core.limits"},
}

# What the core may import besides itself: data structures and what types need, nothing that has an effect.
CORE_STANDARD_LIBRARY = {
    "__future__", "abc", "array", "bisect", "collections", "dataclasses", "difflib", "enum", "functools", "heapq",
    "itertools", "math", "operator", "types", "typing",
}  # fmt: skip

OF_THE_CORE_ON_THE_WIRE = {"core.events", "core.effects", "core.ids", "core.lines"}
IMPORT_ZMQ = {"net.router", "net.bound_socket", "net.monitor_socket", "net.zap", "commands.key_files"}
TABLES = ["state.functions", "state.clients", "state.workers", "values.objects", "state.timers"]
NAMES_THAT_SAY_NOTHING = {"utils", "util", "common", "helpers", "helper", "mixins", "mixin", "manager", "managers"}
MAX_MODULES = 20
"""In one folder."""

MAX_BYTES = {"README.md": 6 * 1024, "ARCHITECTURE.md": 14 * 1024}
"""Of a document."""

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
    for node in ast.walk(ast.parse(source)):
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


@functools.cache
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


@functools.cache
def imported_modules(package: str) -> dict[str, set[str]]:
    """Which modules of its own package each module imports, types included."""
    imports = imports_of(package)
    of = module_among(imports)
    return {
        module: {found for name in names if (found := of(name)) is not None} - {module, package}
        for module, names in imports.items()
    }


def is_within(name: str, part: str) -> bool:
    return name == part or name.startswith(part + ".")


def layer_of(module: str, layers: list[set[str]]) -> tuple[int, str] | None:
    """The number of a module's layer and the name of its room; the longest name of a room counts."""
    found = [
        (len(room), number, room) for number, rooms in enumerate(layers) for room in rooms if is_within(module, room)
    ]
    if not found:
        return None
    _, number, room = max(found)
    return number, room


def layer_breaches(imports: dict[str, set[str]], layers: list[set[str]]) -> list[str]:
    """What imports against the order of layers, a line each. Names are without the package."""
    lines = []
    for module, names in sorted(imports.items()):
        own = layer_of(module, layers)
        for name in sorted(names):
            other = layer_of(name, layers)
            if own is None or other is None or own[1] == other[1] or other[1] in INSIDE.get(own[1], ()):
                continue
            if other[0] >= own[0]:
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


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_follow_the_order_of_layers(package: str) -> None:
    imports = {
        module.removeprefix(package + "."): {name.removeprefix(package + ".") for name in names}
        for module, names in imported_modules(package).items()
        if module != package
    }
    without_layer = [module for module in imports if layer_of(module, LAYERS[package]) is None]
    assert [module for module in without_layer if module != "core"] == []
    assert layer_breaches(imports, LAYERS[package]) == []


def test_the_wire_knows_little_of_the_core() -> None:
    wrong = [
        f"{module} imports {name}"
        for module, names in imported_modules("scaler_scheduler").items()
        if is_within(module, "scaler_scheduler.wire")
        for name in names
        if is_within(name, "scaler_scheduler.core")
        and name.removeprefix("scaler_scheduler.") not in OF_THE_CORE_ON_THE_WIRE
    ]
    assert not wrong


def test_the_core_has_no_effects() -> None:
    wrong = [
        f"{module} imports {name}"
        for module, names in imports_of("scaler_scheduler").items()
        if is_within(module, "scaler_scheduler.core")
        for name in names
        if name.partition(".")[0] not in CORE_STANDARD_LIBRARY and not is_within(name, "scaler_scheduler.core")
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


def test_only_their_package_writes_states_of_values() -> None:
    """`core/values` alone changes states of values and of their copies. Records only begin with a state."""
    fields = {"copies", "home", "copied", "producer"}
    core = PACKAGES["scaler_scheduler"] / "core"
    own = {*(core / "values").glob("*.py"), core / "state" / "records.py", core / "state" / "host_room.py"}
    wrong = []
    for path in sorted(set(core.rglob("*.py")) - own):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            targets = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else []
            targets = [node.target] if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else targets
            for target in targets:
                field = target.value if isinstance(target, ast.Subscript) else target
                if isinstance(field, ast.Attribute) and field.attr in fields:
                    wrong.append(f"{path.relative_to(core)}:{node.lineno} writes {field.attr}")
    assert not wrong


def test_few_modules_import_zmq_in_the_scheduler() -> None:
    importers = {
        module for module, names in imports_of("scaler_scheduler").items() if any(is_within(n, "zmq") for n in names)
    }
    assert importers == {f"scaler_scheduler.{name}" for name in IMPORT_ZMQ}


@pytest.mark.parametrize("package", PACKAGES)
def test_module_names_say_something(package: str) -> None:
    modules = imports_of(package)
    assert not [module for module in modules if NAMES_THAT_SAY_NOTHING.intersection(module.split("."))]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_imports_itself_by_way_of_others(package: str) -> None:
    """Imports for type checkers count too."""
    imports = imported_modules(package)
    assert any(imports.values())
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def rooms_of(package: str) -> list[Path]:
    """The folders of a package that have modules."""
    folder = PACKAGES[package]
    return sorted({path.parent for path in folder.rglob("*.py")})


@pytest.mark.parametrize("package", PACKAGES)
def test_no_folder_has_too_many_modules(package: str) -> None:
    counts = {str(room.relative_to(ROOT)): len(list(room.glob("*.py"))) for room in rooms_of(package)}
    assert {room: count for room, count in counts.items() if count > MAX_MODULES} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_each_room_has_a_front_door(package: str) -> None:
    """It says what lives there, where to begin and what the room may import. Modules that it names are there."""
    for room in rooms_of(package):
        text = ast.get_docstring(ast.parse((room / "__init__.py").read_text("utf-8"))) or ""
        assert text, f"{room} has no docstring"
        if room != PACKAGES[package]:
            assert "Begin with " in text and "May import: " in text, room
        assert [name for name in re.findall(r"`(\w+\.py)`", text) if not (room / name).exists()] == [], room


def test_architecture_names_every_room_and_no_other_file() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    named = set(re.findall(r"`([\w./]+(?:\.\w+|/))`", text))
    for package, folder in PACKAGES.items():
        for room in rooms_of(package):
            if room != folder:
                assert room.relative_to(folder).as_posix() + "/" in named, f"ARCHITECTURE.md does not name {room}"
    modules = [name for name in named if name.endswith(".py")]
    assert [name for name in modules if not any(path.endswith(f"/{name}") for path in source_files())] == []


DOCUMENTS = ["ARCHITECTURE.md", "CONTRIBUTING.md", "scheduler_daemon/docs/decisions"]
CODE_SPAN = re.compile(r"`([^`\n]+)`")
NAMED_PATH = re.compile(r"(?:[\w.-]+/)+(?:[\w.-]+)?|[\w-]+\.(?:py|md|sh|js|capnp|toml|yaml|json)")
NAMED_MEMBER = re.compile(r"([A-Za-z_]\w*)\.([A-Za-z_]\w*)(?:\(\))?")
MADE_BY_TOOLS = {"packaging/build/", "packaging/dist/", "packaging/build/site/", ".system-roots/", ".venv-pypy/"}
"""Folders that no commit has."""


@functools.cache
def source_files() -> list[str]:
    """The paths of all source files and folders, with a slash before each and behind folders."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    ).stdout.splitlines()
    there = {f"/{name}" for name in listed if (ROOT / name).exists()}
    folders = {f"/{parent}/" for name in listed for parent in Path(name).parents if parent != Path(".")}
    return sorted(there | folders)


@functools.cache
def python_sources() -> dict[Path, str]:
    """Return the text of each Python source file, by its path."""
    return {ROOT / name[1:]: (ROOT / name[1:]).read_text("utf-8") for name in source_files() if name.endswith(".py")}


def is_defined(name: str, member: str, sources: dict[Path, str]) -> bool:
    """Whether a module or class of this name is there, and its folder defines the member."""
    folders = {
        path.parent
        for path, text in sources.items()
        if path.stem == name or re.search(rf"^class {name}\b", text, re.MULTILINE)
    }
    definition = re.compile(
        rf"^ *(?:async )?(?:def|class) {member}\b|^ *(?:self\.)?{member}\b[^=\n]*[:=]", re.MULTILINE
    )
    return any(definition.search(text) for path, text in sources.items() if path.parent in folders)


def unknown_names(text: str, files: list[str], sources: dict[Path, str]) -> list[str]:
    """The paths and the names of code in a document's code spans that do not exist."""
    unknown = []
    modules = {path.stem for path in sources}
    for span in CODE_SPAN.findall(text):
        if NAMED_PATH.fullmatch(span):
            if span not in MADE_BY_TOOLS and not any(name.endswith((f"/{span}", f"/{span}/")) for name in files):
                unknown.append(span)
        elif (found := NAMED_MEMBER.fullmatch(span)) and (found[1] in modules or found[1][0].isupper()):
            if not is_defined(found[1], found[2], sources):
                unknown.append(span)
    return unknown


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths_and_names_in_a_document_exist(document: str) -> None:
    files, sources = source_files(), python_sources()
    pages = sorted((ROOT / document).glob("*.md")) or [ROOT / document]
    assert [
        (page.name, found) for page in pages if (found := unknown_names(page.read_text("utf-8"), files, sources))
    ] == []


def test_an_unknown_name_in_a_document_is_found() -> None:
    files = ["/a/b.py", "/a/"]
    sources = {Path("a/b.py"): "def f(): ...\nclass C:\n    g: int\n    def __init__(self):\n        self.i = 1\n"}
    text = "`a/b.py` `b.py` `a/` `b.f` `C.g` `C.i` `x.y` `c.py` `a/d/` `b.h` `C.h()`"
    assert unknown_names(text, files, sources) == ["c.py", "a/d/", "b.h", "C.h()"]


@pytest.mark.parametrize("document", MAX_BYTES)
def test_documents_stay_short(document: str) -> None:
    assert (ROOT / document).stat().st_size <= MAX_BYTES[document]


def test_no_file_is_a_copy_of_another() -> None:
    seen: dict[bytes, Path] = {}
    for folder in PACKAGES.values():
        for path in sorted(folder.rglob("*.py")):
            if path.is_symlink() or path.name in ("__init__.py", "__main__.py"):
                continue
            other = seen.setdefault(path.read_bytes(), path)
            assert other == path, f"{path} is a copy of {other}: make it a link"


def test_the_package_of_scaler_top_has_the_rooms_that_it_imports() -> None:
    imports = imported_modules("scaler_client")
    reached: set[str] = set()
    waiting = ["scaler_client.top.cli"]
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += imports[module]
    rooms = {module.rpartition(".")[0] for module in reached}
    text = (ROOT / "packaging" / "top" / "pyproject.toml").read_text("utf-8")
    listed = re.search(r"^packages = \[(.*?)\]", text, re.DOTALL | re.MULTILINE)
    assert listed is not None and set(re.findall(r'"([\w.]+)"', listed[1])) == rooms | {"scaler_client"}


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
    layers = [{"low", "beside"}, {"middle"}, {"high"}]
    imports = {
        "low.a": {"middle.b"},
        "beside.c": {"low.a"},
        "middle.b": {"low.a", "middle.d"},
        "high": {"low.a"},
    }
    assert layer_breaches(imports, layers) == ["beside.c imports low.a", "low.a imports middle.b"]
