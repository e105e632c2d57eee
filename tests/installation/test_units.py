"""Checks of the units in systemd/ without a booted systemd. tests/system boots them."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.installation.conftest import ROOT

from scaler_client.commands import command_line as clients
from scaler_client.commands.options import Command
from scaler_client.exporter.config import COMMAND as EXPORTER
from scaler_client.monitor.monitor_address import SERVICE_MONITOR
from scaler_client.ui.config import COMMAND as UI
from scaler_scheduler.commands import command_line as schedulers
from scaler_scheduler.config.config import COMMAND as SCHEDULER
from scaler_worker.autoscaler.config import COMMAND as AUTOSCALER
from scaler_worker.config import COMMAND as CLUSTER

UNITS = {path.stem: path for path in sorted((ROOT / "systemd").glob("*.service"))}
MAX_EXPOSURES = {"scaler-scheduler": 2.0, "scaler-ui": 2.0, "scaler-exporter": 2.0, "scaler-cluster": 5.5}
MAX_EXPOSURES["scaler-autoscaler"] = 5.5
"""The cluster is more exposed, because it runs users' code. The autoscaler runs an operator's programs."""


def settings(name: str) -> dict[str, list[str]]:
    """The values of a unit, by directive."""
    found: dict[str, list[str]] = {}
    for directive, value in re.findall(r"^(\w+)=(.*)$", UNITS[name].read_text(), re.MULTILINE):
        found.setdefault(directive, []).append(value)
    return found


def test_every_unit_has_expectations() -> None:
    assert UNITS.keys() == MAX_EXPOSURES.keys()


needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")


@needs_systemd
@pytest.mark.parametrize("name", UNITS)
def test_systemd_accepts_the_unit(tmp_path: Path, name: str) -> None:
    command = shutil.which("true")
    unit = tmp_path / f"{name}.service"
    unit.write_text(re.sub(r"^ExecStart=\S+", f"ExecStart={command}", UNITS[name].read_text(), flags=re.MULTILINE))
    ran = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout + ran.stderr) == (0, "")


@needs_systemd
@pytest.mark.parametrize("name", UNITS)
def test_exposure_of_the_unit(name: str) -> None:
    command = ["systemd-analyze", "security", "--offline=yes", "--no-pager", UNITS[name]]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", ran.stdout)
    assert found, ran.stderr
    assert float(found[1]) <= MAX_EXPOSURES[name], ran.stdout


@pytest.mark.parametrize("name", ["scaler-scheduler", "scaler-ui", "scaler-exporter"])
def test_each_loosened_setting_has_a_reason(name: str) -> None:
    lines = UNITS[name].read_text().splitlines()
    loose = [line for line in lines if re.match(r"RestrictAddressFamilies=|\w+=no$", line)]
    assert loose
    for line in loose:
        above = lines[: lines.index(line)]
        comment = [each for each in above if each][-3:]
        assert any(each.startswith("# Loosened: ") for each in comment), line


@pytest.mark.parametrize("name", ["scaler-scheduler", "scaler-cluster"])
def test_notify_unit(name: str) -> None:
    unit = settings(name)
    assert unit["Type"] == ["notify"] and unit["Restart"] == ["always"] and unit["StartLimitIntervalSec"] == ["0"]
    assert unit["WatchdogSec"] and "kill -HUP $MAINPID" in unit["ExecReload"][0] and unit["KillMode"] == ["mixed"]
    program, *arguments = shlex.split(unit["ExecStart"][0])
    command, module = (SCHEDULER, schedulers) if name == "scaler-scheduler" else (CLUSTER, clients)
    assert program == "/usr/bin/" + name.replace("-", "_")
    assert module.parse_arguments(command, arguments).config == command.default_file  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "command"), [("scaler-ui", UI), ("scaler-exporter", EXPORTER)])
def test_monitor_unit_takes_its_options_from_its_file(name: str, command: Command) -> None:
    unit = settings(name)
    assert unit["Type"] == ["notify"] and unit["Restart"] == ["always"] and unit["WatchdogSec"]
    assert unit["ExecStart"] == ["/usr/bin/" + name.replace("-", "_")], "arguments would override the file"
    assert command.default_file == f"/etc/scaler/{name.removeprefix('scaler-')}.toml"
    assert not [line for line in unit.get("Environment", []) if "SCALER" in line]
    assert settings("scaler-scheduler")["RuntimeDirectory"] == [Path(SERVICE_MONITOR.path).parent.name]
    assert unit["SupplementaryGroups"] == settings("scaler-scheduler")["Group"]


def test_unit_of_the_autoscaler() -> None:
    unit = settings("scaler-autoscaler")
    assert unit["Type"] == ["notify"] and unit["Restart"] == ["always"] and unit["WatchdogSec"]
    assert unit["ExecStart"] == ["/usr/bin/scaler_autoscaler"]
    assert AUTOSCALER.default_file == "/etc/scaler/autoscaler.toml"
    assert unit["KillMode"] == ["process"], "hosts of the provider local stay"
    assert unit["SupplementaryGroups"] == settings("scaler-scheduler")["Group"]


def test_token_can_be_in_a_file_of_root() -> None:
    assert settings("scaler-ui")["EnvironmentFile"] == ["-/etc/scaler/ui.env"]


def test_users_of_units_are_created(tmp_path: Path) -> None:
    users = ROOT / "systemd" / "scaler.sysusers"
    made = set(re.findall(r"^u (\S+)", users.read_text(), re.MULTILINE))
    assert made == {user for name in UNITS for user in settings(name).get("User", [])}
    if shutil.which("systemd-sysusers") is None:
        pytest.skip("systemd-sysusers is not installed")
    (tmp_path / "etc").mkdir()
    command = ["systemd-sysusers", f"--root={tmp_path}", "-"]
    subprocess.run(command, input=users.read_bytes(), check=True, capture_output=True, timeout=60)
    accounts = [line.split(":") for line in (tmp_path / "etc/passwd").read_text().splitlines()]
    assert {account[0] for account in accounts} == made
    assert all(account[6].endswith("nologin") for account in accounts)


def test_settings_reads_a_unit_like_systemd() -> None:
    for path in UNITS.values():
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.read_string(path.read_text())
        assert parser.sections() == ["Unit", "Service", "Install"]
