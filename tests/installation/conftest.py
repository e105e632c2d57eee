"""The documents of `make man`, written once for all tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def write_documents(folder: Path) -> Path:
    environ = {**os.environ, "SOURCE_DATE_EPOCH": "1767225600"}
    subprocess.run([sys.executable, ROOT / "packaging" / "documents", folder], env=environ, check=True, timeout=60)
    return folder


@pytest.fixture(scope="session")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_documents(tmp_path_factory.mktemp("documents"))
