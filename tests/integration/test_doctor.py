"""`scaler_client doctor` as a process, with real schedulers and clusters."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.commands import Command, cluster_command, key_command, run_once, scheduler
from tests.waiting import wait_until

from scaler_client import Client
from scaler_client.commands.addresses import parse_connect_address
from scaler_client.inspect.doctor import examination as doctor
from scaler_client.inspect.doctor.report import report_json

OWN = "scaler_test_own_module"


def examine(*arguments: str, **variables: str) -> tuple[int, dict[str, Any]]:
    """Run the command. Returns its exit status and report."""
    # Each answer may take long: other tests run beside this one.
    variables = {"SCALER_CLIENT_TIMEOUT": "30", **variables}
    ran = run_once([sys.executable, "-m", "scaler_client", "doctor", "--json", *arguments], **variables)
    assert ran.stderr == "", ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    return ran.returncode, report


def problems(report: dict[str, Any]) -> dict[str, str]:
    """The text of each check that found something, by its name."""
    assert all(bool(check["advice"]) == (check["status"] != "ok") for check in report["checks"])
    return {check["check"]: check["text"] for check in report["checks"] if check["status"] != "ok"}


def text_of(report: dict[str, Any], name: str) -> str:
    return "\n".join(check["text"] for check in report["checks"] if check["check"] == name)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler with two workers, one of a host with a module that is missing here."""
    folder = tmp_path_factory.mktemp("doctor")
    with scheduler(folder) as started:
        command = Command(cluster_command("-n", "2", started.address), folder / "cluster.log")
        try:
            with Client(started.address) as client:
                assert client.submit(abs, -1).result(30) == 1
            yield started.address
        finally:
            command.end()


def test_a_cluster_that_is_well(address: str) -> None:
    status, report = examine(address)
    assert set(problems(report)) <= {"open files", "shared memory", "task"}, report
    assert status == 0 and report["address"] == address
    names = [check["check"] for check in report["checks"]]
    expected = ["host name", "connection", "protocol", "keys", "scheduler", "hosts", "Python", "Scaler", "packages"]
    assert names[3:12] == expected and names[12:14] == ["clocks", "task"]
    assert re.search("no host has|and this machine within .* of the scheduler's", text_of(report, "clocks"))
    assert "an empty task takes " in text_of(report, "task") and "1 host: " in text_of(report, "hosts")


def test_the_text(address: str) -> None:
    ran = run_once([sys.executable, "-m", "scaler_client", "doctor", "--timeout", "30"], SCALER_ADDRESS=address)
    assert (ran.returncode, ran.stderr) == (0, "") and max(map(len, ran.stdout.splitlines())) <= 80
    assert "scheduler      ok       a scheduler of version " in ran.stdout and " checks: " in ran.stdout


def test_the_modules_of_a_script(address: str, tmp_path: Path) -> None:
    (tmp_path / f"{OWN}.py").touch()
    script = tmp_path / "program.py"
    script.write_text(f"import json, zmq, {OWN}\ntry:\n    import no_such_module\nexcept ImportError: pass\n")
    status, report = examine(address, "--script", str(script))
    found = [check for check in report["checks"] if check["check"] == "script"]
    assert status == 0 and [check["status"] for check in found] == ["warning", "warning"]
    assert found[0]["text"].startswith(f"{OWN}, a module of your own, is not installed on ")
    assert f"Client(modules=['{tmp_path}/{OWN}.py'])" in found[0]["advice"]
    assert found[1]["text"] == "no_such_module is missing here"
    script.write_text("import json, zmq\n")
    status, report = examine(address, "--script", str(script))
    assert status == 0 and text_of(report, "script").endswith("all are here and on 1 host")


def test_busy_workers(address: str, tmp_path: Path) -> None:
    def wait_for(path: str) -> None:
        import os
        import time

        while not os.path.exists(path):
            time.sleep(0.01)

    gate = tmp_path / "gate"
    try:
        with Client(address) as client:
            running = [client.submit(wait_for, str(gate)) for _ in range(2)]
            wait_until(lambda: all(future.running() for future in running), what="both workers to be busy")
            status, report = examine(address, "--timeout", "3")
            gate.touch()
            assert [future.result(30) for future in running] == [None, None]
    finally:
        gate.touch()
    assert status == 1 and "no worker has run a task within 3 s" in problems(report)["task"]


def test_a_monitor_address(tmp_path: Path) -> None:
    with scheduler(tmp_path) as started:
        status, report = examine(started.monitor_address)
        assert status == 1 and "takes no clients" in problems(report)["protocol"]
        status, report = examine(started.address)
        assert status == 1 and problems(report)["hosts"] == "no host agent is connected"
        started.process.send_signal(signal.SIGSTOP)
        try:
            status, report = examine(started.address, "--timeout", "0.5")
        finally:
            started.process.send_signal(signal.SIGCONT)
        assert status == 1 and "no greeting of ZeroMQ within 0.5 s" in problems(report)["protocol"], "it hangs"
    status, report = examine(started.address)
    assert status == 1 and list(problems(report)) == ["connection"], "it has ended"


def test_keys(tmp_path: Path) -> None:
    server, mine, other, strange = (tmp_path / name for name in ("server", "mine", "worker", "strange"))
    key_command("keygen", str(server))
    for folder, role in ((mine, "client"), (other, "worker"), (strange, "client")):
        key_command("keygen", str(folder), "--as", role)
        (folder / "server.key").write_bytes((server / "server.key").read_bytes())
    key_command("authorize", str(server), str(mine / "client.key"), "--as", "client", "--name", "ada")
    with scheduler(tmp_path, "--keys", str(server)) as started:
        address = started.address

        def found(keys: Path | str) -> dict[str, str]:
            checks = list(doctor.examine(doctor.Settings(parse_connect_address(address), str(keys), 30.0)))
            report = report_json(checks, address)
            assert report["status"] == "error" and "encrypted, with keys" in text_of(report, "protocol")
            return problems(report)

        assert list(problems(examine(address, SCALER_KEYS=str(mine))[1])) == ["hosts"], "the key is good"
        assert found("") == {"keys": "the scheduler needs keys, and none were given"}
        assert "has a worker's key; a client needs" in found(other)["keys"]
        assert "does not accept the key" in found(strange)["scheduler"]
        (mine / "client.secret").chmod(0o644)
        assert "is open to others" in found(mine)["keys"]
        (mine / "client.secret").chmod(0o600)
        key_command("revoke", str(server), "ada")
        os.kill(started.process.pid, signal.SIGHUP)
        wait_until(lambda: "does not accept the key" in found(mine).get("scheduler", ""), what="the key to be revoked")
        (strange / "server.key").write_bytes((other / "worker.key").read_bytes())
        assert "another key than" in found(strange)["scheduler"]
    with scheduler(tmp_path) as started:
        status, report = examine(started.address, "--keys", str(mine))
        assert status == 1 and "the scheduler has no keys" in problems(report)["keys"]
