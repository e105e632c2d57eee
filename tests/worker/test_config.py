"""The options of the command `scaler_cluster`, and its default number of workers."""

from __future__ import annotations

import dataclasses
import importlib.util
import logging
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
from tests.command_settings import clean_settings, complaint_of, toml_writer

from scaler_client.api import local_options
from scaler_client.commands import (
    addresses,
    command_line,
    default_file,
    key_files,
    log_handlers,
    logs,
    machine,
    options,
    systemd_notify,
    toml_file,
)
from scaler_worker import cli, config

ADDRESS = "tcp://127.0.0.1:2345"
REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = [
    options,
    command_line,
    addresses,
    logs,
    log_handlers,
    machine,
    default_file,
    toml_file,
    key_files,
    systemd_notify,
]


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    monkeypatch.setattr(config, "usable_cores", lambda: 17)
    monkeypatch.setattr(config, "usable_shared_memory", lambda: 10 << 30)
    monkeypatch.setattr(sys, "argv", ["/usr/bin/scaler_cluster"])
    with clean_settings(monkeypatch, tmp_path, config, cli):
        yield


@pytest.fixture
def toml(tmp_path):
    return toml_writer(tmp_path, "cluster.toml")


def load(*argv, **environ):
    return config.load(command_line.parse_arguments(config.COMMAND, argv), environ)


def complaint(*argv, **environ):
    return complaint_of(options.OptionError, load, *argv, **environ)


def test_defaults():
    assert load(ADDRESS) == config.Config(
        address=addresses.Address("tcp", "127.0.0.1", 2345, ""),
        num_of_workers=17,
        agent_name="",
        worker_names=(),
        heartbeat_interval_seconds=2.0,
        death_timeout_seconds=300.0,
        garbage_collect_interval_seconds=30.0,
        trim_memory_threshold_bytes=1024**3,
        worker_memory_limit_bytes=0,
        object_memory_bytes=8 << 30,
        spill_directory="/var/tmp",
        spill_limit_bytes=0,
        capabilities={},
        resources={},
        data_address="auto",
        keys="",
        preload="",
        offer={},
        environments="modules",
        environment_cache="",
        environment_cache_limit_bytes=10 << 30,
        environment_build_seconds=900.0,
        retire_seconds=0.0,
        parent_process=0,
        logging_level="INFO",
        logging_paths=("/dev/stderr",),
        logging_config_file="",
    )


def test_every_option():
    loaded = load(
        *"-n 2 --agent-name n --worker-names a,b --heartbeat-interval-seconds 0.5 --death-timeout-seconds 9".split(),
        *"--garbage-collect-interval-seconds 1 --trim-memory-threshold-bytes 0".split(),
        *"--worker-memory-limit 512M --capabilities gpu=2,linux --preload a.b:c --retire-seconds 25".split(),
        *"--data-address tcp://10.0.0.7:* --keys /k --resources gpu=4,memory=64G,license=0.5".split(),
        *"--offer a.b:c --offer total=d:e.sum,f:g".split(),
        *"--environments any --environment-cache /e --environment-cache-limit 40M".split(),
        *"--environment-build-seconds 41".split(),
        *"--object-memory 20M --spill-directory /s --spill-limit 30M".split(),
        *"--logging-level warning --logging-paths /tmp/a --logging-config-file /tmp/c".split(),
        *("--parent-process", "44", "tcp://[::1]:1"),
    )
    assert dataclasses.astuple(loaded) == (
        ("tcp", "::1", 1, ""),
        *(2, "n", ("a", "b"), 0.5, 9.0, 1.0, 0, 512 << 20, 20 << 20, "/s", 30 << 20, {"gpu": 2, "linux": 1}),
        {"gpu": 4000, "memory": 64_000 << 30, "license": 500},
        *(("tcp", "10.0.0.7", 0, ""), "/k", "a.b:c"),
        *({"c": "a.b:c", "total": "d:e.sum", "g": "f:g"}, "any", "/e", 40 << 20, 41.0, 25.0),
        44,
        *("WARNING", ("/tmp/a",), "/tmp/c"),
    )


def test_config_has_a_field_for_each_option_and_is_frozen():
    fields = [field.name for field in dataclasses.fields(config.Config)]
    keys = [option.key for option in config.COMMAND.options]
    sizes = ("worker_memory_limit", "object_memory", "spill_limit", "environment_cache_limit")
    assert fields == [f"{key}_bytes" if key in sizes else key for key in keys]
    with pytest.raises(dataclasses.FrozenInstanceError):
        load(ADDRESS).preload = "a:b"


@pytest.mark.parametrize("option", config.COMMAND.options, ids=lambda option: option.key)
def test_every_default_is_a_legal_value(option):
    for value in option.default if option.kind.is_list else [option.default]:
        if value not in (None, ""):
            assert option.kind.parse(str(value)) == value


def test_precedence(toml):
    file = toml(
        "num_of_workers = 2\ndeath_timeout_seconds = 2\nheartbeat_interval_seconds = 4\naddress = 'tcp://f:2'\n"
    )
    environ = {"SCALER_CLUSTER_NUM_OF_WORKERS": "3", "SCALER_CLUSTER_DEATH_TIMEOUT_SECONDS": "3"}
    loaded = load("--config", file, "-n4", **environ)
    assert (loaded.num_of_workers, loaded.death_timeout_seconds, loaded.heartbeat_interval_seconds) == (4, 3.0, 4.0)
    assert loaded.address.host == "f"
    assert load("--config", file, SCALER_ADDRESS="tcp://e:3").address.host == "e"
    assert load("--config", file, "tcp://a:4", SCALER_ADDRESS="tcp://e:3").address.host == "a"


def test_default_file_makes_a_plain_command_work(toml):
    toml(f"address = '{ADDRESS}'", "default.toml")
    loaded = load("-n", "32")
    assert (str(loaded.address), loaded.num_of_workers) == (ADDRESS, 32)


def test_worker_names(toml):
    assert load(ADDRESS, "--worker-names", "a, b").num_of_workers == 2
    assert load(ADDRESS, "-n", "3", "--worker-names", "a,b", "--worker-names", "c").worker_names == ("a", "b", "c")
    assert load(ADDRESS, "--config", toml('worker_names = ["x", "y"]')).worker_names == ("x", "y")


@pytest.mark.parametrize(
    "argv, wanted",
    [
        (["--num-of-worker", "1"], "unknown option --num-of-worker (did you mean --num-of-workers?)"),
        (["more"], "unexpected argument 'more'"),
        (["-n"], "-n/--num-of-workers: expected one argument"),
        (["-n", "0"], "--num-of-workers: '0' is not a whole number from 1 to 10000"),
        (["-n", "-1"], "--num-of-workers: '-1' is not a whole number from 1 to 10000"),
        (["-n", "many"], "--num-of-workers: 'many' is not a whole number from 1 to 10000"),
        (["--worker-names", "a,b,a"], "--worker-names: 'a' is given more than once"),
        (["-n", "2", "--worker-names", "a"], "--worker-names: 1 name for 2 workers (--num-of-workers)"),
        (["-n", "1", "--worker-names", "a,b"], "--worker-names: 2 names for 1 worker (--num-of-workers)"),
        (["-n", "3", "--worker-names", "a,b"], "--worker-names: 2 names for 3 workers (--num-of-workers)"),
        (["--worker-names", "a\tb"], "--worker-names: 'a\\tb' is not a name of 1 to 128 printable characters"),
        (["--worker-names", ","], "--worker-names: names nothing"),
        (["--trim-memory-threshold-bytes", "1GiB"], "--trim-memory-threshold-bytes: '1GiB' is not a whole"),
        (["--worker-memory-limit", "512"], "--worker-memory-limit: '512' is not a size from 1M to 1024T"),
        (["--worker-memory-limit", "0%"], "--worker-memory-limit: '0%' is not a share above 0%"),
        (["--preload", "module"], "--preload: 'module' is not module:function"),
        (["--offer", "a"], "--offer: 'a' is not module:function, or NAME=module:function with a name of 1 to 200"),
        (["--offer", "=a:b"], "--offer: '=a:b' is not module:function, or NAME=module:function"),
        (["--offer", "a:c,b:c"], "--offer: 'c' is given more than once"),
        (["--offer", ",".join(f"a:f{i}" for i in range(301))], "--offer: 301 functions are more than 300"),
        (["--preload", "a:b()"], "--preload: 'a:b()' is not module:function"),
        (["--config", "/no/such"], "cannot read /no/such: No such file or directory"),
    ],
)
def test_wrong_arguments(argv, wanted):
    assert complaint(ADDRESS, *argv).startswith(wanted)


@pytest.mark.parametrize(
    "given, wanted",
    [
        ("linux", {"linux": 1}),
        ("gpu=1,linux", {"gpu": 1, "linux": 1}),
        (" gpu = 4294967295 , a.b/c:d-e_f ", {"gpu": 4294967295, "a.b/c:d-e_f": 1}),
    ],
)
def test_capabilities(toml, given, wanted):
    assert load(ADDRESS, "--capabilities", given).capabilities == wanted
    assert load(ADDRESS, SCALER_CLUSTER_CAPABILITIES=given).capabilities == wanted
    assert load(ADDRESS, "--config", toml(f"capabilities = '{given}'")).capabilities == wanted
    assert load(ADDRESS, "--config", toml(f"capabilities = {given.split(',')}")).capabilities == wanted


def test_too_many_capabilities():
    names = [f"name{number}" for number in range(65)]
    assert len(load(ADDRESS, "--capabilities", ",".join(names[:64])).capabilities) == 64
    text = "65 capabilities are given, but at most 64 are allowed"
    assert complaint(ADDRESS, "--capabilities", ",".join(names)).endswith(text)


@pytest.mark.parametrize(("value", "shown"), [("true", "true"), ("false", "false"), ("[1]", "[1]")])
def test_amounts_of_a_table_that_are_no_amounts(toml, value, shown):
    said = complaint(ADDRESS, "--config", toml(f"[resources]\ngpu = {value}\n"))
    assert said.endswith(f": resources: '{shown}' is no amount of gpu: give a number, or one with K, M, G, T or P")


def test_resources_as_a_table(toml):
    wanted = {"gpu": 0, "memory": 1500 << 20, "cpus": 8000}
    for table in ("resources = {gpu = 0, memory = '1.5G', cpus = 8}", "[resources]\ngpu=0\nmemory='1536M'\ncpus=8.0"):
        assert load(ADDRESS, "--config", toml(table)).resources == {**wanted, "memory": 1536_000 << 20}
    assert load(ADDRESS, SCALER_CLUSTER_RESOURCES="gpu=0,cpus=8").resources == {"gpu": 0, "cpus": 8000}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("gpu", "'gpu' is not NAME=AMOUNT, for example gpu=4 or memory=64G"),
        ("gpu=0.5", "'gpu=0.5' is not a whole number of GPUs up to 1024"),
        ("gpu=1025", "'gpu=1025' is not a whole number of GPUs up to 1024"),
        ("license=-1", f"the amount of license must be above 0 and at most {1 << 50}, not '-1'"),
        ("license=1e300", f"the amount of license must be above 0 and at most {1 << 50}, not '1e300'"),
        ("license=1" + 25 * "0", f"the amount of license must be above 0 and at most {1 << 50}, not '1{25 * '0'}'"),
        ("license=0.3333", "amounts of license are multiples of 0.001, and '0.3333' is not"),
        ("license=", "'' is no amount of license: give a number, or one with K, M, G, T or P"),
        ("license=\u0664", "'\u0664' is no amount of license: give a number, or one with K, M, G, T or P"),
        ("license=0", f"the amount of license must be above 0 and at most {1 << 50}, not '0'"),
        ("license=nan", "'nan' is no amount of license: give a number, or one with K, M, G, T or P"),
        ("memory=64X", "'64X' is no amount of memory: give a number, or one with K, M, G, T or P"),
        ("memory=2000P", f"the amount of memory must be above 0 and at most {1 << 50}, not '2000P'"),
        ("m m=1", "'m m' is no name of a resource: 1 to 64 letters, digits, '_', '-' and '.'"),
        ("a=1,a=2", "'a' is there more than once"),
        (",".join(f"r{number}=1" for number in range(64)), "64 resources are more than 63"),
    ],
)
def test_wrong_resources(given, wanted):
    assert complaint(ADDRESS, "--resources", given) == f"--resources: {wanted}"


def test_capabilities_given_several_times_and_as_a_table(toml):
    assert load(ADDRESS, "--capabilities", "gpu=2", "--capabilities", "linux").capabilities == {"gpu": 2, "linux": 1}
    for table in ("capabilities = {gpu = 2, linux = true}", "[capabilities]\ngpu = 2\nlinux = 1"):
        assert load(ADDRESS, "--config", toml(table)).capabilities == {"gpu": 2, "linux": 1}


@pytest.mark.parametrize(
    "given", ["gpu=0", "gpu=-1", "gpu=", "=1", "gpu=1=2", "gpu=one", "gpu=1.5", "gpu=4294967296", "a b", "a\x07"]
)
def test_wrong_capabilities(given):
    wanted = f"--capabilities: {given!r} is not NAME or NAME=AMOUNT, the amount from 1 to 4294967295"
    assert complaint(ADDRESS, "--capabilities", given) == wanted


@pytest.mark.parametrize(
    "content, wanted",
    [
        ("capabilities = 'a,b,a=2'", ":1: capabilities: 'a' is there more than once"),
        ("capabilities = {}", ":1: capabilities: names nothing"),
        ("capabilities = 1", ":1: capabilities: 1 is not a string in quotes or an array of such or a table"),
        ("capabilities = [1]", ":1: capabilities: [1] is not a string in quotes or an array of such or a table"),
        ("[capabilities]\nok = 1\ngpu = 0", ":3: capabilities: 'gpu=0' is not NAME or NAME=AMOUNT"),
        ("[capabilities]\ngpu = false", ":2: capabilities: 'gpu=false' is not NAME or NAME=AMOUNT"),
        ("[capabilities]\n'a,b' = 1", ":2: capabilities: 'a,b=1' is not NAME or NAME=AMOUNT"),
        ("[capabilities.gpu]\na = 1", ":1: capabilities: \"gpu={'a': 1}\" is not NAME or NAME=AMOUNT"),
        ("preload = {a = 1}", ":1: preload: {'a': 1} is not a string in quotes"),
    ],
)
def test_wrong_capabilities_in_a_file(toml, content, wanted):
    path = toml(content)
    assert complaint(ADDRESS, "--config", path).startswith(f"{path}{wanted}")


@pytest.mark.parametrize("given", ["0", "-1", "nan", "inf", "soon"])
@pytest.mark.parametrize("name", ["heartbeat-interval", "death-timeout", "garbage-collect-interval"])
def test_wrong_seconds(name, given):
    assert complaint(ADDRESS, f"--{name}-seconds", given).startswith(f"--{name}-seconds: {given!r} is not a number of")


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:0", "tcp://127.0.0.1:*", "tcp://*:2345"])
def test_addresses_that_can_only_be_bound(address):
    assert complaint(address).startswith(f"address: bad address '{address}': ")
    assert complaint(SCALER_ADDRESS=address).startswith(f"SCALER_ADDRESS: bad address '{address}': ")


def test_no_address_anywhere():
    assert complaint().startswith("no address: give it as an argument, in SCALER_ADDRESS, or as `address` in ")


def test_wrong_files(toml):
    path = toml("# names\nnum_of_workers = 3\nworker_names = ['a', 'b']\n")
    wanted = f"{path}:3: worker_names: 2 names for 3 workers ({path}:2: num_of_workers)"
    assert complaint(ADDRESS, "--config", path) == wanted
    assert complaint(ADDRESS, "--config", toml("colour = 3")).endswith(":1: colour: unknown key")
    assert ":1: preload: 'x' is not module:function" in complaint(ADDRESS, "--config", toml("preload = 'x'"))


def test_options_that_take_an_empty_text(toml):
    path = toml("spill_directory = ''\ndata_address = ''\npreload = ''\nretire_seconds = ''\n")
    for loaded in (
        load(ADDRESS, "--spill-directory", "", "--data-address="),
        load(ADDRESS, "--config", path, SCALER_CLUSTER_SPILL_DIRECTORY="", SCALER_CLUSTER_DATA_ADDRESS=""),
    ):
        assert (loaded.spill_directory, loaded.data_address) == ("", "")
        assert loaded.retire_seconds == load(ADDRESS).retire_seconds
    assert load(ADDRESS, SCALER_CLUSTER_SPILL_DIRECTORY="").spill_directory == "/var/tmp"
    assert {option.key for option in config.COMMAND.options if option.takes_empty} == local_options.TAKE_EMPTY


def test_check_config(toml, capsys):
    good = toml("num_of_workers = 2")
    assert cli.main(["--check-config", good]) == 0
    assert capsys.readouterr() == (f"{good}: OK\n", "")
    bad = toml("worker_names = ['a', 'a']\ndeath_timeout_seconds = 0\nnum_of_workers = 3\n", "bad.toml")
    assert cli.main(["--check-config", bad]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.splitlines() == [
        f"{bad}:2: death_timeout_seconds: '0' is not a number of seconds above 0 and at most 1000000000",
        f"{bad}:1: worker_names: 'a' is given more than once",
        f"{bad}:1: worker_names: 2 names for 3 workers ({bad}:3: num_of_workers)",
    ]


def test_an_option_below_a_table(toml):
    path = toml("[capabilities]\ngpu = 2\nnum_of_workers = 3\n")
    wanted = f"{path}:3: num_of_workers: it is below [capabilities] and so part of that table; move it above"
    assert complaint(ADDRESS, "--config", path) == wanted
    assert load(ADDRESS, "--config", toml("capabilities = {preload = 3}")).capabilities == {"preload": 3}


@pytest.mark.parametrize("pattern", ["#(?! |$)", "(?!)"], ids=["all lines", "as it is"])
def test_the_default_file_has_every_option_and_changes_nothing(toml, capsys, pattern):
    assert cli.main(["--print-config"]) == 0
    text = capsys.readouterr().out
    assert re.findall("^#?([a-z_]+) = .*$", text, re.MULTILINE) == [option.key for option in config.COMMAND.options]
    path = toml(re.sub("^" + pattern, "", text, flags=re.MULTILINE))
    assert cli.main(["--check-config", path]) == 0
    assert load("--config", path) == load(ADDRESS)


@pytest.mark.parametrize(
    "called, program",
    [
        ("/usr/bin/scaler_worker", "scaler_worker"),
        ("scaler_cluster.exe", "scaler_cluster"),
        ("/x/__main__.py", "scaler_cluster"),
    ],
)
def test_program_name(monkeypatch, capsys, called, program):
    monkeypatch.setattr(sys, "argv", [called, "--bogus"])
    assert cli.main() == 2
    assert capsys.readouterr() == ("", f"{program}: unknown option --bogus\n")
    assert cli.main(["--version"]) == 0
    assert re.fullmatch(
        rf"{program} 0\.1\.0, \w+ \d+\.\d+\.\d+.*, ZeroMQ [\d.]+, protocol version \d+\n", capsys.readouterr().out
    )


def test_help_has_every_option_with_default_and_unit(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "1000")
    assert cli.main(["-h"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert re.search("-n(,| N,) --num-of-workers N", text)
    for option in config.COMMAND.options:
        assert (option.kind.metavar if option.positional else option.label) in text
        assert f"{option.help} [default: {option.describe_default()}]" in text
    for default in ("2 seconds", "300 seconds", "30 seconds", "1073741824 bytes (1 GiB)", "<agent name>-<number>"):
        assert f"[default: {default}]" in text
    for name in ("usable core", "SCALER_ADDRESS", "SCALER_CLUSTER_NUM_OF_WORKERS"):
        assert name in text


def test_main_sets_up_the_log_and_hands_the_configuration_on(monkeypatch, tmp_path):
    def run(configuration):
        logging.getLogger("scaler_worker.agent.process").info("%d workers", configuration.num_of_workers)
        return 7

    cluster = types.ModuleType("cluster")
    cluster.run = run
    monkeypatch.setitem(sys.modules, "scaler_worker.agent.process", cluster)
    monkeypatch.setenv("SCALER_CLUSTER_NUM_WORKERS", "3")
    assert cli.main([ADDRESS, "-n", "4", "--logging-paths", str(tmp_path / "log")]) == 7
    warning, line = (tmp_path / "log").read_text().splitlines()
    assert warning.endswith("NUM_WORKERS is unknown and ignored (did you mean SCALER_CLUSTER_NUM_OF_WORKERS?)")
    assert re.fullmatch(r"\[INFO\]\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d{4}: 4 workers", line)


def test_wrong_input_to_the_command_is_one_line():
    found = [str(REPOSITORY / "worker_lib"), str(REPOSITORY / "client_lib")]
    environ = dict(os.environ, PYTHONPATH=os.pathsep.join(found))
    argv = [sys.executable, "-m", "scaler_worker", "tcp://nowhere"]
    ran = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("scaler_cluster: address: bad address 'tcp://nowhere'") and ran.stderr.count("\n") == 1


@pytest.mark.parametrize("module", SHARED)
def test_the_schedulers_copy_is_the_same(module):
    copy = REPOSITORY / "scheduler_daemon" / "scaler_scheduler" / "commands" / Path(module.__file__).name
    assert Path(module.__file__).resolve() == copy


def write(root, path, content):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(
    "files, cores",
    [
        ({}, 8),
        ({"proc/self/cgroup": "nonsense\n::\n"}, 8),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 8),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "250000 100000\n"}, 3),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "1000 100000\n"}, 1),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "0 100000\n"}, 1),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "3200000 100000\n"}, 8),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "junk\n"}, 8),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "1 0\n"}, 8),
        (  # the limit of an outer cgroup
            {
                "proc/self/cgroup": "0::/user/job\n",
                "sys/fs/cgroup/user/job/cpu.max": "600000 100000\n",
                "sys/fs/cgroup/user/cpu.max": "400000 100000\n",
            },
            4,
        ),
        (  # the path is one of the host
            {"proc/self/cgroup": "0::/../docker/1\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"},
            2,
        ),
        (  # version 1
            {
                "proc/self/cgroup": "5:memory:/x\n4:cpu,cpuacct:/docker/1\n0::/\n",
                "sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us": "150000\n",
                "sys/fs/cgroup/cpu/docker/1/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            2,
        ),
        (  # version 1, no limit
            {
                "proc/self/cgroup": "4:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            8,
        ),
        (  # version 1, mounted under both controllers' names, seen from inside a container
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/not/here\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "300000\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            3,
        ),
    ],
)
def test_usable_cores(tmp_path, files, cores):
    for path, content in files.items():
        write(tmp_path, path, content)
    assert machine.usable_cores(tmp_path) == cores


def test_usable_cores_without_affinity(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    assert machine.usable_cores(tmp_path) == 5
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert machine.usable_cores(tmp_path) == 1


def test_usable_cores_of_this_machine():
    assert 1 <= machine.usable_cores() <= (os.cpu_count() or 1)


def test_the_client_needs_no_command_line_for_an_address():
    assert importlib.util.find_spec("scaler_client.commands.addresses") is not None
    code = "import sys, scaler_client.commands.addresses; print('argparse' in sys.modules)"
    environ = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(os.path.dirname(options.__file__))))
    ran = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("False\n", "")
