"""The traceback of a task shows source lines that only the client's process has."""

from __future__ import annotations

import linecache
import subprocess
import sys

import pytest

from scaler_client.errors import RemoteTraceback, TaskTimeoutError
from scaler_client.pickling.failed_answers import text_error, with_source_lines

TEXT = """Traceback (most recent call last):
  File "/tmp/ipykernel_1/2.py", line 2, in fit
  File "/usr/lib/known.py", line 5, in known
    known = 5
  File "/gone/away.py", line 1, in away
ValueError: bad
"""


def test_lines_of_notebook_cells_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["def fit(x):\n", "    return 1 / x\n"]
    monkeypatch.setitem(linecache.cache, "/tmp/ipykernel_1/2.py", (2, None, lines, "/tmp/ipykernel_1/2.py"))
    cell = '  File "/tmp/ipykernel_1/2.py", line 2, in fit\n'
    assert with_source_lines(TEXT) == TEXT.replace(cell, cell + "    return 1 / x\n")


def test_lines_of_a_program_on_the_command_line_are_shown() -> None:
    program = """
from scaler_client.pickling.failed_answers import with_source_lines
def fit(x):
    return 1 / x
print(with_source_lines('  File "<string>", line 4, in fit\\nZeroDivisionError: division by zero\\n'), end="")
"""
    shown = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert shown == '  File "<string>", line 4, in fit\n    return 1 / x\nZeroDivisionError: division by zero\n'


def test_other_texts_stay_as_they_are() -> None:
    for text in ("", "remote frames\n", TEXT, 'File "x", line 1\n\n', "a\nb"):
        assert with_source_lines(text) == text


def test_a_task_beyond_its_time_limit_has_the_traceback_of_where_it_was() -> None:
    text = f"slow#0: stopped after its time limit of 1 s\n{TEXT}"
    error = text_error(TaskTimeoutError, text, "of task slow#0")
    assert str(error).startswith("slow#0: stopped after its time limit of 1 s (")
    assert isinstance(error.__cause__, RemoteTraceback) and "known = 5" in str(error.__cause__)
    assert text_error(TaskTimeoutError, "slow#0: stopped", "").__cause__ is None
