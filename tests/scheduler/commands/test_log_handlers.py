"""A log that cannot be written: one line a minute on standard error, and later a count of the lost lines."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import sys

import pytest

from scaler_scheduler.commands import log_handlers, logs

STAMP = r"\[WARNING\]\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d{4}: "
REASON = os.strerror(errno.ENOSPC)


class Disk:
    """Replaces `os.write` by a disk with room for this many bytes. None: no limit."""

    def __init__(self, monkeypatch):
        self.room = None
        self._write = os.write
        monkeypatch.setattr(os, "write", self)

    def __call__(self, descriptor, data):
        if self.room is None or descriptor == sys.__stderr__.fileno():
            return self._write(descriptor, data)
        if not self.room:
            raise OSError(errno.ENOSPC, REASON)
        written = self._write(descriptor, data[: self.room])
        self.room -= written
        return written


@pytest.fixture
def disk(monkeypatch):
    return Disk(monkeypatch)


@pytest.fixture(autouse=True)
def own_root_logger():
    before, level = logging.root.handlers[:], logging.root.level
    yield
    for handler in set(logging.root.handlers) - set(before):
        handler.close()
    logging.root.handlers[:] = before
    logging.root.setLevel(level)


def messages(path):
    return [line.partition(": ")[2] for line in path.read_text().splitlines()]


def test_full_disk_is_reported_once_and_the_log_counts_lost_lines(tmp_path, disk, capfd):
    path = tmp_path / "log"
    logs.set_up("INFO", [str(path)])
    logging.info("first")
    disk.room = 0
    for number in range(1000):
        logging.info("lost %d", number)
    text = f"cannot write to the log {path}: {REASON}; 1 line is lost so far, "
    text += "logging continues when the log can be written again\n"
    out, err = capfd.readouterr()
    assert out == "" and re.fullmatch(STAMP + re.escape(text), err)
    disk.room = None
    logging.info("last")
    logging.info("after it")
    assert messages(path) == ["first", f"1000 lines were not written to this log: {REASON}", "last", "after it"]
    assert capfd.readouterr() == ("", "")


def test_partly_written_line_does_not_damage_the_next(tmp_path, disk, capfd):
    path = tmp_path / "log"
    logs.set_up("INFO", [str(path)])
    disk.room = 10
    logging.info("torn")
    disk.room = None
    logging.info("last")
    assert messages(path) == ["", f"1 line was not written to this log: {REASON}", "last"]
    assert path.read_text().startswith("[INFO]2")


def test_lost_lines_are_reported_once_a_minute(capfd):
    now = 0.0
    losses = log_handlers.LostLines("/log", clock=lambda: now)
    for second in range(0, 180, 10):
        now = float(second)
        losses.add(OSError(errno.ENOSPC, REASON))
        if second == 100:
            losses.reset()
    said = [re.search(r"; (.*) lost so far", line).group(1) for line in capfd.readouterr().err.splitlines()]
    assert said == ["1 line is", "7 lines are", "2 lines are"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_full_standard_output(tmp_path, monkeypatch, capfd):
    path = tmp_path / "log"
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        logs.set_up("INFO", ["/dev/stdout", str(path)])
        for number in range(1000):
            logging.info("%d", number)
    assert messages(path) == [str(number) for number in range(1000)]
    assert re.fullmatch(STAMP + f"cannot write to the log /dev/stdout: {REASON}; .*\n", capfd.readouterr().err)


def test_full_standard_error_raises_nothing(monkeypatch):
    class Full:
        def fileno(self):
            raise OSError(errno.ENOSPC, REASON)

    monkeypatch.setattr(sys, "__stderr__", Full())
    log_handlers.LostLines("/dev/stderr").add(OSError(errno.ENOSPC, REASON))
    monkeypatch.setattr(sys, "__stderr__", None)
    log_handlers.LostLines("/dev/stderr").add(OSError(errno.ENOSPC, REASON))


def test_earlier_prints_come_before_a_line(tmp_path, monkeypatch):
    path = tmp_path / "out"
    with path.open("w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        logs.set_up("INFO", ["/dev/stdout"])
        print("printed")
        logging.info("logged")
    assert messages(path) == ["", "logged"] and path.read_text().startswith("printed\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_handlers_of_a_configuration_file_report_once_a_minute(tmp_path, capfd):
    path = tmp_path / "logging"
    handler = {"class": "logging.FileHandler", "filename": "/dev/full"}
    loggers = {"quiet": {"handlers": ["file"], "propagate": False}}
    path.write_text(json.dumps({"version": 1, "handlers": {"file": handler}, "loggers": loggers}))
    logs.set_up("INFO", [], str(path))
    logger = logging.getLogger("quiet")
    for number in range(1000):
        logger.warning("%d", number)
    assert re.fullmatch(STAMP + f"cannot write to the log /dev/full: {REASON}; .*\n", capfd.readouterr().err)
    logger.warning("%d", "no number")  # wrong arguments are still reported with a traceback
    assert "--- Logging error ---" in capfd.readouterr().err
    logger.handlers.clear()


def test_message_with_wrong_arguments_is_shown(tmp_path, capsys):
    logs.set_up("INFO", [str(tmp_path / "log")])
    logging.info("%d", "no number")
    assert "--- Logging error ---" in capsys.readouterr().err
    assert (tmp_path / "log").read_text() == ""
