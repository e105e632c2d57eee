"""uv's lock files: uv itself exports them, as it alone knows which packages of a lock this project needs."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping

from ..errors import PackagesError
from .requirements import RequirementsText, read_requirements

EXPORT_SECONDS = 120.0


def find_uv(environ: Mapping[str, str]) -> str:
    """The path of the program uv: on PATH, or as a package of this Python. Empty: there is none."""
    found = shutil.which("uv", path=environ.get("PATH", os.defpath))
    if found is None and importlib.util.find_spec("uv") is not None:
        import uv

        try:
            found = uv.find_uv_bin()
        except FileNotFoundError:
            found = None
    return found or ""


def read_uv_lock(path: str, environ: Mapping[str, str]) -> RequirementsText:
    """The packages of a `uv.lock`, without the project itself.

    Raises:
        PackagesError: there is no uv, or it refuses the lock.
    """
    uv = find_uv(environ)
    if not uv:
        hint = "install it (pip install uv), or export the lock where it is: uv export --no-emit-project -o pylock.toml"
        raise PackagesError(f"{path}: only uv can read its lock, and it is not installed here: {hint}")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isfile(os.path.join(folder, "pyproject.toml")):
        raise PackagesError(f"{path}: uv needs the file pyproject.toml of the lock beside it")
    with tempfile.TemporaryDirectory() as temporary:
        exported = os.path.join(temporary, "requirements.txt")
        options = ["--format=requirements.txt", "--no-emit-workspace", "--no-header", "--no-annotate", "--no-dev"]
        command = [uv, "export", "--frozen", *options, "--project", folder, "--output-file", exported, "--quiet"]
        try:
            done = subprocess.run(
                command, capture_output=True, env={**environ, "NO_COLOR": "1"}, timeout=EXPORT_SECONDS, cwd=folder
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PackagesError(f"{path}: uv export failed: {error}") from None
        if done.returncode != 0:
            lines = " ".join(done.stderr.decode(errors="replace").split())
            raise PackagesError(f"{path}: uv export failed: {lines[-1_000:] or f'exit code {done.returncode}'}")
        try:
            return read_requirements(exported, environ, folder)
        except PackagesError as error:
            raise PackagesError(str(error).replace(exported, path)) from None
