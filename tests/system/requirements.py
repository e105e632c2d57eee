"""The requirements of the system tests, and the reasons for skipping them."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess

RELEASES = {"bookworm", "trixie"}
"""Releases of Debian that have all packages of the roots."""

_COMMANDS = {
    "apt-get": "apt",
    "debootstrap": "debootstrap",
    "dpkg-deb": "dpkg",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "systemd-nspawn": "systemd-container",
}
"""Commands, each with its Debian package."""


def reason_to_skip() -> str:
    """Why this machine cannot boot roots of Debian. Empty if it can."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return f"the packages are for Linux on x86_64, this is {platform.system()} on {platform.machine()}"
    if os.geteuid() != 0:
        return "needs root, to boot a machine with systemd-nspawn"
    missing = [package for command, package in _COMMANDS.items() if shutil.which(command) is None]
    if missing:
        return f"needs {', '.join(dict.fromkeys(missing))} (Debian's packages)"
    release = release_of_debian()
    if release not in RELEASES:
        return f"roots are built of Debian's {' and '.join(sorted(RELEASES))}, this machine is {release or 'another'}"
    return "" if mirror(release) else f"the machine's apt sources name no main component of {release}"


def release_of_debian() -> str:
    """The code name of this machine's release."""
    return platform.freedesktop_os_release().get("VERSION_CODENAME", "")


def mirror(release: str) -> str:
    """The mirror of this release in the machine's apt configuration. Empty: none."""
    form = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)"
    targets = _output("apt-get", "indextargets", "--format", form, "Created-By: Packages")
    for line in targets.splitlines():
        address, named, component, origin = line.split("|")
        if named == release and component == "main" and origin in ("Debian", "$(ORIGIN)"):
            return address
    return ""


def proxies() -> dict[str, str]:
    """apt's proxies as environment variables for other programs."""
    found = {}
    for scheme in ("http", "https"):
        proxy = _output("apt-config", "shell", "proxy", f"Acquire::{scheme}::Proxy").strip()
        if proxy:
            found[f"{scheme}_proxy"] = proxy.removeprefix("proxy=").strip("'\"")
    return found


def _output(*command: str) -> str:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    print(reason_to_skip())
