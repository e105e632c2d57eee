"""Hook of mkdocs: the site's pages, taken from where they are in the repository.

Each page keeps its path of the repository, so a link between two documents works both there and in the site. A file
that a page links to, such as a picture or a schema, becomes part of the site. A link to a folder becomes plain text.
A folder's `index.md` gives the order of its pages: the order of its links. A page that no index links to is a warning,
and so is a public name of `scaler_client` without a docstring; `strict` makes errors of them.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

log = logging.getLogger("mkdocs.hooks.pages")

ROOT = Path(__file__).resolve().parents[2]
USERS = "client_lib/docs"
OPERATORS = "scheduler_daemon/docs"
DECISIONS = "scheduler_daemon/docs/decisions"
DEVELOPERS = {
    "Architecture": "ARCHITECTURE.md",
    "Values": "scheduler_daemon/docs/values.md",
    "Protocol": "scheduler_daemon/protocol/PROTOCOL.md",
    "Golden messages": "scheduler_daemon/protocol/vectors/README.md",
    "Contributing": "CONTRIBUTING.md",
    "Benchmarks": "benchmarks/README.md",
    "Security": "SECURITY.md",
    "Changes": "CHANGELOG.md",
}
PACKAGES = {"Packages": "packaging/README.md"}
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\[\]]*\])*\])\(([^()\s]+)\)")
CODE = re.compile(r"^( *)(`{3,}).*?^\1\2 *$|``.*?``|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation."""
    config.nav = [
        {"Overview": "README.md"},
        {"For users": section(USERS)},
        {"For operators": [*section(OPERATORS), *entries(PACKAGES)]},
        {"For developers": [*entries(DEVELOPERS), *decisions()]},
    ]
    return config


def entries(pages: dict[str, str]) -> list[Any]:
    return [{title: page} for title, page in pages.items() if (ROOT / page).exists()]


def section(folder: str) -> list[Any]:
    """A folder's pages in the order in which its index links to them, the index first."""
    index = f"{folder}/index.md"
    if not (ROOT / index).exists():
        return []
    linked = [target for target in targets(index) if target.startswith(folder) and target.endswith(".md")]
    linked = [target for target in linked if not target.startswith(DECISIONS)]
    return list(dict.fromkeys([index, *linked]))


def decisions() -> list[Any]:
    pages = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / DECISIONS).glob("*.md"))
    pages.sort(key=lambda page: not page.endswith("/index.md"))
    return [{"Decisions": pages}] if pages else []


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and the files that they link to."""
    pages = {"README.md", *DEVELOPERS.values(), *PACKAGES.values()}
    for folder in (USERS, OPERATORS):
        pages.update(path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.md"))
    pages = {page for page in pages if (ROOT / page).exists()}
    linked = {target for page in pages for target in targets(page) if (ROOT / target).is_file()}
    for path in sorted(pages | {target for target in linked if not target.endswith(".md")}):
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Make plain text of the links to folders and to documents that are no pages."""
    if page.file.src_uri in DEVELOPERS.values():
        page.meta["search"] = {"boost": 0.5}  # most readers search for what users and operators do

    def kept(found: re.Match[str]) -> str:
        target = resolved(page.file.src_uri, found[2])
        is_elsewhere = target is not None and ((ROOT / target).is_dir() or (ROOT / target).is_file())
        if is_elsewhere and page.file.src_uri and not known(target):
            return found[1].strip("[]")
        return found[0]

    def known(target: str | None) -> bool:
        return target is not None and (ROOT / target).is_file() and (not target.endswith(".md") or is_page(target))

    parts = []
    end = 0
    for code in CODE.finditer(markdown):
        parts += [LINK.sub(kept, markdown[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, LINK.sub(kept, markdown[end:])])


def is_page(path: str) -> bool:
    return path in {"README.md", *DEVELOPERS.values(), *PACKAGES.values()} or path.startswith((USERS, OPERATORS))


def resolved(page: str, link: str) -> str | None:
    """The path in the repository that a page's link names, or None if it leads elsewhere."""
    path = link.partition("#")[0]
    if not path or re.match(r"[a-z]+:|/", path):
        return None
    return normpath(str(PurePosixPath(page).parent / path))


def targets(page: str) -> list[str]:
    """The paths in the repository that a page links to, in order."""
    text = CODE.sub("", (ROOT / page).read_text("utf-8"))
    return [target for _, link in LINK.findall(text) if (target := resolved(page, link)) is not None]


def on_pre_build(config: MkDocsConfig) -> None:
    """Warn of each public name of scaler_client without a docstring."""
    for name in undocumented():
        log.warning("%s has no docstring", name)


def is_called(member: Any) -> bool:
    """Whether a member is a method or a property. An attribute is part of its class's docstring."""
    return member.is_function or "property" in member.labels


def undocumented() -> list[str]:
    """The public names of scaler_client, and methods and properties of its classes, that have no docstring."""
    package = griffe.load("scaler_client", search_paths=[str(ROOT / "client_lib")], allow_inspection=False)
    found = []
    for name in package.exports or ():
        public = package[str(name)]
        if not public.has_docstring:
            found.append(f"scaler_client.{name}")
        if public.is_class:
            found += [
                f"scaler_client.{name}.{member.name}"
                for member in public.all_members.values()
                if not member.name.startswith("_") and not member.has_docstring and is_called(member)
            ]
    return found
