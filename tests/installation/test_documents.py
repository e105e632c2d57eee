"""Man pages and default configurations, written from the tables of options."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.installation.conftest import ROOT, write_documents

from scaler_client import __version__
from scaler_client.exporter.config import COMMAND as EXPORTER
from scaler_client.inspect.arguments import SUBCOMMANDS
from scaler_client.top.config import COMMAND as TOP
from scaler_client.ui.config import COMMAND as UI
from scaler_scheduler.config.config import COMMAND as SCHEDULER
from scaler_worker.autoscaler.config import COMMAND as AUTOSCALER
from scaler_worker.config import COMMAND as CLUSTER

COMMANDS = {
    "scaler_scheduler": SCHEDULER,
    "scaler_cluster": CLUSTER,
    "scaler_exporter": EXPORTER,
    "scaler_top": TOP,
    "scaler_ui": UI,
    "scaler_autoscaler": AUTOSCALER,
}
PAGES = [*COMMANDS, "scaler_worker", "scaler_client"]
FILES = {program: program.removeprefix("scaler_") for program in COMMANDS}
SECTIONS = "NAME SYNOPSIS DESCRIPTION OPTIONS CONFIGURATION SIGNALS EXIT ENVIRONMENT FILES EXAMPLES SEE".split()


def plain(page: Path) -> str:
    """The text of a page without fonts and escapes."""
    return re.sub(r"\\f[BIR]|\\&", "", page.read_text()).replace(r"\-", "-").replace(r"\e", "\\")


@pytest.mark.parametrize("program", COMMANDS)
def test_man_page_lists_every_option_with_its_default(documents: Path, program: str) -> None:
    text = plain(documents / "man" / f"{program}.1")
    assert text.startswith(f'.TH {program.upper()} 1 2026-01-01 "Scaler {__version__}"')
    sections = re.findall(r"^\.SH (\w+)", text, re.MULTILINE)
    assert [section for section in sections if section in SECTIONS] == SECTIONS
    entries = dict(re.findall(r"^\.TP\n(.*)\n((?:[^.].*\n)+)", text, re.MULTILINE))
    for option in COMMANDS[program].options:  # type: ignore[attr-defined]
        names = {tag: [each.split()[0] for each in tag.split(", ")] for tag in entries}
        (tag,) = [tag for tag in entries if (option.kind.metavar if option.positional else option.label) in names[tag]]
        assert entries[tag].lower().startswith(option.help.lower())
        assert option.required or f"Default: {option.describe_default()}." in entries[tag]
    assert {"--config FILE", "--check-config FILE", "--print-config", "--version", "-h, --help"} <= entries.keys()
    assert "@" not in text


def test_boolean_option_lists_both_forms(documents: Path) -> None:
    assert "\n--protected, --no-protected\n" in plain(documents / "man" / "scaler_scheduler.1")


def test_alias_refers_to_the_same_page(documents: Path) -> None:
    assert (documents / "man" / "scaler_worker.1").read_text() == ".so man1/scaler_cluster.1\n"


def test_man_page_lists_every_subcommand_with_its_options(documents: Path) -> None:
    text = plain(documents / "man" / "scaler_client.1")
    _, _, commands = text.partition("\n.SH COMMANDS\n")
    commands, _, others = commands.partition("\n.SH OPTIONS\n")
    sections = dict(re.findall(r"^\.SS (\w+)\n(.*?)(?=^\.SS|\Z)", commands, re.MULTILINE | re.DOTALL))
    assert list(sections) == [each.name for each in SUBCOMMANDS]
    for each in SUBCOMMANDS:
        names = [name for name, _ in each.positionals] + ["--" + name for name, _ in each.flags]
        for option in each.command.options:
            short = f"{option.short} {option.kind.metavar}, " if option.short else ""
            names.append(option.kind.metavar if option.positional else short + option.label)
        for name in names:
            assert f".TP\n{name}" in sections[each.name] or f".TP\n{name}" in others, name
    assert "@" not in text


def test_scheduler_page_lists_the_key_commands(documents: Path) -> None:
    text = plain(documents / "man" / "scaler_scheduler.1")
    keys = text.partition("\n.SH KEYS\n")[2].partition("\n.SH OPTIONS\n")[0]
    found = re.findall(r"^\.SS (\w+)\n(.*?)(?=^\.SS|\Z)", keys, re.MULTILINE | re.DOTALL)
    tags = {name: re.findall(r"^\.TP\n(.*)\n[A-Z0-9]", section, re.MULTILINE) for name, section in found}
    limits = ["--share NUMBER", "--max-running TASKS", "--max-waiting TASKS"]
    assert tags == {
        "keygen": ["DIR", "--as ROLE"],
        "authorize": ["DIR", "PUBLICKEY", "--as ROLE", "--name NAME", *limits],
        "revoke": ["DIR", "NAME_OR_KEY"],
        "list": ["DIR"],
    }
    assert text.count("\n-h, --help\n") == 1


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
@pytest.mark.parametrize("program", [*COMMANDS, "scaler_client"])
def test_mandoc_prints_no_warnings(documents: Path, program: str) -> None:
    page = documents / "man" / f"{program}.1"
    ran = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout + ran.stderr) == (0, "")


@pytest.mark.skipif(
    shutil.which("man") is None or shutil.which("groff") is None, reason="man or groff is not installed"
)
@pytest.mark.parametrize("program", PAGES)
def test_man_prints_no_warnings(documents: Path, tmp_path: Path, program: str) -> None:
    shutil.copytree(documents / "man", tmp_path / "man1")
    environ = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "100", "MANROFFSEQ": ""}
    command = ["man", "--warnings", "--encoding=UTF-8", "--local-file", f"man1/{program}.1"]
    ran = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "SEE ALSO" in re.sub(".\b", "", ran.stdout)


def test_same_sources_give_the_same_bytes(documents: Path, tmp_path: Path) -> None:
    again = write_documents(tmp_path)
    files = sorted(path.relative_to(documents) for path in documents.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    assert all((documents / file).read_bytes() == (again / file).read_bytes() for file in files)


@pytest.mark.parametrize(("program", "file"), sorted(FILES.items()))
def test_default_configuration_equals_print_config(documents: Path, program: str, file: str) -> None:
    text = (documents / "configuration" / f"{file}.toml").read_text()
    assert text.startswith(f"# The configuration of {program}.")
    keys = re.findall("^#?([a-z_]+) = ", text, re.MULTILINE)
    assert keys == [option.key for option in COMMANDS[program].options]  # type: ignore[attr-defined]


def test_page_of_options_is_up_to_date(tmp_path: Path) -> None:
    """If it fails, run packaging/within.sh python packaging/documents/configuration_page.py."""
    page = ROOT / "scheduler_daemon" / "docs" / "configuration.md"
    copy = tmp_path / page.name
    shutil.copy(page, copy)
    subprocess.run(
        [sys.executable, ROOT / "packaging" / "documents" / "configuration_page.py", copy], check=True, timeout=60
    )
    assert copy.read_text("utf-8") == page.read_text("utf-8")
