"""Which functions may end their workers. Runs under PyPy and CPython."""

from __future__ import annotations

from scaler_scheduler.core.state.functions import HARMLESS_RESULTS, FunctionTable


def test_a_function_that_has_ended_a_worker_is_known_by_its_name():
    """A task that submits it pickles it in another way than its program, and each environment has its own."""
    table = FunctionTable()
    of_program, of_task, other = (
        table.add(digest, name, "plain", b"")
        for digest, name in ((b"1", "simulate"), (b"2", "simulate"), (b"3", "report"))
    )
    table.note_end_of_worker(of_program)
    later = table.add(b"4", "simulate", "plain", b"", "environment")
    assert [each.ends_workers for each in (of_program, of_task, later)] == [HARMLESS_RESULTS] * 3
    assert other.ends_workers == 0
