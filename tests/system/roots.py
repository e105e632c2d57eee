"""Minimal roots of Debian, built once and kept in .system-roots/, which git ignores.

    python -m tests.system.roots    builds the missing roots (tests/system/run.sh calls it first)

They are never changed afterwards: programs run in a layer of memory over them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.system.requirements import mirror, proxies, release_of_debian

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = CHECKOUT / ".system-roots"

BASE = ("systemd", "systemd-sysv", "dbus")
"""The packages of a machine that boots, without Python."""
SLURM = (*BASE, "munge", "slurmctld", "slurmd", "slurm-client", "python3")
PYTHON = (*BASE, "python3", "python3-pip")
"""The folder that pip installs into, in a machine and in an image."""


def base() -> Path:
    """The root of a machine that boots."""
    return _root("base", BASE)


def slurm() -> Path:
    """The root of a machine with Slurm's daemons, and Python for the workers."""
    return _root("slurm", SLURM)


def python() -> Path:
    """The root of a machine that boots, with Debian's Python and pip."""
    return _root("python", PYTHON)


def minor_version(root: Path) -> int:
    """The minor version of the Python 3 in a root."""
    [library] = (root / "usr" / "lib").glob("python3.*")
    return int(library.name.removeprefix("python3."))


def environment() -> dict[Path, str]:
    """The folders that a machine mounts at the same paths to run the commands: this checkout and its Python."""
    there = [Path("/usr")]
    for path in (CHECKOUT, Path(sys.prefix), Path(sys.base_prefix)):
        if not any(path.is_relative_to(other) for other in there):
            there.append(path)
    return {path: str(path) for path in there[1:]}


def _root(name: str, packages: tuple[str, ...]) -> Path:
    release = release_of_debian()
    root, log = FOLDER / f"{release}-{name}", FOLDER / f"{release}-{name}.log"
    made_of = root / "etc" / "made-of"
    wanted = " ".join(packages)
    if made_of.exists() and made_of.read_text() == wanted:
        return root
    unfinished = FOLDER / f"{root.name}.unfinished"
    for old in (root, unfinished):
        shutil.rmtree(old, ignore_errors=True)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "packages").mkdir(exist_ok=True)
    print(f"[system] .system-roots/{root.name}: {wanted} ... ", end="", flush=True)
    start = time.monotonic()
    command = [
        # The mounts of debootstrap disappear with its mount namespace, however it ends.
        *("unshare", "--mount", "--propagation", "private"),
        *("debootstrap", "--variant=minbase", f"--cache-dir={FOLDER / 'packages'}", f"--include={','.join(packages)}"),
        *(release, str(unfinished), mirror(release)),
    ]
    with open(log, "w") as output:
        ended = subprocess.run(
            command, env={**os.environ, **proxies()}, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    if ended.returncode:
        raise RuntimeError(f"debootstrap failed, {log.relative_to(CHECKOUT)} ends with:\n{_end_of(log)}")
    (unfinished / "etc" / "made-of").write_text(wanted)
    unfinished.rename(root)
    print(f"done ({time.monotonic() - start:.0f} s)", flush=True)
    return root


def _end_of(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-10:])


def main() -> int:
    try:
        base()
        slurm()
        python()
    except RuntimeError as error:
        print(f"failed\n{error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
