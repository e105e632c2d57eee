"""Short numbers, texts of a fixed width, and the messages of the banner."""

from __future__ import annotations

import json

import pytest
from tests.top.stand_ins import Reader, view

pytest.importorskip("urwid", reason="scaler_top needs urwid: pip install urwid")

from scaler_client.monitor.reader import Presence
from scaler_client.top import number_format
from scaler_client.top.as_json import as_json
from scaler_client.top.banner import Banner
from scaler_client.top.text_width import ELLIPSIS, align_left, align_right, clean, width_of


@pytest.mark.parametrize(
    "function, number, text",
    [
        (number_format.count, 283701, "283,701"),
        (number_format.count, 12_345_678, "12M"),
        (number_format.size, 0, "0"),
        (number_format.size, 1023, "1023b"),
        (number_format.size, 136_418_099, "130.1m"),
        (number_format.size, 3 << 40, "3.0t"),
        (number_format.percent, 12.34, "12.3%"),
        (number_format.percent, 1600.0, "1600%"),
        (number_format.rate, 0.0, ""),
        (number_format.rate, 1.5, "1.5"),
        (number_format.rate, 1234.4, "1,234"),
        (number_format.duration, 0.0, "0"),
        (number_format.duration, 0.0000123, "12us"),
        (number_format.duration, 0.0007, "0.7ms"),
        (number_format.duration, 0.035, "35ms"),
        (number_format.duration, 1.5, "1.5s"),
        (number_format.duration, 123.4, "2:03"),
        (number_format.clock, 3723, "1:02:03"),
        (number_format.clock, 3 * 86400 + 4 * 3600, "3d04h"),
    ],
)
def test_numbers_are_short(function, number, text):
    assert function(number) == text


@pytest.mark.parametrize("number", [0, 999, 1000, 9949, 9950, 12345, 999_499, 999_500, 1_234_567, 10**12, 2**63])
def test_counts_fit_their_width(number):
    for width in (4, 5, 7):
        assert len(number_format.count(number, width)) <= width, number_format.count(number, width)


def test_texts_fit_their_width_and_have_no_control_characters():
    assert align_left("abc", 5) == "abc  " and align_right("abc", 5) == "  abc"
    assert align_left("abcdef", 4) == f"abc{ELLIPSIS}" and align_right("abcdef", 4) == f"{ELLIPSIS}def"
    for text in ("数値計算", "a\tb", "\x1b[2J", "e\u0301clair", "\u202egnol", "\ud800x"):
        for width in range(8):
            assert width_of(align_left(text, width)) == width_of(align_right(text, width)) == width
        assert "\x1b" not in clean(text) and "\u202e" not in clean(text) and "\t" not in clean(text)


def test_banner_messages():
    banner = Banner()
    assert banner.text(Reader(Presence.UNKNOWN, 10.0), 13.0, "there is no /x yet") == (
        "bad",
        "waiting for a scheduler since 3 s: there is no /x yet",
    )
    there = Reader(Presence.UP, 14.0)
    banner.update(there)
    assert banner.text(there, 100.0, "") == ("", "")
    gone = Reader(Presence.DOWN, 100.0)
    banner.update(gone)
    assert banner.text(gone, 112.4, "") == ("bad", "no scheduler for 12 s")
    back = Reader(Presence.UP, 130.0, schedulers=2)
    banner.update(back)
    banner.update(back)
    assert banner.text(back, 131.0, "") == ("good", "scheduler back after 30 s, restarted")
    assert banner.text(back, 141.0, "") == ("", "")
    other = Reader(Presence.INCOMPATIBLE)
    other.problem = "it has protocol version 9"
    assert banner.text(other, 0.0, "") == ("bad", "it has protocol version 9")


def test_json_has_all_data():
    known = json.loads(json.dumps(as_json(view())))
    assert known["scheduler"]["resident_bytes"] == 136_418_099 and known["rates_seconds"] == 1.0
    assert known["tasks"]["waiting"] == 1234567 and known["tasks"]["resolved_rate"] == 2500
    assert known["sent"]["dispatch"] == {"total": 39240, "rate": 120.0}
    worker = known["workers"][2]
    assert (worker["name"], worker["state"], worker["task"]["name"]) == ("node-00-4711-2", "AT---", "price_options")
    assert (worker["incarnation"], worker["agent"]) == ("1002", "900")
    assert (worker["task"]["client"], worker["task"]["id"]) == ("500", "2")
    assert known["scheduler"]["incarnation"] == "7" and known["clients"][1]["worker"] == "1000"
    assert [row["state"] for row in known["objects"]] == ["in_memory", "9"]
    assert {"agents", "clients", "functions", "dropped", "received"} < set(known)
