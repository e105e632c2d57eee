"""The images of scheduler, workers and exporter, run as in Kubernetes: as another user, read-only."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.commands import scheduler_command
from tests.system import roots
from tests.system.images import Image, Images
from tests.system.nspawn import Nspawn
from tests.system.packages import DIST, Packages
from tests.system.page import page
from tests.system.service import free_port
from tests.waiting import wait_until

from scaler_client import Client

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("buildah") is None, reason="needs buildah (Debian's package)"),
]

DOCKERFILES = roots.CHECKOUT / "packaging" / "container"
GROUP = 10001
"""The user id of the images."""
Run = Callable[..., Nspawn]


@pytest.fixture
def images(built: Packages, tmp_path: Path) -> Images:
    return Images(tmp_path / "images")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    containers: list[Nspawn] = []

    def start(image: Image, *arguments: str, keys: Path | None = None) -> Nspawn:
        log = tmp_path / f"{len(containers)}.log"
        environment = [f"--setenv={variable}" for variable in image.environment]
        user, group = image.user.split(":")
        become = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--no-new-privs"]
        command = ["--as-pid2", *become, *image.entry, *arguments]
        if keys is not None:
            (image.root / "keys").mkdir()  # the mount point, which the image does not make
            environment.append("--setenv=SCALER_KEYS=/keys")
        binds = {} if keys is None else {keys: "/keys"}
        containers.append(Nspawn(image.root, log, binds, "--volatile=no", "--read-only", *environment, *command))
        return containers[-1]

    yield start
    for container in reversed(containers):
        container.end()


def test_images_run_tasks(images: Images, wheels: Path, run: Run, tmp_path: Path) -> None:
    images.take("debian:bookworm-slim", roots.base())
    # Debian's pip protects the system's packages; the real base image has none. The wheels are in a folder, because
    # there may be no network.
    offline = "printf '[global]\\nno-index = true\\nfind-links = /loaded\\n' > /etc/pip.conf"
    images.take("python:3.11-slim", roots.python(), "rm -f /usr/lib/python3*/EXTERNALLY-MANAGED", offline)
    scheduler = images.build(DOCKERFILES / "scheduler.Dockerfile", "scaler-scheduler", DIST)
    volume = ("--volume", f"{wheels}:/loaded:ro")
    workers = images.build(DOCKERFILES / "workers.Dockerfile", "scaler-workers", DIST, *volume)
    exporter = images.build(DOCKERFILES / "exporter.Dockerfile", "scaler-exporter", DIST, *volume)

    address = f"tcp://127.0.0.1:{free_port()}"
    keys = tmp_path / "keys"
    subprocess.run(scheduler_command("keygen", str(keys)), check=True)
    there = run(scheduler, address, keys=_secret(keys, "server.key", "server.secret", "authorized"))
    wait_until(lambda: "keys of /keys: 3 may connect" in there.log() or there.has_ended, 60.0, "the scheduler")
    assert "PyPy" in there.log() and f"address {address}" in there.log(), there.log()
    cluster = run(workers, "-n", "2", address, keys=_secret(keys, "server.key", "worker.key", "worker.secret"))
    with Client(address, keys=keys) as client:
        assert client.map(pow, [(value, 2) for value in range(20)]) == [value**2 for value in range(20)]
    cluster.end()
    wait_until(lambda: "has left" in there.log(), 60.0, "the agent's goodbye")
    port = free_port()
    run(exporter, "--port", str(port), f"tcp://127.0.0.1:{free_port()}")
    wait_until(lambda: "scaler_up 0.0" in page(f"http://127.0.0.1:{port}/metrics"), 60.0, "metrics without a scheduler")


def _secret(keys: Path, *names: str) -> Path:
    """Some of the keys, as Kubernetes mounts a secret with the mode of the manifests: readable for the pod's group."""
    folder = keys.with_name(f"{names[-1]}-secret")
    folder.mkdir()
    for name in names:
        shutil.copy(keys / name, folder)
        shutil.chown(folder / name, "root", GROUP)
        (folder / name).chmod(0o440)
    folder.chmod(0o755)
    return folder
