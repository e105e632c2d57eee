"""What is kept of the output of an installer that has failed."""

from __future__ import annotations

from scaler_worker.packages.installer import MAX_ERROR_LENGTH, MAX_ERROR_LINES, error_text


def test_errors_come_first() -> None:
    output = "Looking in indexes\nERROR: no version of numpyy\nERROR: No matching distribution\n\nnotice: a new pip\n"
    errors = ":\nERROR: no version of numpyy\nERROR: No matching distribution\n"
    assert error_text(output) == errors + "Looking in indexes\nnotice: a new pip"


def test_an_error_before_many_other_lines() -> None:
    output = "error: at the beginning\n" + "".join(f"line {number}\n" for number in range(2 * MAX_ERROR_LINES))
    lines = error_text(output).splitlines()
    assert lines[1] == "error: at the beginning"
    assert lines[-1] == f"line {2 * MAX_ERROR_LINES - 1}"


def test_the_end_of_long_lines_is_kept() -> None:
    text = error_text("ERROR: short\n" + "x" * 2 * MAX_ERROR_LENGTH + " the end\n")
    assert text.startswith(":\nERROR: short\nx") and text.endswith("x the end")
    assert len(text) <= MAX_ERROR_LENGTH + 3
    text = error_text("ERROR: " + "x" * 2 * MAX_ERROR_LENGTH + " the end\nbefore\n")
    assert text.endswith("x the end")


def test_no_output() -> None:
    assert error_text("\r\n \n") == ""
