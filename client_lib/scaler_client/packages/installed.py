"""What this interpreter has, as a requirements file: the command `scaler_client environment lock`."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from ..errors import PackagesError
from .requirements import MODULES_HINT, Requirement, RequirementsText, parse_requirement, read_requirements
from .uv_lock import find_uv
from .wheels import normalized

OWN = ("scaler-client", "scaler-worker", "scaler-scheduler")
"""The host has these: an environment does not need them."""
TOOLS = ("pip", "uv")
"""Every environment has its own installer, or needs none."""
HASHES_SECONDS = 600.0


@dataclass(frozen=True)
class Installed:
    """The packages of this interpreter."""

    requirements: tuple[Requirement, ...]
    """Sorted by name."""
    warnings: tuple[str, ...]
    """One line for each package that is left out."""
    without_wheel: tuple[str, ...] = ()
    """Names of packages that hosts cannot install. The file is locked, so hosts install only wheels, but the index has
    no wheel of these packages for this Python. Only `with_hashes` finds them.
    """


def installed_packages(distributions: Iterable[importlib.metadata.Distribution] | None = None) -> Installed:
    """The packages of this interpreter, with exact versions.

    Args:
        distributions: the packages to look at; None: those of this interpreter.
    """
    found: dict[str, Requirement] = {}
    warnings = []
    for distribution in importlib.metadata.distributions() if distributions is None else distributions:
        metadata: Any = distribution.metadata
        name = metadata["Name"] if metadata is not None else None
        if not name or not distribution.version:
            warnings.append(f"a package in {getattr(distribution, '_path', '?')} has no name or no version: left out")
            continue
        key = normalized(name)
        if key in found or key in OWN or key in TOOLS:
            continue  # the first one on the search path is the one that is imported
        origin = _origin(distribution)
        if origin.get("dir_info") is not None:
            what = "an editable install" if origin["dir_info"].get("editable") else "an install"
            folder = str(origin.get("url", "")).removeprefix("file://")
            warnings.append(f"{name} is left out: it is {what} of {folder}: {MODULES_HINT}")
            continue
        try:
            found[key] = _requirement(name, distribution.version, origin)
        except PackagesError as error:
            warnings.append(f"{name} is left out: {str(error).removeprefix('installed: ')}")
    return Installed(tuple(found[key] for key in sorted(found)), tuple(warnings))


def _origin(distribution: importlib.metadata.Distribution) -> dict[str, Any]:
    """Where an installer got the package from, if not from an index (PEP 610)."""
    try:
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    except (OSError, ValueError):
        return {}
    return origin if isinstance(origin, dict) else {}


def _requirement(name: str, version: str, origin: Mapping[str, Any]) -> Requirement:
    url = str(origin.get("url", ""))
    if "vcs_info" in origin:
        vcs = origin["vcs_info"]
        line = f"{name} @ {vcs.get('vcs', 'git')}+{url}@{vcs.get('commit_id', '')}"
    elif url.startswith(("https://", "http://")):
        hashes = origin.get("archive_info", {}).get("hashes", {})
        line = f"{name} @ {url}" + (f" --hash=sha256:{hashes['sha256']}" if "sha256" in hashes else "")
    else:  # an index, or a wheel of this machine, which may not be there any more
        line = f"{name}=={version}"
    return parse_requirement(line, "installed", lambda given: given)


def with_hashes(installed: Installed, environ: Mapping[str, str]) -> Installed:
    """Ask the index for the hashes of these versions: by uv (the files of all platforms), or pip (of this one).

    Args:
        installed: the packages.
        environ: the variables of the environment, with which uv or pip runs.

    Returns:
        The packages with hashes, and the names of those without a wheel.

    Raises:
        PackagesError: there is neither uv nor pip, or the index does not have a package.
    """
    requirements = installed.requirements
    unknown = [each for each in requirements if not each.hashes]
    if not unknown:
        return installed
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "installed.txt")
        with open(plain, "w", encoding="utf-8") as file:
            file.write(RequirementsText(list(unknown)).canonical())
        uv = find_uv(environ)
        if uv:
            hashed = os.path.join(folder, "hashed.txt")
            options = ["--no-deps", "--generate-hashes", "--no-header", "--no-annotate", "--quiet"]
            _run([uv, "pip", "compile", *options, "--python", sys.executable, "-o", hashed, plain], environ)
            found = {normalized(each.name): each.hashes for each in read_requirements(hashed, environ).requirements}
            without_wheel = _without_wheel(uv, unknown, folder, environ)
        elif importlib.util.find_spec("pip") is not None:
            report = os.path.join(folder, "report.json")
            options = ["--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--report", report, "-r", plain]
            _run([sys.executable, "-m", "pip", "install", *options], environ)
            found, without_wheel = _read_report(report)
        else:
            raise PackagesError("--hashes needs uv or pip, and neither is installed here: pip install uv")
    missing = [each.name for each in unknown if not found.get(normalized(each.name))]
    if missing:
        raise PackagesError(f"the index tells no hash of {', '.join(missing[:5])}")
    hashed_requirements = tuple(
        each if each.hashes else replace(each, hashes=found[normalized(each.name)]) for each in requirements
    )
    if RequirementsText(list(hashed_requirements)).unlocked:
        without_wheel = []  # the file is not locked: hosts build packages
    return replace(installed, requirements=hashed_requirements, without_wheel=tuple(without_wheel))


def _without_wheel(uv: str, requirements: list[Requirement], folder: str, environ: Mapping[str, str]) -> list[str]:
    """The names of the packages for which uv finds no wheel for this Python. All packages must be on the index."""
    plain = os.path.join(folder, "wheels.txt")
    with open(plain, "w", encoding="utf-8") as file:
        file.write(RequirementsText(requirements).canonical())
    options = ["--no-deps", "--only-binary", ":all:", "--quiet", "--python", sys.executable]
    try:
        _run([uv, "pip", "compile", *options, "-o", os.path.join(folder, "chosen.txt"), plain], environ)
    except PackagesError:  # uv names only the first package without a wheel: ask for each half
        if len(requirements) == 1:
            return [requirements[0].name]
        middle = len(requirements) // 2
        halves = requirements[:middle], requirements[middle:]
        return [name for half in halves for name in _without_wheel(uv, half, folder, environ)]
    return []


def _read_report(path: str) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """The hashes by name in a report of pip, and the names of packages that pip would build."""
    with open(path, encoding="utf-8") as file:
        items = json.load(file)["install"]
    hashes: dict[str, tuple[str, ...]] = {}
    without_wheel = []
    for item in items:
        sha256 = item["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
        hashes[normalized(item["metadata"]["name"])] = (f"sha256:{sha256}",) if sha256 else ()
        if not urlsplit(item["download_info"]["url"]).path.endswith(".whl"):
            without_wheel.append(item["metadata"]["name"])
    return hashes, without_wheel


def _run(command: list[str], environ: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, env=dict(environ), timeout=HASHES_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PackagesError(f"--hashes: {error}") from None
    if done.returncode != 0:
        lines = " ".join(done.stderr.decode(errors="replace").split())
        raise PackagesError(f"--hashes: {os.path.basename(command[0])} failed: {lines[-1_000:]}")


def lock_text(installed: Installed) -> str:
    """The requirements file, with the version of Python and the platform in comments."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    unlocked = RequirementsText(list(installed.requirements)).unlocked
    lines = [
        f"# Written by scaler_client environment lock, with {python} on {sys.platform} {platform.machine()}.",
        "# Use: Client(environment=THIS FILE)",
    ]
    if unlocked:
        lines.append(f"# Hosts need --environments any: {unlocked}.")
    lines += [f"# Left out: {each.splitlines()[0]}" for each in installed.warnings]
    if installed.without_wheel:
        lines.append(f"# Hosts cannot install these, without a wheel: {', '.join(installed.without_wheel)}.")
    for requirement in installed.requirements:
        lines.append(requirement.line().replace(" --hash=", " \\\n    --hash="))
    return "\n".join(lines) + "\n"
