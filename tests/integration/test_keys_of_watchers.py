"""Monitor programs as real processes, with --keys, at a monitor address of tcp that requires keys."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.integration.commands import Command, run_once, scheduler, scheduler_command
from tests.waiting import wait_until

SECONDS = 30
ASKING = (("scaler_client.top", "--json"), ("scaler_client.top", "--once"), ("scaler_client", "status"))
SERVING = (("ui", "aiohttp"), ("exporter", "prometheus_client"))


@dataclass(frozen=True)
class Scene:
    monitor: str
    address: str
    """The scheduler's own."""
    keys: str
    strangers: str
    """Keys that are not authorized."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("watched")
    made, strangers = str(folder / "keys"), str(folder / "strangers")
    for arguments in (("keygen", made), ("keygen", strangers, "--as", "monitor")):
        done = run_once(scheduler_command(*arguments, python=sys.executable))
        assert done.returncode == 0, done.stderr
    Path(strangers, "server.key").write_bytes(Path(made, "server.key").read_bytes())
    with scheduler(folder, "--keys", made, "--monitor-address", "tcp://127.0.0.1:*") as daemon:
        yield Scene(daemon.monitor_address, daemon.address, made, strangers)


@pytest.mark.parametrize("question", ASKING, ids=" ".join)
def test_queries_with_the_right_keys_are_answered(scene: Scene, question: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", *question, scene.monitor, "--timeout"]
    answered = run_once([*command, "20", "--keys", scene.keys])
    assert (answered.returncode, answered.stderr) == (0, "") and answered.stdout
    by_environment = run_once([*command, "20"], SCALER_KEYS=scene.keys)
    assert (by_environment.returncode, by_environment.stderr) == (0, "")


def test_queries_with_wrong_keys_report_the_reason(scene: Scene) -> None:
    """All at once, because each program waits for its whole time limit: it may still be authorized."""
    refusals = [
        (question, scene.monitor, keys, why)
        for question in ASKING
        for keys, why in (
            (["--keys", scene.strangers], f"{scene.strangers}/monitor.key (as monitor). Authorize it there"),
            ([], "needs keys, and none were given"),
        )
    ]
    wrong_address = "this is the scheduler's own address, not its monitor address"
    refusals.append((("scaler_client", "status"), scene.address, ["--keys", scene.keys], wrong_address))
    commands = [
        [sys.executable, "-m", *question, address, "--timeout", "10", *keys] for question, address, keys, _ in refusals
    ]
    with ThreadPoolExecutor(len(commands)) as together:
        for refused, (*_, why) in zip(together.map(run_once, commands), refusals, strict=True):
            assert refused.returncode == 1 and why in refused.stderr, refused.stderr
            assert refused.stderr.count("\n") == 1, refused.stderr


def test_missing_keys(scene: Scene) -> None:
    for question in ASKING:
        refused = run_once([sys.executable, "-m", *question, scene.monitor, "--keys", "/nowhere"])
        assert (
            refused.returncode == 2
            and refused.stderr.count("\n") == 1
            and "there is no folder of keys at /nowhere" in refused.stderr
        )


@contextmanager
def serving(scene: Scene, folder: Path, module: str, library: str, keys: str) -> Iterator[tuple[Command, str]]:
    pytest.importorskip(library, reason=f"the program needs {library}: pip install 'scaler-client[{module}]'")
    arguments = [sys.executable, "-m", f"scaler_client.{module}", scene.monitor, "--port", "0", "--keys", keys]
    command = Command(arguments, folder / "log")
    try:
        yield command, command.logged(r"(http://[\d.:]+)")
    finally:
        command.end()


@pytest.mark.parametrize(("module", "library"), SERVING)
def test_servers_with_the_right_keys_follow_the_scheduler(
    scene: Scene, tmp_path: Path, module: str, library: str
) -> None:
    with serving(scene, tmp_path, module, library, scene.keys) as (_, url):
        wait_until(lambda: health(url) == 200, SECONDS, "the scheduler")


@pytest.mark.parametrize(("module", "library"), SERVING)
def test_servers_with_wrong_keys_report_the_reason(scene: Scene, tmp_path: Path, module: str, library: str) -> None:
    with serving(scene, tmp_path, module, library, scene.strangers) as (command, url):
        wait_until(lambda: "Authorize it there" in command.log(), SECONDS, "the reason")
        assert health(url) == 503


def health(url: str) -> int:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=SECONDS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
