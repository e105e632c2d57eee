"""The installers of packages: uv if it is there, else pip. They run as one process group, with limits."""

from __future__ import annotations

import importlib.util
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scaler_client.packages.uv_lock import find_uv

if sys.platform != "win32":
    import resource

from .interpreters import without_python_variables

MAX_OUTPUT_BYTES = 1 << 16
"""Of the output of an installer, so much of its end is kept."""
MAX_ERROR_LINES = 20
MAX_ERROR_LENGTH = 3_000  # characters
CHECK_SECONDS = 0.5
"""Time between two looks at the size of what was built."""
MEASURING_SHARE = 10
"""Measuring the size takes at most one part in so many of the time."""
_POLL_SECONDS = 0.02

_ONLY_UNLOCKED = {
    "PIP_NO_BINARY", "PIP_ONLY_BINARY", "PIP_REQUIRE_HASHES", "UV_NO_BINARY", "UV_NO_BINARY_PACKAGE",
    "UV_NO_VERIFY_HASHES", "UV_REQUIRE_HASHES",
}  # fmt: skip
_NEVER = {
    "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON", "PIP_REQUIRE_VIRTUALENV", "PIP_EDITABLE",
    "PIP_REQUIREMENT", "PIP_CONSTRAINT", "PIP_LOG", "PIP_DRY_RUN", "PIP_REPORT", "UV_SYSTEM_PYTHON", "UV_PYTHON",
    "UV_CONSTRAINT", "UV_OVERRIDE", "UV_BREAK_SYSTEM_PACKAGES", "UV_COMPILE_BYTECODE", "UV_LINK_MODE",
}  # fmt: skip


class InstallError(Exception):
    """A build has failed. The text ends with the installer's own last lines, errors first."""


@dataclass(frozen=True)
class Installer:
    """Which program installs packages on this host."""

    uv: str
    """The program uv; empty: pip installs."""

    @property
    def name(self) -> str:
        return "uv" if self.uv else "pip"


def find_installer(environ: Mapping[str, str]) -> Installer:
    """Find an installer.

    Raises:
        InstallError: there is neither uv nor pip.
    """
    uv = find_uv(environ)
    if not uv and importlib.util.find_spec("pip") is None:
        hint = f"install one of them for the agent: {sys.executable} -m ensurepip, or uv on its PATH"
        raise InstallError(f"this host has neither uv nor pip: {hint}")
    return Installer(uv)


def install_command(installer: Installer, python: str, arguments: Sequence[str], *, is_locked: bool) -> list[str]:
    """The command that installs packages into the environment of a Python.

    Args:
        installer: uv or pip.
        python: the interpreter of the environment.
        arguments: `-r requirements.txt`, and other options that both installers know.
        is_locked: take wheels alone, so that no code runs, and only those whose hashes are given.
    """
    locked = ["--only-binary", ":all:", "--require-hashes"] if is_locked else []
    if installer.uv:
        own = ["--link-mode", "copy", "--compile-bytecode", "--no-progress", "--no-python-downloads"]
        return [installer.uv, "pip", "install", "--python", python, *own, *locked, *arguments]
    own = ["--no-input", "--disable-pip-version-check", "--no-warn-script-location", "--progress-bar", "off"]
    return [sys.executable, "-m", "pip", "--python", python, "install", *own, *locked, *arguments]


def installer_variables(
    environ: Mapping[str, str], downloads: str, temporary: str, *, is_locked: bool
) -> dict[str, str]:
    """The environment variables of an installer: the agent's own (indexes, proxies, certificates), with our folders."""
    left_out = _NEVER | _ONLY_UNLOCKED if is_locked else _NEVER
    variables = {name: value for name, value in without_python_variables(environ).items() if name not in left_out}
    variables.setdefault("UV_CACHE_DIR", os.path.join(downloads, "uv"))
    variables.setdefault("PIP_CACHE_DIR", os.path.join(downloads, "pip"))
    variables |= {"TMPDIR": temporary, "NO_COLOR": "1", "PYTHONNOUSERSITE": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    return variables


@dataclass(frozen=True)
class Limits:
    """Limits of one run of an installer."""

    deadline: float
    """Of `time.monotonic()`, in seconds."""
    seconds: float
    """The time limit that the deadline comes from, for the error."""
    max_file_bytes: int
    exceeded: Callable[[], str]
    """Measures the disk: why the build must end, or empty."""
    cancelled: int
    """A descriptor: the build ends when it can be read."""


def run_limited(command: Sequence[str], variables: Mapping[str, str], folder: str, limits: Limits, what: str) -> str:
    """Run a command with all processes that it starts, and end them all with it.

    Args:
        command: the program and its arguments.
        variables: its environment variables.
        folder: where it runs.
        limits: time, disk, and who may cancel it.
        what: the name of the program in errors.

    Returns:
        The end of its output.

    Raises:
        InstallError: it has failed, or a limit has ended it.
    """
    output = bytearray()
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(variables),
            cwd=folder,
            start_new_session=True,
            preexec_fn=lambda: _limit_files(limits.max_file_bytes),
        )
    except OSError as error:
        raise InstallError(f"{what} could not be started: {error.strerror}") from None
    try:
        reason = _watch(process, output, limits)
    finally:
        _end_group(process)
    text = output.decode(errors="replace")
    if reason:
        raise InstallError(f"{what} was ended: {reason}{error_text(text)}")
    if process.returncode != 0:
        status = process.returncode
        how = f"exit code {status}" if status >= 0 else f"signal {-status}"
        raise InstallError(f"{what} failed ({how}){error_text(text)}")
    return text


def _watch(process: subprocess.Popen[bytes], output: bytearray, limits: Limits) -> str:
    """Read the output until the process ends, and leave the reaping to the caller.

    Returns:
        Why it must be ended before its own end; empty: it has ended.
    """
    assert process.stdout is not None
    streams = [process.stdout.fileno(), limits.cancelled]
    next_look = time.monotonic() + CHECK_SECONDS
    while True:
        now = time.monotonic()
        if now >= limits.deadline:
            return f"it took more than {limits.seconds:.0f} seconds (--environment-build-seconds)"
        if now >= next_look:
            if reason := limits.exceeded():
                return reason
            took = time.monotonic() - now
            next_look = now + max(CHECK_SECONDS, took * MEASURING_SHARE)
        has_ended = _has_ended(process)
        readable, _, _ = select.select(streams, [], [], 0 if has_ended else _POLL_SECONDS)
        if limits.cancelled in readable:
            return "the agent has ended, or does not need it any more"
        if readable:
            data = os.read(readable[0], 1 << 16)
            output += data
            del output[:-MAX_OUTPUT_BYTES]
            if not data:
                streams = [limits.cancelled]
        elif has_ended:  # a process that it has left behind may still have its output open
            return limits.exceeded()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    if not hasattr(os, "waitid"):  # macOS before Python 3.13: this reaps it
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)  # also what it has left behind; not reaped yet, so the number is its own
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _limit_files(max_file_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def error_text(output: str) -> str:
    """What an installer says about its failure.

    Args:
        output: the end of its output.

    Returns:
        A colon, and its last lines: those that begin with `ERROR:` first, in any case. If it is too long, the other
        lines lose their beginning. Empty: there are no lines.
    """
    lines = [_printable(line.rstrip()) for line in output.replace("\r", "\n").splitlines() if line.strip()]
    errors = [line for line in dict.fromkeys(lines) if line.lstrip().lower().startswith("error:")][-MAX_ERROR_LINES:]
    first = "\n".join(errors)[-MAX_ERROR_LENGTH:]
    others = "\n".join(line for line in lines[-MAX_ERROR_LINES:] if line not in errors)
    room = MAX_ERROR_LENGTH - len(first)
    parts = [part for part in (first, others[-room:] if room else "") if part]
    return ":\n" + "\n".join(parts) if parts else ""


def _printable(line: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in line)
