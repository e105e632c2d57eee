"""Steps that packaging/setup.sh skips."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[2] / "packaging" / "setup.sh"


@pytest.mark.parametrize("browser", ["chromium", "google-chrome", None])
def test_one_browser_is_enough(tmp_path: Path, browser: str | None) -> None:
    if browser is not None:
        (tmp_path / browser).touch(mode=0o700)
    found = re.search(r"^setup_browser\(\) \{\n.*?^\}\n", SETUP.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    script = "may_install() { echo installs; exit; }\n" + found[0] + "setup_browser"
    ran = subprocess.run(
        ["/bin/bash", "-uo", "pipefail", "-c", script],
        env={"PATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ran.stdout, ran.stderr) == ("" if browser else "installs\n", "")
