"""The keywords of a local cluster that are options of its commands. Scripts replace the commands here."""

from __future__ import annotations

import enum
import logging
from pathlib import Path
from typing import Any

import pytest

from scaler_client.api import local_options
from scaler_client.api.local_options import LaunchCommands, autoscaler_file, check_options, command_options

NO_UVLOOP = "/dev/stdin:1: event_loop: no uvloop here"


class Commands:
    """Scripts that answer `--check-config` with a status and lines, and write down their input."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, name: str, *lines: str, status: int | None = None) -> list[str]:
        script = self.folder / name
        text = "\n".join(lines)
        script.write_text(f"#!/bin/sh\ncat > '{script}.asked'\ncat >&2 <<'END'\n{text}\nEND\n")
        with script.open("a") as file:
            file.write(f"exit {(2 if lines else 0) if status is None else status}\n")
        script.chmod(0o700)
        return [str(script)]

    def asked(self, name: str) -> str | None:
        path = self.folder / f"{name}.asked"
        return path.read_text() if path.exists() else None


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    return Commands(tmp_path)


# ------------------------------------------------------------------------------------------------------------ keywords


def test_none_means_the_default() -> None:
    assert command_options({"io_threads": 2, "preload": None}) == {"io_threads": 2}


@pytest.mark.parametrize(("keyword", "key"), local_options.RENAMED.items())
def test_renamed_keywords(keyword: str, key: str) -> None:
    assert command_options({keyword: 5}) == {key: 5}
    with pytest.raises(TypeError, match="are the same option: give one of them"):
        command_options({key: 5, keyword: 5})


@pytest.mark.parametrize("keyword", local_options.IGNORED)
def test_keywords_without_effect_log_a_warning(keyword: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert command_options({keyword: 5, "io_threads": 2}) == {"io_threads": 2}
    assert caplog.messages == [f"{keyword}= has no effect: {local_options.IGNORED[keyword]}"]


@pytest.mark.parametrize("keyword", local_options.REJECTED)
def test_rejected_keywords_raise(keyword: str) -> None:
    with pytest.raises(TypeError, match=f"^a local cluster takes no {keyword}=: {local_options.REJECTED[keyword]}$"):
        command_options({keyword: 5})


# -------------------------------------------------------------------------------------------------------------- values


class Number(enum.IntEnum):
    THREE = 3


def test_values_as_toml_and_as_arguments(commands: Commands) -> None:
    values: dict[str, Any] = {
        "on": True,
        "off": False,
        "number": 2,
        "of_enum": Number.THREE,
        "share": 0.5,
        "negative": -1,
        "text": 'a "b" \\ é \x7f\n',
        "folder": Path("/a b"),
        "several": ["a", Path("b")],
        "names": {"b", "a"},
        "table": {"gpu": 2, "x": True},
        "nothing": "",
        "spill_directory": "",
    }
    chosen = check_options(values, [commands.make("s")], commands.make("c"), n_workers=3)
    wanted = """\
on = true
off = false
number = 2
of_enum = 3
share = 0.5
negative = -1
text = "a \\"b\\" \\\\ é \\u007f\\n"
folder = "/a b"
several = ["a", "b"]
names = ["a", "b"]
table = {"gpu" = 2, "x" = true}
nothing = ""
spill_directory = ""
"""
    assert (commands.asked("s"), commands.asked("c")) == (wanted, wanted + "num_of_workers = 3\n")
    arguments = ["--on", "--no-off", "--number=2", "--of-enum=3", "--share=0.5", "--negative=-1"]
    arguments += ['--text=a "b" \\ é \x7f\n', "--folder=/a b", "--several=a,b", "--names=a,b", "--table=gpu=2,x"]
    arguments += ["--spill-directory="]
    assert chosen == LaunchCommands(commands.make("s"), arguments, arguments)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (b"x", TypeError, "key must be a string, number, bool, list or dict, not b'x'"),
        ({1: 2}, TypeError, "key must be a string, not 1"),
        ("\udc80", ValueError, r"key: '\\udc80' is not Unicode text"),
        (["a,b"], ValueError, "key: 'a,b' has a comma, which separates values"),
        ({"gpu": [10**5000]}, ValueError, "key: a number of thousands of digits is too large"),
    ],
)
def test_values_that_no_command_accepts(commands: Commands, value: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=f"^{text}$"):
        check_options({"key": value}, [commands.make("s")], commands.make("c"))


# ------------------------------------------------------------------------------------------------- what commands answer


def test_each_command_gets_its_own_options(commands: Commands) -> None:
    scheduler = commands.make("s", "/dev/stdin:2: of_cluster: unknown key")
    cluster = commands.make("c", "a line of another kind", "/dev/stdin:1: of_scheduler: unknown key")
    options = {"of_scheduler": 1, "of_cluster": 2, "of_both": 3}
    chosen = check_options(options, [scheduler], cluster)
    assert chosen.scheduler_arguments == ["--of-scheduler=1", "--of-both=3"]
    assert chosen.cluster_arguments == ["--of-cluster=2", "--of-both=3"]


def test_an_option_that_neither_command_has(commands: Commands) -> None:
    scheduler = commands.make("s", "/dev/stdin:1: evnt_loop: unknown key (did you mean event_loop?)")
    cluster = commands.make("c", "/dev/stdin:1: evnt_loop: unknown key")
    complaint = r"neither scaler_scheduler nor scaler_cluster has an option 'evnt_loop' \(did you mean event_loop\?\)"
    with pytest.raises(TypeError, match=f"^{complaint}$"):
        check_options({"evnt_loop": 1}, [scheduler], cluster)
    both = commands.make("b", "/dev/stdin:1: n_worker: unknown key (did you mean worker_names?)")
    with pytest.raises(TypeError, match=r"'n_worker' \(did you mean n_workers\?\)"):
        check_options({"n_worker": 1}, [both], both, keywords=["address", "n_workers"])


def test_the_error_has_the_text_of_the_command(commands: Commands) -> None:
    cluster = commands.make("c", "/dev/stdin:1: names: 2 names for 3 workers (/dev/stdin:2: num_of_workers)")
    with pytest.raises(ValueError, match=r"^names: 2 names for 3 workers \(num_of_workers\)$"):
        check_options({"names": ["a", "b"]}, [commands.make("s")], cluster, n_workers=3)


@pytest.mark.parametrize(("lines", "status"), [(["unknown option --check-config"], 2), (["Traceback"], 1)])
def test_a_command_that_does_not_answer(commands: Commands, lines: list[str], status: int) -> None:
    with pytest.raises(RuntimeError, match=f"--check-config /dev/stdin ended with status {status}: {lines[0]}"):
        check_options({"a": 1}, [commands.make("s", *lines, status=status)], commands.make("c"))


# -------------------------------------------------------------------------------------------------------------- uvloop


def test_uvloop_decides_which_command_is_chosen(commands: Commands, caplog: pytest.LogCaptureFixture) -> None:
    first, second, third = commands.make("pypy", NO_UVLOOP), commands.make("one"), commands.make("other")
    chosen = check_options({"event_loop": "uvloop"}, [first, second, third], commands.make("c"))
    assert (chosen.scheduler, chosen.scheduler_arguments) == (second, ["--event-loop=uvloop"])
    assert commands.asked("other") is None
    line = f"event_loop='uvloop': the scheduler is started with `{second[0]}` instead of `{first[0]}`"
    assert caplog.messages == [f"{line} (no uvloop here)"]


def test_no_warning_if_the_first_command_has_uvloop(commands: Commands, caplog: pytest.LogCaptureFixture) -> None:
    chosen = check_options({"event_loop": "uvloop"}, [commands.make("one"), commands.make("other")], commands.make("c"))
    assert chosen.scheduler == commands.make("one")
    assert commands.asked("other") is None and not caplog.messages


def test_no_command_has_uvloop(commands: Commands, caplog: pytest.LogCaptureFixture) -> None:
    first, second = commands.make("pypy", NO_UVLOOP), commands.make("other", NO_UVLOOP)
    chosen = check_options({"event_loop": "uvloop", "io_threads": 2}, [first, second], commands.make("c"))
    assert (chosen.scheduler, chosen.scheduler_arguments) == (first, ["--io-threads=2"])
    line = "event_loop='uvloop' is ignored: no interpreter here has both uvloop and the scheduler. It is started with"
    assert caplog.messages == [f"{line} `{first[0]}` (no uvloop here)"]


def test_a_given_scheduler_without_uvloop_raises(commands: Commands) -> None:
    with pytest.raises(ValueError, match="^event_loop: no uvloop here$"):
        check_options(
            {"event_loop": "uvloop"},
            [commands.make("pypy", NO_UVLOOP)],
            commands.make("c"),
            may_leave_out_uvloop=False,
        )


def test_other_wrong_event_loops_do_not_change_the_command(commands: Commands) -> None:
    with pytest.raises(ValueError, match="^event_loop: no uvloop here$"):
        check_options({"event_loop": "x"}, [commands.make("s", NO_UVLOOP), commands.make("other")], commands.make("c"))
    assert commands.asked("other") is None


def test_an_elastic_cluster_takes_no_resources() -> None:
    with pytest.raises(TypeError, match="an elastic local cluster takes no resources="):
        autoscaler_file(0, 8, ["--resources=gpu=1"])
