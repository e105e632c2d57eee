"""Questions about the hosts: one answer for several callers, and no endless wait."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scaler_client.io import host_questions
from scaler_client.io.host_questions import HostQuestions
from scaler_client.protocol.messages import Heartbeat, HeartbeatEcho, Host

HOSTS = [
    Host("node-7", "python 3.11.7", "1.0.0", 2, 1_700_000_000_500),
    Host("node-8", "python 3.12.1", "1.0.1", 0, 0),
    Host("node-9", "C++ 20", "0.3", 9, 0),
]
ECHO = HeartbeatEcho(5, hosts=HOSTS, packages=["numpy 1.26.4\n", "numpy 2.1.0\npyzmq 6.0\nscaler-client 1.0\n"])


class Asked:
    """Answers at once, with `answers` one after the other; None: never."""

    def __init__(self, *answers: HeartbeatEcho | None, can_ask: bool = True) -> None:
        self.answers = list(answers)
        self.can_ask = can_ask

    def __call__(self, on_answer: Callable[[HeartbeatEcho], None]) -> bool:
        answer = self.answers.pop(0)
        if answer is not None:
            on_answer(answer)
        return self.can_ask


def test_versions_by_host() -> None:
    questions = HostQuestions(Asked(ECHO))
    assert questions.versions(["numpy", "zmq", "Python", "scaler_client"]) == [
        ("node-7", {"scaler_client": "1.0.0", "Python": "3.11.7", "numpy": "2.1.0", "zmq": "6.0"}),
        ("node-8", {"scaler_client": "1.0.1", "Python": "3.12.1"}),
        ("node-9", {"scaler_client": "0.3"}),
    ]
    hosts = questions.get()
    assert hosts is not None and [host.clock_seconds for host in hosts] == [1_700_000_000.5, 0, 0]


def test_an_answer_is_used_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    questions = HostQuestions(Asked(ECHO, HeartbeatEcho(6)))
    assert len(questions.get() or ()) == 3 and len(questions.get() or ()) == 3
    monkeypatch.setattr(host_questions, "FRESH_SECONDS", 0.0)
    assert questions.get() == []


def test_an_answer_that_will_not_come() -> None:
    def ask(on_answer: Callable[[HeartbeatEcho | None], None]) -> bool:
        on_answer(None)
        return True

    assert HostQuestions(ask).get() is None


@pytest.mark.parametrize("asked", [Asked(None), Asked(None, can_ask=False)])
def test_without_an_answer_nothing_is_known(asked: Asked) -> None:
    questions = HostQuestions(asked)
    assert questions.get(0.0) is None and questions.get() is None, "it is not asked again at once"
    assert questions.versions(["numpy"]) == []


def test_a_heartbeat_asks_nothing_by_itself() -> None:
    assert not Heartbeat(1).wants_hosts
