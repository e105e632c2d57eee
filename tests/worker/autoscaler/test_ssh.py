"""The provider `ssh`: why hosts fail. A stand-in for ssh runs the scripts here, with a home for each host."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.waiting import wait_until

from scaler_client.autoscale import Pool
from scaler_worker.autoscaler.pool_settings import PoolSettings
from scaler_worker.autoscaler.providers import MAX_OUTPUT_CHARACTERS, HostCommand, ProviderError
from scaler_worker.autoscaler.ssh import LOG_CHARACTERS, SshProvider

SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
HOME={folder}/$2 exec sh -c "$3"
"""

NAME, OTHER = "nodes-1-abc123", "nodes-0-abc123"

Make = Callable[..., SshProvider]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes a provider of two hosts. Their command is a shell script of this text, or this program."""
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH.format(folder=tmp_path))
    ssh.chmod(0o755)
    for host in ("h0", "h1"):
        (tmp_path / host).mkdir()
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")

    def provider(text: str = "", program: str = "no-such-program") -> SshProvider:
        if text:
            (tmp_path / "agent").write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / "agent").chmod(0o755)
            program = str(tmp_path / "agent")
        settings = PoolSettings(Pool("nodes", most=2), "ssh", program=(program,), hosts=("h0", "h1"))
        return SshProvider(HostCommand(settings, "tcp://x:1", ""), 20.0)

    return provider


def test_a_program_that_the_host_does_not_have(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"] + 300 * ":/no/such/folder")
    with pytest.raises(ProviderError) as raised:
        make().start([NAME])
    begin = f"{NAME}: ssh ended with status 127: no-such-program is not found on this host; PATH is /"
    assert str(raised.value).startswith(begin) and str(raised.value).endswith("...")
    assert len(str(raised.value)) < len(begin) + MAX_OUTPUT_CHARACTERS


def test_ssh_does_not_tell_that_it_adds_the_key_of_a_host(make: Make, tmp_path: Path) -> None:
    (tmp_path / "bin" / "ssh").write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\n')
    make().host_names()
    assert "-o BatchMode=yes -o ConnectTimeout=10 -o LogLevel=ERROR -- h0 " in (tmp_path / "calls").read_text()


def test_a_program_that_is_in_the_home_of_the_host(make: Make, tmp_path: Path) -> None:
    program = tmp_path / "h1" / "bin" / "agent"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    failed = make(program="bin/agent").start([NAME, OTHER])
    assert list(failed) == [OTHER] and "bin/agent is not found on this host" in failed[OTHER]


def test_the_end_of_the_log_of_a_host_that_has_died(make: Make, tmp_path: Path) -> None:
    provider = make(
        "echo first; for n in 1 2 3; do echo line $n; done; printf 'a\\ttab\\r\\n\\n \\033[31mred' >&2; exit 3"
    )
    assert provider.start([NAME]) == {}
    wait_until(lambda: provider.host_names() == set(), 20.0, "the end of the host")
    assert provider.last_lines() == {NAME: "line 2 | line 3 | a tab | ?[31mred"}
    assert provider.last_lines() == {}
    assert provider.host_names() == set() and provider.last_lines() == {}
    assert not list((tmp_path / "h1" / ".cache" / "scaler-autoscaler").iterdir())


def test_a_long_line(make: Make) -> None:
    provider = make("n=0; while [ $n -lt 3000 ]; do printf %s $n; n=$((n+1)); done; echo")
    provider.start([NAME])
    wait_until(lambda: provider.host_names() == set(), 20.0, "the end of the host")
    text = provider.last_lines()[NAME]
    assert len(text) == LOG_CHARACTERS and text.endswith("299829982999"[-8:])


def test_a_host_that_runs(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")  # ps cuts what it prints, also if it is piped
    provider = make("echo begins; while :; do sleep 0.1; done")
    assert provider.start([NAME, OTHER]) == {}
    assert provider.host_names() == {NAME, OTHER} and provider.last_lines() == {}
    provider.drain([NAME])
    wait_until(lambda: provider.host_names() == {OTHER}, 20.0, "the end of the host")
    assert provider.last_lines() == {NAME: "begins"}
    provider.drain([OTHER])
    wait_until(lambda: provider.host_names() == set(), 20.0, "the end of the other host")
