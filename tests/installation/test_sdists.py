"""The files that `packaging/distributions/build.sh` wants in each sdist exist. `make package` checks the sdists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"scheduler": "scheduler_daemon", "client": "client_lib"}
WANTED = re.findall(
    r'^holds "\$DIST/scaler_(\w+)-\$VERSION\.tar\.gz" (.+)$',
    (ROOT / "packaging" / "distributions" / "build.sh").read_text("utf-8"),
    re.MULTILINE,
)


def test_both_distributions_with_a_schema_are_checked() -> None:
    assert {name for name, _ in WANTED} == set(FOLDERS)


@pytest.mark.parametrize(("name", "paths"), WANTED)
def test_the_wanted_files_exist(name: str, paths: str) -> None:
    for path in paths.split():
        assert (ROOT / FOLDERS[name] / path).is_file()
