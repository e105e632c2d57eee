"""What a worker needs to run in an environment: a folder with two parts.

`own` has links to scaler_worker and scaler_client, and comes before the environment's packages: worker and agent must
have the same version, also if the environment names another one. `required` has what these two require, and comes
behind them. For the Python of the agent this has links to the agent's packages, and to nothing else that the agent
has. For another version of Python the installer fills it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import secrets
from collections.abc import Iterator

from .cache import remove_tree

OWN = "own"
REQUIRED = "required"
OWN_PACKAGES = ("scaler_worker", "scaler_client")
_DISTRIBUTIONS = ("pyzmq", "pycapnp", "psutil", "cloudpickle", "tomli")
FORMAT = 2


def linked_runtime(root: str, python: str) -> str:
    """Make the folder for the Python of this process, once.

    Args:
        root: the folder of the cache.
        python: the full version, `3.11.7`.

    Returns:
        The folder.

    Raises:
        OSError: it cannot be made.
    """
    parts = {OWN: dict(own_package_links()), REQUIRED: dict(_distribution_links())}
    folder = os.path.join(root, "scaler-" + _key([FORMAT, python, parts]))
    if _has_links(folder, parts):
        return folder
    temporary = f"{folder}.{secrets.token_hex(4)}"  # hosts may share the cache
    for part, links in parts.items():
        make_links(os.path.join(temporary, part), links)
    remove_tree(folder)
    try:
        os.rename(temporary, folder)
    except OSError:  # another agent was faster
        remove_tree(temporary)
        if not _has_links(folder, parts):
            raise
    return folder


def make_links(folder: str, links: dict[str, str]) -> None:
    """Make a folder of links. Raises OSError."""
    os.makedirs(folder, 0o700)
    for name, target in links.items():
        os.symlink(target, os.path.join(folder, name))


def runtime_key(python: str) -> str:
    """The name in the cache of the runtime for another version of Python."""
    import importlib.metadata  # not at the top: the import takes some 20 ms, and few hosts need it

    versions = [importlib.metadata.version(name) for name in ("scaler-worker", "scaler-client")]
    return "scaler-" + _key([FORMAT, python, versions, requirements()])


def requirements() -> list[str]:
    """What scaler_worker and scaler_client require, as lines for an installer; markers are for its Python."""
    import importlib.metadata  # as above

    lines = []
    for name in ("scaler-worker", "scaler-client"):
        for line in importlib.metadata.requires(name) or []:
            if "extra ==" not in line and not line.replace("_", "-").startswith("scaler-client"):
                lines.append(line)
    return sorted(lines)


def own_package_links() -> Iterator[tuple[str, str]]:
    """The names and folders of our own packages: they are pure Python, and work in every version that we support."""
    for name in OWN_PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            yield name, os.path.realpath(next(iter(spec.submodule_search_locations)))


def _distribution_links() -> Iterator[tuple[str, str]]:
    """The top level entries of the packages that we require: modules, shared libraries, metadata."""
    import importlib.metadata  # as above

    for distribution in _DISTRIBUTIONS:
        try:
            found = importlib.metadata.distribution(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
        names = {file.parts[0] for file in found.files or [] if len(file.parts) > 1 or file.suffix in (".py", ".so")}
        for name in sorted(names - {"..", "__pycache__", "bin", "/"}):
            target = os.path.realpath(str(found.locate_file(name)))
            if os.path.exists(target):
                yield name, target


def _has_links(folder: str, parts: dict[str, dict[str, str]]) -> bool:
    try:
        return all(
            {name: os.readlink(os.path.join(folder, part, name)) for name in os.listdir(os.path.join(folder, part))}
            == links
            for part, links in parts.items()
        )
    except OSError:
        return False


def _key(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
