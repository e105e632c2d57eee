"""Pools on the command line and in files: each wrong setting is one line that names it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scaler_client.autoscale import Pool
from scaler_client.commands.addresses import usual_socket_directory
from scaler_client.commands.command_line import parse_arguments
from scaler_client.commands.module_command import module_command
from scaler_client.commands.options import OptionError
from scaler_client.commands.toml_file import check_file
from scaler_worker.autoscaler.config import COMMAND, Config, load
from scaler_worker.autoscaler.pool_settings import PoolSettings, parse_pool

ADDRESS = "tcp://127.0.0.1:2345"


def loaded(*arguments: str, **environ: str) -> Config:
    return load(parse_arguments(COMMAND, [ADDRESS, *arguments]), environ)


def test_pool_as_a_text() -> None:
    settings = parse_pool(
        "name=big-1 provider=ssh hosts=a+b+user@c workers=8 capabilities=gpu:2+linux cost=2.5 least=1 boot_seconds=40 "
        "resources=gpu:4+memory:1G+license:0.5 time_limit_seconds=3600 retire_seconds=60 "
        "program='python -m scaler_worker' arguments=--spill-limit=1G "
        "options=-F+/etc/ssh keys=/keys"
    )
    assert settings == PoolSettings(
        Pool(
            "big-1", workers=8, capabilities={"gpu": 2, "linux": 1},
            resources={"gpu": 4, "memory": 1 << 30, "license": 0.5}, cost=2.5, least=1, most=3, boot_seconds=40.0,
            time_limit_seconds=3600.0, retire_seconds=60.0,
        ),
        "ssh",
        program=("python", "-m", "scaler_worker"),
        arguments=("--spill-limit=1G",),
        keys="/keys",
        hosts=("a", "b", "user@c"),
        options=("-F", "/etc/ssh"),
    )  # fmt: skip


def test_pools_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "autoscaler.toml"
    file.write_text(
        """
        target_seconds = 120
        [[pool]]
        name = "here"
        provider = "local"
        most = 2
        capabilities = {gpu = 1, linux = true}
        resources = {gpu = 2, memory = "2G"}
        [[pool]]
        name = "cloud"
        provider = "command"
        most = 50
        start = "start --many 'a b'"
        stop = "stop"
        list = "list"
        """
    )
    config = loaded("--config", str(file))
    assert config.target_seconds == 120.0
    here, cloud = config.pool
    assert here.program == tuple(module_command(sys.executable, "scaler_worker")) and here.pool.boot_seconds == 10.0
    assert here.pool.capabilities == {"gpu": 1, "linux": 1}
    assert here.pool.resources == {"gpu": 2, "memory": 2 << 30}
    assert cloud.start == "start --many 'a b'" and cloud.pool.boot_seconds == 180.0


def test_several_pools_and_the_environment() -> None:
    config = loaded("--pool", "name=a provider=local most=1,name=b provider=local most=2", "--pool",
                    "name=c provider=local most=3")  # fmt: skip
    assert [each.pool.name for each in config.pool] == ["a", "b", "c"]
    config = loaded(SCALER_AUTOSCALER_POOL="name=a provider=local most=1", SCALER_AUTOSCALER_DRY_RUN="true")
    assert config.pool[0].pool.name == "a" and config.dry_run
    assert str(config.monitor_address) == f"ipc://{usual_socket_directory()}/127.0.0.1_2345_monitor"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("provider=local most=1", "a pool has no name"),
        ("name=a provider=local", "pool 'a': most is missing"),
        ("name=A provider=local most=1", "pool 'A': name 'A' is not 1 to 32 lower-case letters"),
        ("name=a most=1", "pool 'a': provider None is not one of local, ssh, slurm, kubernetes, command"),
        ("name=a provider=local most=1 woorkers=2", "pool 'a': unknown setting woorkers (did you mean workers?)"),
        ("name=a provider=local most=many", "pool 'a': most 'many' is not a whole number from 0 to 100000"),
        ("name=a provider=local most=1.5", "pool 'a': most '1.5' is not a whole number"),
        ("name=a provider=local most=1 least=2", "pool 'a': least is 2 and most is 1"),
        ("name=a provider=local most=1 cost=nan", "pool 'a': cost 'nan' is not a number from 0"),
        (
            "name=a provider=local most=1 capabilities=gpu:0",
            "pool 'a': capabilities 'gpu=0' is not NAME or NAME=AMOUNT",
        ),
        (
            "name=a provider=local most=1 resources=gpu:0.5",
            "pool 'a': resources 'gpu=0.5' is not a whole number of GPUs",
        ),
        (
            "name=a provider=local most=1 resources=gpu",
            "pool 'a': resources 'gpu' is not NAME=AMOUNT, for example gpu=4",
        ),
        ("name=a provider=local most=1 arguments=--resources=gpu=1", "gives itself: set resources"),
        ("name=a provider=local most=1 hosts=b", "pool 'a': hosts is for the provider ssh"),
        ("name=a provider=ssh", "pool 'a': hosts is missing"),
        ("name=a provider=ssh hosts=-oProxyCommand=x", "pool 'a': hosts '-oProxyCommand=x' is not the name of a host"),
        ("name=a provider=ssh hosts=b+b", "pool 'a': hosts 'b' is there more than once"),
        ("name=a provider=command most=1 start=a stop=b", "pool 'a': list is missing"),
        ("name=a provider=kubernetes most=1", "pool 'a': either image or template must be given"),
        ("name=a provider=local most=1 arguments=--agent-name=x", "arguments has --agent-name, which the autoscaler"),
        ("name=a name=b", "name is given more than once"),
        ("name", "'name' is not NAME=VALUE"),
        ("name='a", "no closing quotation"),
    ],
)
def test_wrong_pools(text: str, complaint: str) -> None:
    with pytest.raises(OptionError) as caught:
        loaded("--pool", text)
    assert str(caught.value).startswith("--pool: ") and complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_pools_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "autoscaler.toml"
    file.write_text("idle_seconds = 5\n[[pool]]\nname = 'a'\nprovider = 'local'\nmost = true\n")
    with pytest.raises(OptionError, match=r"autoscaler.toml:5: pool: pool 'a': most True is not a whole number"):
        loaded("--config", str(file))
    file.write_text("[[pool]]\nname = 'a'\nprovider = 'local'\nmost = 1\nidle_seconds = 5\n")
    with pytest.raises(OptionError, match="unknown setting idle_seconds"):
        loaded("--config", str(file))
    file.write_text("pool = 7\n")
    with pytest.raises(OptionError, match=r"pool: 7 is not a string in quotes or an array of such or a table"):
        loaded("--config", str(file))


def test_two_pools_of_one_name() -> None:
    with pytest.raises(OptionError, match="'a' is the name of more than one pool"):
        loaded("--pool", "name=a provider=local most=1", "--pool", "name=a provider=local most=2")


def test_the_second_pool_of_a_file_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "autoscaler.toml"
    file.write_text(
        '[[pool]]\nname = "a"\nprovider = "local"\nmost = 1\n\n[[pool]]\nname = "b"\nprovider = "local"\nmost = -1\n'
    )
    assert check_file(COMMAND, str(file)) == [
        f"{file}:9: pool: pool 'b': most -1 is not a whole number from 0 to 100000"
    ]


def test_all_errors_of_all_pools_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "autoscaler.toml"
    file.write_text(
        "idle_seconds = -1\n"
        "[[pool]]\nname = 'a'\nprovider = 'local'\nwoorkers = 2\nmost = 'many'\n"
        "[[pool]]\nname = 'b'\nprovider = 'command'\nmost = 1\nstart = 5\n"
        "[[pool]]\nname = 'c'\nprovider = 'local'\nmost = 1\n"
        "[[pool]]\nname = 'c'\nprovider = 'local'\nmost = 1\n"
        "[[pool]]\nprovider = 'local'\n"
        "[[pool]]\nname = 'd'\nprovider = 'local'\nmost = 1\nleast = 2\n"
    )
    found = [line.removeprefix(f"{file}:") for line in check_file(COMMAND, str(file))]
    assert [(line.partition(":")[0], line.split("pool: ")[-1].split("pool '")[-1]) for line in found[1:]] == [
        ("5", "a': unknown setting woorkers (did you mean workers?)"),
        ("6", "a': most 'many' is not a whole number from 0 to 100000"),
        ("7", "b': stop is missing: the provider command needs start, stop and list"),
        ("7", "b': list is missing: the provider command needs start, stop and list"),
        ("11", "b': start 5 is not a text"),
        ("16", "'c' is the name of more than one pool"),
        ("20", "a pool has no name: give it one of lower-case letters, digits and dashes"),
        ("26", "d': least is 2 and most is 1: it must be 0 <= least <= most"),
    ]
    assert found[0].startswith("1: idle_seconds: ")


def test_no_pool() -> None:
    with pytest.raises(OptionError, match="no pool: give --pool, or a table"):
        loaded()
