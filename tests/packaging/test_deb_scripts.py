"""The scripts of the Debian package."""

from __future__ import annotations

from pathlib import Path

POSTINST = Path(__file__).resolve().parents[2] / "packaging/deb/postinst"


def test_an_upgrade_unpacks_the_new_program_before_it_stops_the_old_scheduler() -> None:
    """Otherwise no scheduler runs while the file is unpacked, which takes seconds."""
    script = POSTINST.read_text()
    assert 0 < script.index("/usr/bin/scaler_scheduler --version") < script.index("deb-systemd-invoke")
