"""Options and logging of the scheduler's command. Runs under PyPy and CPython."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
from tests.command_settings import clean_settings, complaint_of, toml_writer

from scaler_scheduler import cli
from scaler_scheduler.auth import keyring
from scaler_scheduler.commands import addresses, command_line, key_files, logs, machine, options
from scaler_scheduler.commands.options import OptionError
from scaler_scheduler.config import config
from scaler_scheduler.config.pending_config import PendingConfig
from scaler_scheduler.core.limits import LimitSettings

ADDRESS = "tcp://127.0.0.1:2345"
IS_PYPY = sys.implementation.name == "pypy"
LINE = re.compile(r"\[INFO\]\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d{4}: scheduler listens\n")


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    with clean_settings(monkeypatch, tmp_path, config, cli):
        yield


@pytest.fixture
def toml(tmp_path):
    return toml_writer(tmp_path, "scheduler.toml")


def load(*argv, **environ):
    return config.load(command_line.parse_arguments(config.COMMAND, argv), environ)


def complaint(*argv, **environ):
    return complaint_of(options.OptionError, load, *argv, **environ)


def test_defaults():
    assert load(ADDRESS) == config.Config(
        address=addresses.Address("tcp", "127.0.0.1", 2345, ""),
        io_threads=1,
        event_loop="zmq",
        client_timeout_seconds=60.0,
        worker_timeout_seconds=60.0,
        per_worker_queue_size=1000,
        task_retries=3,
        memory_limit_bytes=machine.usable_memory() // 2,
        protected=True,
        limits={},
        priority_across=False,
        keys="",
        insecure=False,
        monitor_address=None,
        parent_process=0,
        logging_level="INFO",
        logging_paths=("/dev/stderr",),
        logging_config_file="",
        message_size_limit=machine.usable_memory(),
        batch_limit=1 << 20,
        client_task_limit=1_000_000_000,
        client_object_limit=1_000_000,
        client_object_size_limit=machine.usable_memory(),
        client_function_limit=100_000,
        environment_limit=1 << 30,
        peer_limit=100_000,
        hello_rate_limit=10_000,
        connection_limit=100_000,
        address_connection_limit=100_000,
        connection_rate_limit=1000,
        waste_limit=2,
    )


def test_every_option():
    loaded = load(
        *"--io-threads 2 --event-loop builtin --client-timeout-seconds 1.5 --worker-timeout-seconds 7".split(),
        *"--per-worker-queue-size 9 --task-retries 0 --memory-limit 1.5G --no-protected --keys /k".split(),
        *"--limits db=10,api=30/min --priority-across --insecure".split(),
        *"--monitor-address ipc:///tmp/m --logging-level debug".split(),
        *"--logging-paths /tmp/a,/tmp/b --logging-paths /dev/stdout --logging-config-file /tmp/c".split(),
        *"--message-size-limit 1G --batch-limit 4096 --client-task-limit 12 --client-object-limit 13".split(),
        *"--client-object-size-limit 2G --client-function-limit 14 --peer-limit 15 --hello-rate-limit 16".split(),
        *"--environment-limit 30M".split(),
        *"--connection-limit 17 --address-connection-limit 18 --connection-rate-limit 19 --waste-limit 20".split(),
        *("--parent-process", "44", "ipc:///tmp/s"),
    )
    assert dataclasses.astuple(loaded) == (
        *(1 << 30, 4096, 12, 13, 2 << 30, 14, 30 << 20, 15, 16, 17, 18, 19, 20),
        ("ipc", "", 0, "/tmp/s"),
        *(2, "builtin", 1.5, 7.0, 9, 0, 3 << 29, False, {"db": (10, 0.0), "api": (0, 0.5)}, True, "/k", True),
        ("ipc", "", 0, "/tmp/m"),
        44,
        *("DEBUG", ("/tmp/a", "/tmp/b", "/dev/stdout"), "/tmp/c"),
    )


def test_config_has_a_field_for_each_option_and_is_frozen():
    fields = [field.name for field in dataclasses.fields(config.Config)]
    keys = [option.key for option in config.COMMAND.options]
    assert sorted(fields) == sorted(key.replace("memory_limit", "memory_limit_bytes") for key in keys)
    with pytest.raises(dataclasses.FrozenInstanceError):
        load(ADDRESS).io_threads = 2


@pytest.mark.parametrize("option", config.COMMAND.options, ids=lambda option: option.key)
def test_every_default_is_a_legal_value(option):
    for value in option.default if option.kind.is_list else [option.default]:
        if value not in (None, ""):
            assert option.kind.parse(str(value)) == value


def test_precedence(toml):
    file = toml("io_threads = 2\ntask_retries = 2\nper_worker_queue_size = 2\naddress = 'tcp://file:2'\n")
    environ = {"SCALER_SCHEDULER_IO_THREADS": "3", "SCALER_SCHEDULER_TASK_RETRIES": "3", "SCALER_ADDRESS": "tcp://e:3"}
    loaded = load("--config", file, "--io-threads", "4", **environ)
    assert (loaded.io_threads, loaded.task_retries, loaded.per_worker_queue_size) == (4, 3, 2)
    assert loaded.address.host == "e"
    assert load("--config", file, "tcp://a:4", **environ).address.host == "a"
    assert load("--config", file).address.host == "file"


def test_boolean_option(toml):
    assert load(ADDRESS, "--protected").protected
    assert not load(ADDRESS, SCALER_SCHEDULER_PROTECTED="no").protected
    assert not load(ADDRESS, "--config", toml("protected = false")).protected
    assert load(ADDRESS, "--protected", "--config", toml("protected = false")).protected
    assert complaint(ADDRESS, "--config", toml("protected = 1")).endswith("protected: 1 is not true or false")


def test_default_file_is_read_if_it_exists(toml):
    assert load(ADDRESS).io_threads == 1
    toml("io_threads = 5", "default.toml")
    assert load(ADDRESS).io_threads == 5
    assert load(ADDRESS, "--config", toml("task_retries = 1")).io_threads == 1


def test_file_named_by_the_environment(toml):
    assert load(ADDRESS, SCALER_SCHEDULER_CONFIG=toml("io_threads = 6")).io_threads == 6


def test_empty_variable_is_not_set():
    assert load(ADDRESS, SCALER_SCHEDULER_IO_THREADS="", SCALER_SCHEDULER_CONFIG="").io_threads == 1
    assert complaint(SCALER_ADDRESS="").startswith("no address")


def test_warnings_about_unknown_variables():
    environ = {
        "SCALER_ADRESS": ADDRESS,
        "SCALER_SCHEDULER_IO_THREAD": "2",
        "SCALER_IO_THREADS": "2",
        "SCALER_COLOUR": "blue",
    }
    told = command_line.ignored_variables(config.COMMAND, environ)
    assert told == [
        "the environment variable SCALER_ADRESS is unknown and ignored (did you mean SCALER_ADDRESS?)",
        "the environment variable SCALER_COLOUR is unknown and ignored",
        "the environment variable SCALER_IO_THREADS is unknown and ignored (did you mean SCALER_SCHEDULER_IO_THREADS?)",
        "the environment variable SCALER_SCHEDULER_IO_THREAD is unknown and ignored "
        "(did you mean SCALER_SCHEDULER_IO_THREADS?)",
    ]


def test_no_warnings_about_known_empty_or_foreign_variables():
    names = [config.COMMAND.variable(option) for option in config.COMMAND.options]
    names += ["SCALER_SCHEDULER_CONFIG", "SCALER_SCHEDULER_PYTHON", "SCALER_CLUSTER_NUM_OF_WORKERS"]
    names += ["SCALER_CI_RUN", "SCALER_TEST_EXAMPLE", "SCALERS", "PATH"]
    environ = {**dict.fromkeys(names, "1"), "SCALER_SCHEDULER_EMPTY": ""}
    assert command_line.ignored_variables(config.COMMAND, environ) == []


def test_no_warnings_about_the_variables_of_an_autoscaler():
    environ = {**dict.fromkeys(command_line.PROVIDER_VARIABLES, "1"), "SCALER_RESOURCES": ""}
    assert command_line.ignored_variables(config.COMMAND, environ) == []
    (told,) = command_line.ignored_variables(config.COMMAND, {"SCALER_WORKERS": "4"})
    assert "SCALER_WORKERS is unknown and ignored" in told, "a user has set it"


def test_lists_in_a_file(toml):
    assert load(ADDRESS, "--config", toml('logging_paths = ["/tmp/a", "/tmp/b"]')).logging_paths == ("/tmp/a", "/tmp/b")
    assert load(ADDRESS, "--config", toml('logging_paths = "/tmp/a, /tmp/b"')).logging_paths == ("/tmp/a", "/tmp/b")


def test_missing_address():
    text = complaint()
    assert "no address" in text and "SCALER_ADDRESS" in text and "default.toml" in text


@pytest.mark.parametrize(
    "argv, wanted",
    [
        (["--io-thread", "1"], "unknown option --io-thread (did you mean --io-threads?)"),
        (["--bogus=5"], "unknown option --bogus"),
        (["-x"], "unknown option -x"),
        (["more"], "unexpected argument 'more'"),
        (["--io-threads"], "--io-threads: expected one argument"),
        (["--io-threads", "x"], "--io-threads: 'x' is not a whole number from 1 to 256"),
        (["--io-threads", "0"], "--io-threads: '0' is not a whole number from 1 to 256"),
        (["--io-threads", "1.5"], "--io-threads: '1.5' is not a whole number from 1 to 256"),
        (["--batch-limit", "4095"], "--batch-limit: '4095' is not a whole number from 4096 to 268435456"),
        (["--task-retries", "-1"], "--task-retries: '-1' is not a whole number from 0 to 1000000"),
        (["--per-worker-queue-size", "0"], "--per-worker-queue-size: '0' is not a whole number from 1 to 1000000"),
        (["--event-loop", "twisted"], "--event-loop: 'twisted' is not one of zmq, builtin, uvloop"),
        (["--logging-level", "loud"], "--logging-level: 'loud' is not one of DEBUG, INFO, WARNING, ERROR, CRITICAL"),
        (["--logging-paths", ","], "--logging-paths: names nothing"),
        (["--config", "/no/such/file"], "cannot read /no/such/file: No such file or directory"),
        (["--config", "/"], "cannot read /: Is a directory"),
        (
            ["--monitor-address", ADDRESS],
            f"--monitor-address: {ADDRESS} is taken by the scheduler's own address {ADDRESS}: give another port or "
            "path",
        ),
        (["--monitor-address", "x"], "--monitor-address: bad address 'x': it must be tcp://HOST:PORT or ipc://PATH"),
    ],
)
def test_wrong_arguments(argv, wanted):
    assert complaint(ADDRESS, *argv) == wanted


@pytest.mark.parametrize(
    "address, monitor, is_wrong",
    [
        ("tcp://127.0.0.1:2390", "tcp://*:2390", True),
        ("tcp://0.0.0.0:2390", "tcp://127.0.0.1:2390", True),
        ("ipc:///tmp/a", "ipc:///tmp/a", True),
        ("ipc:///tmp/a", "ipc:///tmp/b", False),
        ("tcp://127.0.0.1:2390", "tcp://127.0.0.1:2391", False),
        ("tcp://127.0.0.1:2390", "tcp://127.0.0.2:2390", False),
        ("tcp://127.0.0.1:*", "tcp://127.0.0.1:*", False),
        ("tcp://127.0.0.1:2390", "ipc:///tmp/a", False),
    ],
)
def test_monitor_address_must_differ_from_the_address(toml, capsys, address, monitor, is_wrong):
    path = toml(f"address = '{address}'\nmonitor_address = '{monitor}'\ninsecure = true\n")
    assert cli.main(["--check-config", path]) == (2 if is_wrong else 0)
    assert (f"{path}:2: monitor_address: {monitor} is taken" in capsys.readouterr().err) == is_wrong


@pytest.mark.parametrize("given", ["0", "-1", "nan", "inf", "1e10", "soon", ""])
@pytest.mark.parametrize("name", ["--client-timeout-seconds", "--worker-timeout-seconds"])
def test_wrong_seconds(name, given):
    wanted = f"{name}: {given!r} is not a number of seconds above 0 and at most 1000000000"
    assert complaint(ADDRESS, name, given) == wanted


def test_wrong_values_in_the_environment():
    assert complaint(ADDRESS, SCALER_SCHEDULER_IO_THREADS="x").startswith("SCALER_SCHEDULER_IO_THREADS: 'x' is not")
    assert complaint(SCALER_ADDRESS="x") == "SCALER_ADDRESS: bad address 'x': it must be tcp://HOST:PORT or ipc://PATH"
    assert complaint(ADDRESS, SCALER_SCHEDULER_CONFIG="/no/such").startswith("cannot read /no/such")


def test_long_wrong_value_is_shortened():
    assert len(complaint(ADDRESS, "--io-threads", "9" * 10000)) < 200


@pytest.mark.parametrize(
    "given, size",
    [
        ("1048576", 1 << 20),
        ("512M", 512 << 20),
        ("512MB", 512 << 20),
        ("2gib", 2 << 30),
        ("1.5 G", 3 << 29),
        ("0.25T", 1 << 38),
        ("2048k", 2 << 20),
        ("1024T", 1 << 50),
        ("50%", 500 << 20),
        ("0.5%", 5 << 20),
        ("100 %", 1000 << 20),
    ],
)
def test_memory_sizes(given, size):
    assert options.memory_size(lambda: 1000 << 20).parse(given) == size


@pytest.mark.parametrize(
    "given, wanted",
    [
        ("512Q", "'512Q' is not a size as in 1.5G (K, M, G or T; bytes without) or 50%"),
        ("", "'' is not a size as in"),
        ("-1G", "'-1G' is not a size as in"),
        ("1,5G", "'1,5G' is not a size as in"),
        ("5M%", "'5M%' is not a size as in"),
        ("٣G", "'٣G' is not a size as in"),
        ("inf", "'inf' is not a size as in"),
        ("512", "'512' is not a size from 1M to 1024T"),
        ("0G", "'0G' is not a size from 1M to 1024T"),
        ("1025T", "'1025T' is not a size from 1M to 1024T"),
        ("9" * 1000, "'9999"),
        ("0%", "'0%' is not a share above 0% and up to 100%"),
        ("101%", "'101%' is not a share above 0% and up to 100%"),
    ],
)
def test_wrong_memory_sizes(given, wanted):
    with pytest.raises(ValueError, match="^" + re.escape(wanted)):
        options.memory_size(lambda: 1000 << 20).parse(given)


def test_share_of_an_unknown_memory_size():
    with pytest.raises(ValueError, match="'50%': this system does not tell its memory's size; give a size in bytes"):
        options.memory_size(lambda: 0).parse("50%")


def test_memory_limit_in_arguments_environment_and_file(toml):
    assert load(ADDRESS, "--memory-limit", "25%").memory_limit_bytes == machine.usable_memory() // 4
    assert load(ADDRESS, SCALER_SCHEDULER_MEMORY_LIMIT="2G").memory_limit_bytes == 2 << 30
    for line in ("memory_limit = 536870912", "memory_limit = '512M'", "memory_limit = 536870912.0"):
        assert load(ADDRESS, "--config", toml(line)).memory_limit_bytes == 512 << 20
    assert complaint(ADDRESS, "--memory-limit", "lots").startswith("--memory-limit: 'lots' is not a size")


def write(root, path, content):
    os.makedirs(os.path.dirname(root / path), exist_ok=True)
    (root / path).write_text(content)


@pytest.mark.parametrize(
    "files, usable",
    [
        ({}, 8 << 30),
        ({"proc/self/cgroup": "nonsense\n::\n"}, 8 << 30),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 8 << 30),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 1 << 30),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1099511627776\n"}, 8 << 30),
        (  # the limit of an outer cgroup
            {
                "proc/self/cgroup": "0::/user/job\n",
                "sys/fs/cgroup/user/job/memory.max": "4294967296\n",
                "sys/fs/cgroup/user/memory.max": "2147483648\n",
            },
            2 << 30,
        ),
        (  # the scheduler's unit with its own MemoryMax, below that of the slice
            {
                "proc/self/cgroup": "0::/system.slice/scaler-scheduler.service\n",
                "sys/fs/cgroup/system.slice/scaler-scheduler.service/memory.max": "5368709120\n",
                "sys/fs/cgroup/system.slice/memory.max": "max\n",
            },
            5 << 30,
        ),
        (  # a path of the host
            {"proc/self/cgroup": "0::/../docker/1\n", "sys/fs/cgroup/memory.max": "1073741824\n"},
            1 << 30,
        ),
        (  # version 1, and version 2 beside it without this controller
            {
                "proc/self/cgroup": "5:cpu:/\n4:memory:/docker/1\n0::/docker/1\n",
                "sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "3221225472\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            3 << 30,
        ),
        (  # version 1, seen from inside a container
            {
                "proc/self/cgroup": "4:memory:/not/here\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n",
            },
            1 << 30,
        ),
    ],
)
def test_usable_memory(monkeypatch, tmp_path, files, usable):
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 2 << 20, "SC_PAGE_SIZE": 4096}.get)
    for path, content in files.items():
        write(tmp_path, path, content)
    assert machine.usable_memory(tmp_path) == usable
    assert machine.usable_shared_memory("/nowhere", tmp_path) == usable // 2
    assert machine.usable_shared_memory("/", tmp_path) <= usable // 2 or not usable


def test_usable_memory_is_0_if_unknown(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "sysconf")
    assert machine.usable_memory(tmp_path) == 0
    assert complaint(ADDRESS) == (
        "--memory-limit: '50%': this system does not tell its memory's size; give a size in bytes"
    )
    assert load(ADDRESS, "--memory-limit", "1G").memory_limit_bytes == 1 << 30


def test_usable_memory_of_this_machine():
    assert 1 << 26 < machine.usable_memory() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


BAD_FILES = [
    ("# a comment\nio_thread = 1\n", ":2: io_thread: unknown key (did you mean io_threads?)"),
    ("io-threads = 1\n", ":1: io-threads: unknown key (did you mean io_threads?)"),
    ("task_retries = 1\n\n[io_threads]\na = 1", ":3: io_threads: {'a': 1} is not a whole number"),
    ("#io_threads = 1\nio_threads = 0", ":2: io_threads: '0' is not a whole number from 1 to 256"),
    ("io_threads = true", ":1: io_threads: True is not a whole number"),
    ("io_threads = '1'", ":1: io_threads: '1' is not a whole number"),
    ("io_threads = 1.0", ":1: io_threads: 1.0 is not a whole number"),
    ("event_loop = 1", ":1: event_loop: 1 is not a string in quotes"),
    ("client_timeout_seconds = 'x'", ":1: client_timeout_seconds: 'x' is not a number"),
    ("client_timeout_seconds = inf", ":1: client_timeout_seconds: 'inf' is not a number of seconds above 0"),
    ("memory_limit = true", ":1: memory_limit: True is not a number or a string in quotes"),
    ("memory_limit = [1]", ":1: memory_limit: [1] is not a number or a string in quotes"),
    ("memory_limit = 5", ":1: memory_limit: '5' is not a size from 1M to 1024T"),
    ("logging_paths = [1]", ":1: logging_paths: [1] is not a string in quotes or an array of such"),
    ("logging_paths = []", ":1: logging_paths: names nothing"),
    ("\naddress = 'tcp://a'", ":2: address: bad address 'tcp://a': the port is missing"),
    ("io_threads = 1\nio_threads = 2\n", ":2: Cannot overwrite a value: 'io_threads = 2'"),
    ("task_retries = 1\nio_threads 2\n", ":2: Expected '=' after a key in a key/value pair: 'io_threads 2'"),
    ("task_retries = 1\nlogging_paths = [\n", ":2: "),
]


@pytest.mark.parametrize("content, wanted", BAD_FILES)
def test_wrong_files(toml, content, wanted):
    path = toml(content)
    assert complaint(ADDRESS, "--config", path).startswith(f"{path}{wanted}")


def test_files_that_are_not_toml(toml, tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert complaint(ADDRESS, "--config", str(tmp_path / "binary")).endswith("binary is not UTF-8 text")
    assert complaint(ADDRESS, "--config", toml("a = " + "[" * 100000)).endswith("scheduler.toml: too deeply nested")


def test_check_config(toml, capsys):
    good = toml("io_threads = 2\naddress = 'tcp://127.0.0.1:2345'\nmonitor_address = ''\n")
    assert cli.main(["--check-config", good]) == 0
    assert capsys.readouterr() == (f"{good}: OK\n", "")
    bad = toml('bogus = 1\nio_threads = 0\nwhat\nlogging_level = "x\ntask_retries = -1\nwhy\n', "bad.toml")
    assert cli.main(["--check-config", bad]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.splitlines() == [
        f"{bad}:1: bogus: unknown key",
        f"{bad}:2: io_threads: '0' is not a whole number from 1 to 256",
        f"{bad}:3: Expected '=' after a key in a key/value pair: 'what'",
        f"{bad}:4: Illegal character '\\n': 'logging_level = \"x'",
        f"{bad}:5: task_retries: '-1' is not a whole number from 0 to 1000000",
        f"{bad}:6: Expected '=' after a key in a key/value pair: 'why'",
    ]
    assert cli.main(["--check-config", "/no/such"]) == 2
    assert capsys.readouterr().err == "cannot read /no/such: No such file or directory\n"


def test_check_config_names_variables_that_override_the_file(toml, capsys, monkeypatch):
    monkeypatch.setenv("SCALER_KEYS", "client-keys")
    path = toml("keys = ''\n")
    assert cli.main(["--check-config", path]) == 0
    assert capsys.readouterr().out == f"{path}: OK; the environment overrides it here: SCALER_KEYS\n"


@pytest.mark.parametrize(
    "content, wanted",
    [
        ("io_threads = 1\naddress = 'tcp://*:2345'\n", ":2: address: tcp://*:2345 can be reached from other machines"),
        ("address = 'ipc://@x'\nmonitor_address = 'tcp://0.0.0.0:1'\n", ":2: monitor_address: tcp://0.0.0.0:1 can be"),
        ("address = 'tcp://*:2345'\nkeys = '/no/such'\n", ":2: keys: there is no folder of keys at /no/such"),
        ("keys = '/'\ninsecure = true\n", ":1: keys: / is not a scheduler's folder of keys: it has no server.secret"),
        ("address = 'tcp://*:2345'\ninsecure = true\n", ""),
    ],
)
def test_check_config_reports_errors_of_the_start(toml, capsys, content, wanted):
    path = toml(content)
    assert cli.main(["--check-config", path]) == (2 if wanted else 0)
    out, err = capsys.readouterr()
    if not wanted:
        assert (out, err) == (f"{path}: OK\n", "")
        return
    (line,) = err.splitlines()
    assert line.startswith(path + wanted)


def test_check_config_with_keys(toml, capsys, tmp_path, monkeypatch):
    keys = str(tmp_path / "keys")
    assert cli.main(["keygen", keys]) == 0
    path = toml(f"address = 'tcp://*:2345'\nkeys = '{keys}'\n")
    assert cli.main(["--check-config", path]) == 0

    def not_ours(*_):
        raise key_files.KeyAccessError("cannot read the key")

    monkeypatch.setattr(keyring, "read_pair", not_ours)  # this user may not read the keys
    assert cli.main(["--check-config", path]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "endless, wanted",
    [
        ("logging_paths = [\n'a',\n'b'", "Unclosed array: 'logging_paths = ['"),
        ("logging_paths = [\n'a'", "Unclosed array: 'logging_paths = ['"),
        ("logging_level = 'x\n\n", 'Expected "\'": "logging_level = \'x"'),
    ],
)
def test_unclosed_entry_is_reported_at_its_first_line(toml, capsys, endless, wanted):
    bad = toml(f"io_threads = 0\n{endless}\ntask_retries = 0\nper_worker_queue_size = 0\n")
    assert cli.main(["--check-config", bad]) == 2
    above, line = capsys.readouterr().err.splitlines()
    assert above.startswith(f"{bad}:1: io_threads: ") and line == f"{bad}:2: {wanted}"
    bad = toml("io_threads = 0\nlogging_paths = [\n'a',\n@\n]\n")
    assert cli.main(["--check-config", bad]) == 2
    above, line = capsys.readouterr().err.splitlines()
    assert above.startswith(f"{bad}:1: io_threads: ")
    assert line == f"{bad}:4: Invalid value, in what begins in line 2: '@'"


def test_number_of_syntax_errors_is_limited(toml, capsys):
    assert cli.main(["--check-config", toml("what\n" * 1000)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 20


def test_empty_quotes_do_not_set_an_option(toml):
    assert load(ADDRESS, "--config", toml("io_threads = ''\nmemory_limit = ''\nlogging_paths = ''")) == load(ADDRESS)
    assert complaint("--config", toml("address = ''")).startswith("no address")


def uncommented(text):
    return re.sub("^#(?! |$)", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("change", [str, uncommented])
def test_default_file_lists_every_option_and_changes_nothing(toml, capsys, change):
    assert cli.main(["--print-config"]) == 0
    text = capsys.readouterr().out
    keys = [option.key for option in config.COMMAND.options]
    assert re.findall("^#?([a-z_]+) = .*$", text, re.MULTILINE) == keys
    assert re.findall("^([a-z_]+) = .*$", change(text), re.MULTILINE) == (["address"] if change is str else keys)
    path = toml(change(text))
    assert cli.main(["--check-config", path]) == 0
    assert load("--config", path) == load(ADDRESS)
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.skipif(not IS_PYPY, reason="what PyPy alone refuses")
def test_uvloop_under_pypy():
    assert complaint(ADDRESS, "--event-loop", "uvloop").startswith("--event-loop: uvloop does not run under PyPy")


@pytest.mark.skipif(IS_PYPY, reason="PyPy refuses uvloop before it looks for it")
def test_uvloop_under_cpython(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert complaint(ADDRESS, "--event-loop", "uvloop").startswith("--event-loop: uvloop can't be imported here")
    monkeypatch.setitem(sys.modules, "uvloop", types.ModuleType("uvloop"))
    assert load(ADDRESS, "--event-loop", "uvloop").event_loop == "uvloop"


def test_help_lists_every_option_with_default_and_unit(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "1000")
    assert cli.main(["-h"]) == 0
    wide = " ".join(capsys.readouterr().out.split())
    for option in config.COMMAND.options:
        assert (option.kind.metavar if option.positional else option.label) in wide
        assert f"{option.help} [default: {option.describe_default()}]" in wide
    for default in ("1 thread", "zmq", "60 seconds", "1000 tasks", "3 retries", "50%", "/dev/stderr", "INFO"):
        assert f"[default: {default}]" in wide
    for name in (
        "--config",
        "--check-config",
        "--print-config",
        "--version",
        "SCALER_ADDRESS",
        "SCALER_SCHEDULER_IO_THREADS",
    ):
        assert name in wide
    assert "ipc:///tmp/scaler-sockets-<uid>/<host>_<port>_monitor" in wide


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    wanted = r"scaler_scheduler 0\.1\.0, (PyPy|CPython) \d+\.\d+\.\d+.*, ZeroMQ \d+\.\d+\.\d+, protocol version \d+\n"
    assert re.fullmatch(wanted, capsys.readouterr().out)


def test_main_prints_one_line_and_returns_2(capsys):
    assert cli.main(["--bogus"]) == 2
    assert capsys.readouterr() == ("", "scaler_scheduler: unknown option --bogus\n")
    assert cli.main([ADDRESS, "--logging-paths", "/no/such/log"]) == 2
    wanted = "scaler_scheduler: cannot log to /no/such/log: No such file or directory\n"
    assert capsys.readouterr() == ("", wanted)


def test_main_passes_the_configuration_to_the_daemon(monkeypatch, tmp_path):
    given = []
    daemon = types.ModuleType("daemon")
    daemon.run = lambda configuration, _pending: given.append(configuration) or 7
    monkeypatch.setitem(sys.modules, "scaler_scheduler.daemon.loop", daemon)
    monkeypatch.setenv("PYPY_GC_NURSERY", "32M")  # else PyPy executes itself again
    monkeypatch.setattr(sys, "argv", ["scaler_scheduler", ADDRESS, "--logging-paths", str(tmp_path / "log")])
    monkeypatch.setenv("SCALER_ADRESS", ADDRESS)
    assert cli.main() == 7
    assert given == [load(ADDRESS, "--logging-paths", str(tmp_path / "log"))]
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert line.startswith("[WARNING]") and "SCALER_ADRESS" in line


def test_changed_options_are_logged(tmp_path, caplog):
    file = tmp_path / "scheduler.toml"
    file.write_text(f'address = "{ADDRESS}"\nio_threads = 2\n')
    arguments = command_line.parse_arguments(config.COMMAND, ["--config", str(file), "--task-retries", "1"])
    pending = PendingConfig(config.COMMAND, arguments, {})
    pending.log_changes()
    assert caplog.messages == []
    file.write_text(f'address = "{ADDRESS}"\nio_threads = 3\nmemory_limit = "1G"\ntask_retries = 2\n')
    pending.log_changes()
    wanted = "changed options take effect at the next start (no task is lost): io_threads, memory_limit"
    assert caplog.messages == [wanted], "arguments override the file"
    file.write_text("io_threads = 0\n")
    pending.log_changes()
    assert caplog.messages[1:] == [
        "the next start will fail, and until then all options stay as they were: "
        f"{file}:1: io_threads: '0' is not a whole number from 1 to 256"
    ]


def test_process_with_wrong_input_prints_one_line_and_imports_no_pickle():
    packages = os.path.dirname(os.path.dirname(os.path.dirname(config.__file__)))
    environ = dict(os.environ, PYTHONPATH=packages)
    argv = [sys.executable, "-m", "scaler_scheduler", "tcp://nowhere"]
    ran = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.count("\n") == 1
    assert ran.stderr.startswith("scaler_scheduler: address: bad address 'tcp://nowhere'")
    code = "import sys, scaler_scheduler.cli; print(sorted({'pickle', '_pickle', 'zmq', 'asyncio'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("[]\n", "")


def test_log_lines(tmp_path, capsys):
    path = tmp_path / "log"
    path.write_text("before\n")
    logs.set_up("INFO", ["/dev/stderr", "/dev/stdout", str(path)])
    logging.getLogger("scaler_scheduler.daemon.loop").info("scheduler %s", "listens")
    logging.debug("too quiet")
    out, err = capsys.readouterr()
    assert LINE.fullmatch(out) and LINE.fullmatch(err)
    assert LINE.fullmatch(path.read_text()[len("before\n") :])
    logs.set_up("INFO", [str(path)])
    logging.warning("\udcff")
    assert path.read_text().endswith(": \\udcff\n")
    assert capsys.readouterr() == ("", "")


def test_moved_log_file_is_opened_again(tmp_path, capfd):
    path, folder = tmp_path / "logs" / "log", tmp_path / "logs"
    folder.mkdir()
    logs.set_up("INFO", [str(path)])
    logging.info("first")
    path.rename(folder / "log.1")
    logging.info("second")
    logging.info("third")
    assert (folder / "log.1").read_text().endswith(": first\n")
    assert [line.split(": ")[1] for line in path.read_text().splitlines()] == ["second", "third"]
    folder.rename(tmp_path / "gone")
    logging.info("fourth")  # the file is opened again
    assert "No such file" in capfd.readouterr().err
    folder.mkdir()
    logging.info("fifth")
    assert path.read_text().endswith(": fifth\n")


def test_foreign_text_is_one_line():
    assert logs.on_one_line("Zoë's host-1") == "Zoë's host-1"
    assert logs.on_one_line("a\nb\x1b[2J\0c\u2028d\ud800") == r"a\nb\x1b[2J\x00c\u2028d\ud800"
    assert logs.on_one_line(400 * "a" + 100 * "z") == 400 * "a" + 100 * "z"
    assert logs.on_one_line(500 * "a" + 500 * "z") == 247 * "a" + " ... " + 247 * "z", "both ends say what failed"


def test_logging_config_files(tmp_path):
    path = tmp_path / "logging"
    target = tmp_path / "target"
    path.write_text(
        "[loggers]\nkeys=root\n[handlers]\nkeys=file\n[formatters]\nkeys=plain\n"
        "[logger_root]\nlevel=DEBUG\nhandlers=file\n"
        f"[handler_file]\nclass=FileHandler\nformatter=plain\nargs=({str(target)!r},)\n"
        "[formatter_plain]\nformat=ini %(message)s\n"
    )
    logs.set_up("ERROR", ["/no/such/path"], str(path))
    logging.debug("a")
    handler = {"class": "logging.FileHandler", "filename": str(target), "formatter": "plain"}
    tables = {"handlers": {"file": handler}, "formatters": {"plain": {"format": "json %(message)s"}}}
    path.write_text(json.dumps({"version": 1, "root": {"level": "INFO", "handlers": ["file"]}, **tables}))
    logs.set_up("ERROR", ["/no/such/path"], str(path))
    logging.info("b")
    assert target.read_text() == "ini a\njson b\n"


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"nonsense", b"\xff", b"{}", b'{"version": 1, "handlers": {"x": {"class": "no.such.Class"}}}'],
)
def test_wrong_logging_config_files(tmp_path, capsys, content):
    path = tmp_path / "logging"
    path.write_bytes(content)
    assert cli.main([ADDRESS, "--logging-config-file", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert err.startswith(f"scaler_scheduler: the logging configuration {path} is ")


def test_missing_logging_config_file(capsys):
    assert cli.main([ADDRESS, "--logging-config-file", "/no/such"]) == 2
    assert "cannot read the logging configuration /no/such: No such file" in capsys.readouterr().err


def test_fail_prints_one_line(capsys):
    assert config.fail("several\nlines") == 2
    assert capsys.readouterr().err == "scaler_scheduler: several lines\n"


def test_limits_of_tasks(toml):
    file = toml("task_retries = 1\n[limits]\ndb = 10\napi = '50/s'\nslow = '1.5/h'\n")
    wanted = {"db": LimitSettings(10), "api": LimitSettings(0, 50.0), "slow": LimitSettings(0, 1.5 / 3600)}
    assert load("--config", file, ADDRESS).limits == wanted
    assert load(ADDRESS, "--limits", "db=10,api=50/s", "--limits", "slow=1.5/h").limits == wanted


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("db", "'db' is not a number of tasks from 1 to 999,999,999 as in db=10, or a rate as in api=50/s, /min or /h"),
        ("db=0", "'db=0' is not a number of tasks from 1 to 999,999,999"),
        ("db=-1", "'db=-1' is not a number of tasks from 1 to 999,999,999"),
        ("db=1.5", "'db=1.5' is not a number of tasks from 1 to 999,999,999"),
        ("db=nan/s", "'db=nan/s' is not a number of tasks from 1 to 999,999,999"),
        ("db=5/day", "'db=5/day' is not a number of tasks from 1 to 999,999,999"),
        ("db=9999999999", "'db=9999999999' is not a number of tasks from 1 to 999,999,999"),
        ("=3", "'=3' is not NAME=TASKS or NAME=RATE"),
        ("a b=3", "'a b=3' is not NAME=TASKS or NAME=RATE, with a name of 1 to 64 characters without blanks"),
        ("db=1,db=2", "'db' is there more than once"),
    ],
)
def test_wrong_limits_of_tasks(given, said):
    with pytest.raises(OptionError, match=re.escape(said)):
        load(ADDRESS, "--limits", given)


def test_a_limit_that_is_a_bool_in_the_file(toml):
    with pytest.raises(OptionError, match="limits: 'db=true' is not a number of tasks from 1 to 999,999,999"):
        load("--config", toml("[limits]\ndb = true\n"), ADDRESS)


def test_limits_of_tasks_take_effect_at_a_reload(toml, caplog):
    caplog.set_level("INFO")
    file = toml("[limits]\ndb = 10\n")
    pending = PendingConfig(
        config.COMMAND, command_line.parse_arguments(config.COMMAND, ["--config", file, ADDRESS]), {}
    )
    Path(file).write_text("[limits]\ndb = 3\n")
    options = pending.log_changes()
    assert options is not None and options["limits"] == {"db": LimitSettings(3)}
    assert caplog.messages == ["changed limits hold from now on: db=3 (was 10)"]
    pending.log_changes()
    assert len(caplog.messages) == 1, "nothing has changed since"
    Path(file).write_text("[limits]\ndb = 'many'\n")
    assert pending.log_changes() is None
    assert "all options stay as they were" in caplog.text and "'db=many'" in caplog.text
    caplog.clear()
    Path(file).write_text("[limits]\napi = '50/s'\n")
    pending.log_changes()
    assert caplog.messages == ["changed limits hold from now on: api=50/s (new), db removed"]
    caplog.clear()
    Path(file).write_text("[limits]\napi = '1/h'\nold = '30/min'\n")
    pending.log_changes()
    assert caplog.messages == ["changed limits hold from now on: api=1/h (was 50/s), old=30/min (new)"]
