"""`.ci/commit-subjects`: which subjects of commits it takes, and which it names."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[1] / ".ci" / "commit-subjects"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "commit-subjects").write_bytes(CHECK.read_bytes())
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".ci")
    commit(tmp_path, "before the rule there were subjects like this one.")
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, subject: str) -> None:
    git(folder, "commit", "-q", "--allow-empty", "-m", f"{subject}\n\nThe body says why.")


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", folder / ".ci" / "commit-subjects"], text=True, capture_output=True)


def test_commits_from_before_the_rule_are_not_checked(repository: Path) -> None:
    finished = check(repository)
    assert (finished.returncode, finished.stderr) == (0, "")


@pytest.mark.parametrize(
    "subject", ["Retry graph tasks whose host died", "Process results first", "Embed the schema", "x" * 72]
)
def test_imperative_subjects_pass(repository: Path, subject: str) -> None:
    commit(repository, subject[0].upper() + subject[1:])
    finished = check(repository)
    assert (finished.returncode, finished.stderr) == (0, "")


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        ("R" + 72 * "e", "has 73 characters, more than 72"),
        ("Retry graph tasks.", "ends with a full stop"),
        ("retry graph tasks", "does not begin with a capital letter"),
        ("Retried graph tasks", 'is not imperative ("Retried")'),
        ("Retrying graph tasks", 'is not imperative ("Retrying")'),
        ("Retries graph tasks", 'is not imperative ("Retries")'),
    ],
)
def test_other_subjects_are_named_with_their_fault(repository: Path, subject: str, fault: str) -> None:
    commit(repository, subject)
    commit(repository, "Add a subject that is right")
    finished = check(repository)
    assert finished.returncode == 1
    (line,) = finished.stderr.splitlines()
    assert line.startswith(".ci/commit-subjects: ") and line.endswith(f" {fault}: {subject}")
