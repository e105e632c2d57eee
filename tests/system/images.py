"""Images built from the Dockerfiles by Debian's buildah. The base images are roots of Debian."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Image:
    """An image: its file system `root`, and its settings."""

    root: Path
    entry: list[str]
    user: str
    environment: list[str]


class Images:
    """A store of images in `folder`. It is empty at first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, name: str, root: Path, *prepare: str) -> None:
        """Add an image of a root. `prepare` is a shell command that runs in it first."""
        container = self._run("from", "scratch")
        self._run("copy", "--quiet", container, str(root), "/")
        if prepare:
            self._run("run", container, "sh", "-ec", "; ".join(prepare))
        self._run("commit", "--quiet", container, name)
        self._run("rm", container)

    def build(self, dockerfile: Path, name: str, context: Path, *options: str) -> Image:
        """Build an image like `docker build`."""
        self._run("build", "--quiet", "--file", str(dockerfile), "--tag", name, *options, str(context))
        config = json.loads(self._run("inspect", "--type", "image", name))["OCIv1"]["config"]
        mounted = self._run("mount", self._run("from", "--name", f"{name}-mounted", name))
        return Image(Path(mounted), config["Entrypoint"], config["User"], config["Env"])

    def _run(self, *command: str) -> str:
        # chroot needs no privileges of Docker.
        environment = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
        store = (
            "--storage-driver",
            "vfs",
            "--root",
            str(self._folder / "store"),
            "--runroot",
            str(self._folder / "run"),
        )
        ran = subprocess.run(
            ["buildah", *store, *command], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert ran.returncode == 0, f"buildah {command[0]}: {ran.stdout}{ran.stderr}"
        return ran.stdout.strip()
