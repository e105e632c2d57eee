"""The whole screen, without a terminal."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from tests.top.stand_ins import FIRST_WORKER, text_of, view
from tests.top.write_screens import ADDRESS, FOLDER, render_screens

pytest.importorskip("urwid", reason="scaler_top needs urwid: pip install urwid")

from scaler_client.protocol.snapshots import WorkerState
from scaler_client.top.screen import render
from scaler_client.top.screen_state import ScreenState
from scaler_client.top.tables import row
from scaler_client.top.text_width import ELLIPSIS, width_of


def shown(state: ScreenState, width: int = 80, height: int = 24, workers: int = 7) -> list[str]:
    return text_of(render(state, view(workers), address=ADDRESS, message=("", ""), width=width, height=height))


def pressed(state: ScreenState, keys: list[str], width: int = 80, height: int = 24, workers: int = 7) -> list[str]:
    """The screen after these keys. It is drawn after each key, as in a terminal."""
    lines = shown(state, width, height, workers)
    for key in keys:
        state.handle_key(key)
        lines = shown(state, width, height, workers)
    return lines


def names(lines: list[str]) -> list[int]:
    """The numbers of the visible workers."""
    found = [re.match(rf" *(?:node|{ELLIPSIS})\S*-(\d+) ", line) for line in lines]
    return [int(each.group(1)) for each in found if each]


def test_expected_screens() -> None:
    made = render_screens()
    assert made == {name: (FOLDER / name).read_text("utf-8") for name in made}
    assert set(made) == {path.name for path in FOLDER.iterdir()}


@pytest.mark.parametrize("width", [80, 99, 117, 118, 179, 180, 260])
@pytest.mark.parametrize("height", [24, 37, 60])
@pytest.mark.parametrize("keys", [[], ["?"], ["enter"], ["tab"], ["tab", "tab"], ["o", "tab"], ["/", "x"]])
def test_screen_fits_any_terminal(width: int, height: int, keys: list[str]) -> None:
    lines = pressed(ScreenState(), keys, width, height, 40)
    assert len(lines) == height
    assert {width_of(line) for line in lines} == {width}
    assert not re.search(r"[\x00-\x1f\x7f]", "".join(lines))


@pytest.mark.parametrize("width, height", [(1, 1), (10, 3), (40, 10), (79, 12)])
def test_tiny_terminals_do_not_crash(width: int, height: int) -> None:
    for keys in ([], ["?"], ["enter"], ["tab"]):
        lines = pressed(ScreenState(), keys, width, height)
        assert len(lines) <= max(2, height) and all(width_of(line) == width for line in lines)


@pytest.mark.parametrize(
    "key, column, first, last",
    [
        ("n", "worker", 0, 6),
        ("c", "cpu", 5, 0),
        ("m", "rss", 6, 0),
        ("f", "free", 0, 6),
        ("w", "sent", 6, 0),
        ("d", "queued", 5, 0),
    ],
)
def test_keys_sort_and_reverse(key: str, column: str, first: int, last: int) -> None:
    state = ScreenState()
    state.sorted_by = "lag"
    lines = pressed(state, [key])
    assert f"[{column}]" in "".join(lines)
    assert (names(lines)[0], names(lines)[-1]) == (first, last)
    again = pressed(state, [key])
    assert f"[{column}]" in "".join(again)
    assert names(again)[0] == last or key == "d"
    assert names(pressed(state, [key])) == names(lines)


@pytest.mark.parametrize("key, column", [("C", "agt_cpu"), ("M", "agt_rss"), ("l", "lag")])
def test_agent_columns_sort(key: str, column: str) -> None:
    lines = pressed(ScreenState(), [key], workers=100)
    assert f"[{column}]" in "".join(lines)
    assert names(lines)[0] >= 96 or column != "lag"


def test_scrolling_reaches_both_ends() -> None:
    state = ScreenState()
    lines = pressed(state, ["n", "end"], workers=1000)
    assert names(lines)[-1] == 999 and any("990-1,000 of 1,000" in line for line in lines)
    assert names(pressed(state, ["up"] * 11, workers=1000))[0] == 988
    assert names(pressed(state, ["page up"], workers=1000))[0] < 988
    assert names(pressed(state, ["home"], workers=1000))[:2] == [0, 1]
    assert names(pressed(state, ["page down", "page down"], workers=1000))[-1] == 22
    state.handle_wheel(1)
    assert names(pressed(state, [], workers=1000))[-1] == 25


def test_filter_matches_names_hosts_tasks_and_capabilities() -> None:
    state = ScreenState()
    lines = pressed(state, ["n", "/", *"NODE-03 gpu"], workers=1000)
    assert any("Filter workers: NODE-03 gpu_" in line for line in lines)
    assert names(lines) == [100, 105, 110, 115, 120, 125]
    lines = pressed(state, ["enter"], workers=1000)
    assert any("6 of them with 'NODE-03 gpu'" in line for line in lines)
    assert "filter: NODE-03 gpu  Enter detail" in lines[-1]
    assert names(pressed(state, ["esc"], workers=1000))[0] == 0
    assert names(pressed(state, ["/", *"price", "backspace", *"ex"], workers=1000)) == []
    assert len(names(pressed(state, ["esc"], workers=1000))) == 11


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
@pytest.mark.parametrize(
    ("keys", "table", "words", "kept", "left_out"),
    [
        ([], "workers", "4711-3", "4711-3 ", "4711-5 "),
        (["tab"], "functions", "nightly", "a_function_wi", "4,567 "),
        (["tab", "tab"], "clients", "desk", "report.py[77]", "notebook"),
        (["tab", "o"], "objects", "numbers here", "numbers", "object 2"),
    ],
)
def test_filter_belongs_to_the_focused_table(
    size: tuple[int, int], keys: list[str], table: str, words: str, kept: str, left_out: str
) -> None:
    state = ScreenState()
    width, height = size
    for key in keys:  # on a large screen, objects come before functions
        pressed(state, [key], width, height)
    while state.focus != table:
        pressed(state, ["tab"], width, height)
    lines = pressed(state, ["/", *words], width, height)
    assert f" Filter {table}: {words}_" in lines[-1]
    lines = pressed(state, ["enter"], width, height)
    assert f"filter: {words}  Enter detail  / filter {table}" in lines[-1]
    start = next(row for row, line in enumerate(lines) if f" of them with '{words}'" in line)
    below = lines[start : start + 4]
    assert any(kept in line for line in below) and not any(left_out in line for line in below)
    lines = pressed(state, ["esc"], width, height)
    assert not any("of them with" in line for line in lines)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 50), (200, 60), (240, 70)])
def test_tables_use_all_lines(size: tuple[int, int]) -> None:
    """No table leaves out rows while lines beside or below it are empty."""
    width, height = size
    lines = shown(ScreenState(), width, height)
    cut = [line for line in lines if re.search(r"\d-\d+ of \d", line)]
    assert not cut
    for title in ("worker(s)", "function(s)", "client(s)"):
        assert any(title in line for line in lines) or size == (80, 24)
    assert any("object(s)" in line for line in lines) == (width >= 180)


def test_few_workers_leave_lines_to_other_tables() -> None:
    lines = shown(ScreenState(), 80, 24, 4)
    assert any("function(s)" in line for line in lines) and any("report.py" in line for line in lines)


def test_tab_visits_all_tables() -> None:
    state = ScreenState()
    seen = []
    for _ in range(5):
        pressed(state, ["tab"], 200, 60)
        seen.append(state.focus)
    assert seen == ["objects", "functions", "clients", "workers", "objects"]


def test_details_of_a_worker_are_updated() -> None:
    state = ScreenState()
    text = "\n".join(pressed(state, ["n", "down", "down", "enter"], height=40))
    for wanted in ("Worker node-00-4711-2", "host  node-00", "pid  5002", "0.1.0, python 3.11.7", "price_options"):
        assert wanted in text
    for wanted in ("for  500ms", "id  2, attempt 1", "client  report.py[77]@desk", "heard  300ms ago", "workers  7"):
        assert wanted in text
    assert state.detail == ("workers", FIRST_WORKER + 2)
    assert "Keys" in "\n".join(pressed(state, ["esc", "?"]))
    state.is_help, state.detail = False, ("workers", 4711)
    assert "this worker is not connected any more" in "\n".join(shown(state))
    assert names(pressed(state, ["esc"]))


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        (["tab", "enter"], ["Function price_options", "called  by its own name", "open  1,230,000", "mean  1.1ms",
                            "500ms  price_options#2 on node-00-4711-2"]),
        (["tab", "end", "enter"], ["Function a_function_with_a_name", "called  nightly", "none is known"]),
        (["tab", "tab", "enter"], ["Client report.py[77]@desk", "incarnation  1f4", "waiting  1,234,000",
                                   "others  40 with workers", "1.5s", "on node-00-4711-6", "numbers  8.0m, memory"]),
        (["tab", "tab", "down", "down", "enter"], ["Client tasks of node-00-4242-0",
                                                   "lives in  worker node-00-4711-0"]),
        (["tab", "tab", "s", "enter"], ["Share ana", "weight  3", "clients  2", "running  30, at most 40",
                                        "waiting  1,234,000, at most 2,000,000", "75.0% of the time of all shares"]),
        (["tab", "tab", "s", "s", "enter"], ["Limit db", "most  10", "running  10", "waiting  5,000"]),
        (["tab", "tab", "s", "s", "s", "enter"], ["Pool spot", "wanted  9 hosts", "failed  12 hosts",
                                                  "rests  too many hosts failed"]),
        (["tab", "tab", "s", "s", "s", "down", "enter"], ["Pool big", "fails for  1:30", "problem  no route"]),
        (
            ["tab", "o", "enter"],
            ["Object numbers", "client  report.py[77]@desk (1f4)", "tasks  1,000 open ones read it"],
        ),
    ],
)  # fmt: skip
def test_enter_shows_details_of_any_row(keys: list[str], wanted: list[str]) -> None:
    state = ScreenState()
    text = "\n".join(pressed(state, keys, height=40))
    assert [one for one in wanted if one not in text] == []
    assert "Esc back" in text and "Shortcuts" not in text
    pressed(state, ["esc"])
    assert state.detail is None and state.focus == pressed_focus(keys)


def pressed_focus(keys: list[str]) -> str:
    lower = ("clients", "shares", "limits", "pools")[keys.count("s")]
    return "objects" if "o" in keys else lower if keys.count("tab") == 2 else "functions"


def test_shares_limits_and_pools_have_tables() -> None:
    state = ScreenState()
    text = "\n".join(pressed(state, ["s"], 120, 40))
    assert "Total 2 share(s)" in text and "ben@desk" in text and "s limits" in text
    text = "\n".join(pressed(state, ["s"], 120, 40))
    assert "Total 2 limit(s)" in text and "0.5/s" in text
    text = "\n".join(pressed(state, ["s"], 120, 40))
    assert "Total 2 pool(s)" in text and "spot (rests)" in text and "big (fails)" in text
    assert "Total 3 client(s)" in "\n".join(pressed(state, ["s"], 120, 40))


def test_details_of_a_disconnected_client() -> None:
    state = ScreenState()
    state.detail = "clients", 4711
    assert "this client is not connected any more" in "\n".join(shown(state))


def test_letter_of_a_retiring_worker() -> None:
    shown = view()
    retiring = WorkerState.AGENT_CONNECTED | WorkerState.RETIRING
    shown.workers[0] = dataclasses.replace(shown.workers[0], state=retiring)
    state = ScreenState()
    state.sorted_by = "worker"
    lines = text_of(render(state, shown, address=ADDRESS, message=("", ""), width=80, height=24))
    assert [line for line in lines if "00-4711-0 " in line and " A---R " in line]
    state.handle_key("enter")
    assert "agent retires" in "\n".join(
        text_of(render(state, shown, address=ADDRESS, message=("", ""), width=80, height=24))
    )


def test_only_visible_rows_are_formatted(monkeypatch: pytest.MonkeyPatch) -> None:
    formatted = []

    def counted(layout: Any, one: Any, style: str = "") -> Any:
        formatted.append(one)
        return row(layout, one, style)

    monkeypatch.setattr("scaler_client.top.screen.row", counted)
    render(ScreenState(), view(1000), address=ADDRESS, message=("", ""), width=200, height=60)
    assert 40 < len(formatted) < 120, "a thousand workers cost no more than a screen of rows"


def test_screen_before_the_first_snapshot() -> None:
    lines = text_of(
        render(
            ScreenState(),
            None,
            address=ADDRESS,
            message=("bad", "waiting for a scheduler since 3 s"),
            width=80,
            height=24,
        )
    )
    assert ADDRESS in lines[0] and lines[1].strip() == "waiting for a scheduler since 3 s" and len(lines) == 24
