from __future__ import annotations

from pathlib import Path

import pytest
from tests.packaging.fake_file import Starter, make_file


@pytest.fixture(scope="session")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_file(tmp_path_factory.mktemp("one file"))


@pytest.fixture
def starter(file: Path, tmp_path: Path) -> Starter:
    return Starter(file, tmp_path / "temporary")
