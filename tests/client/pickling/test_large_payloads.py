"""One warning about large data that travels with many tasks."""

from __future__ import annotations

import logging

import pytest
from tests.client.session.test_frame_limit import Scene

from scaler_client.pickling.functions import FunctionTable
from scaler_client.pickling.large_payloads import LARGE_ARGUMENTS, LargePayloads
from scaler_client.protocol.messages import Submit


@pytest.fixture(autouse=True)
def _warnings(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)


def test_large_arguments_of_many_tasks_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(limit=0)
    payload = bytes(10_000_000)
    for number in range(9):
        scene.sent(Submit([number], [1], [payload]))
    assert caplog.messages == []
    for number in range(9, 30):
        scene.sent(Submit([number], [1], [payload]))
    assert caplog.messages == [
        "10 tasks had arguments of 10 MB each. If they are the same, send them once: "
        "ref = client.send_object(value), and pass ref in their place"
    ]


def test_few_or_small_payloads_are_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    large = LargePayloads()
    large.count_frames([bytes(LARGE_ARGUMENTS - 1)] * 1000)
    large.count_frames([bytes(60_000_000)] * 2)
    large.count_frames([bytes(LARGE_ARGUMENTS)] * 7)
    assert caplog.messages == []
    large.count_frames([bytes(LARGE_ARGUMENTS)])
    assert len(caplog.messages) == 1


def test_a_large_function_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    table = FunctionTable(lambda number: None)

    def function_of(data: bytes) -> object:
        return lambda: len(data)

    table.get(function_of(bytes(5_000_000)))  # type: ignore[arg-type]
    assert caplog.messages == []
    for size in (12_000_000, 13_000_000):
        table.get(function_of(bytes(size)))  # type: ignore[arg-type]
    [message] = caplog.messages
    assert message.startswith("function test_a_large_function_is_warned_of.<locals>.function_of.<locals>.<lambda> ")
    assert "has 12 MB" in message and "client.send_object(value)" in message
