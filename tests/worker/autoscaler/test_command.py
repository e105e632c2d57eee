"""The provider `command`: what the operator's commands get."""

from __future__ import annotations

import os
from pathlib import Path

from scaler_client.autoscale import Pool
from scaler_client.commands.command_line import PROVIDER_VARIABLES, ignored_variables
from scaler_worker.autoscaler.command import CommandProvider
from scaler_worker.autoscaler.pool_settings import PoolSettings
from scaler_worker.autoscaler.providers import HostCommand
from scaler_worker.config import COMMAND


def test_an_agent_knows_all_variables_of_the_commands(tmp_path: Path) -> None:
    pool = Pool("cloud", workers=2, capabilities={"gpu": 1}, resources={"gpu": 2})
    settings = PoolSettings(pool, "command", start=f"env -0 >{tmp_path}/environment")
    CommandProvider(HostCommand(settings, "tcp://x:1", ""), 20.0).start(["cloud-0-abc123"])
    given = (tmp_path / "environment").read_text().rstrip("\0").split("\0")
    environ = {name: value for name, _, value in (line.partition("=") for line in given)}
    new = {name for name in environ if name.startswith("SCALER_") and name not in os.environ}
    assert new - {"SCALER_ADDRESS"} == set(PROVIDER_VARIABLES)
    assert ignored_variables(COMMAND, {name: environ[name] for name in new}) == []
