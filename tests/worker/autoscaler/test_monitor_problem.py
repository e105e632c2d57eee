"""When the autoscaler logs that it hears nothing of the scheduler."""

from __future__ import annotations

from scaler_worker.autoscaler.service import PROBLEM_SECONDS, MonitorProblem


def test_a_problem_is_told_once_when_it_has_lasted() -> None:
    problem = MonitorProblem()
    late = 100 + PROBLEM_SECONDS
    assert problem.new("there is no socket", 100) == ""
    assert problem.new("there is no socket", late - 0.1) == ""
    assert problem.new("there is no socket", late) == "there is no socket"
    assert problem.new("there is no socket", late + 60) == ""
    assert problem.new("permission denied", late + 60) == "", "another problem has to last as well"
    assert problem.new("", late + 61) == problem.new("", late + 600) == ""
    assert problem.new("permission denied", late + 601) == ""
    assert problem.new("permission denied", late + 601 + PROBLEM_SECONDS) == "permission denied"
