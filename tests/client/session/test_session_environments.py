"""Environments in the session: named before their tasks, again after a join, and their contents on request."""

from __future__ import annotations

import gc

from scaler_client.environments.environment import MESSAGE_BYTES, Environment
from scaler_client.environments.manifest import Manifest, ModuleFile, digest_of
from scaler_client.pickling.functions import FunctionTable
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Contents, ContentsWanted, Hello, HelloWanted, Role, Submit, Welcome
from scaler_client.session.session import Session


def environment(*contents: bytes) -> Environment:
    names = [digest_of(content) for content in contents]
    files = tuple(ModuleFile(f"m{place}.py", name) for place, name in enumerate(names))
    return Environment(Manifest(files), dict(zip(names, contents)))


def joined(scheduler: int = 7) -> Session:
    session = Session(Hello(Role.CLIENT, 1, "3", "0", "host", 1), "sim", 1.0, 60.0, 0.0)
    session.handle(welcome(scheduler), 0.0)
    session.pop_outgoing()
    return session


def welcome(scheduler: int) -> Welcome:
    return Welcome(1, "0", scheduler, 60.0, credit=1 << 20)


class Sink:
    """A future of a task."""

    def __init__(self, function: object) -> None:
        self.function = function
        self.options = None
        self.parent = None

    def row(self, _: int) -> tuple[object, bytes]:
        return self.function, b"call"


def kinds(session: Session) -> list[str]:
    return [type(message).__name__ for message in session.pop_outgoing()]


def test_an_environment_goes_before_its_tasks_and_again_after_a_join() -> None:
    session, table, own = joined(), FunctionTable(lambda number: None), environment(b"x")
    table.set_environment(own)
    session.use_environment(own)
    function = table.get(len)
    sink = Sink(function)
    session.submit_with_options(sink, function, b"call")  # type: ignore[arg-type]
    sent = session.pop_outgoing()
    assert [type(message) for message in sent] == [messages.Environment, messages.Function, Submit]
    assert sent[0] == own.message()
    assert isinstance(sent[1], messages.Function) and sent[1].environment == own.name
    session.handle(HelloWanted(), 1.0)
    session.pop_outgoing()
    session.handle(welcome(8), 1.0)
    assert kinds(session) == ["Environment", "Function", "Submit"]


def test_contents_on_request() -> None:
    session, own = joined(), environment(b"x", b"y")
    session.use_environment(own)
    session.pop_outgoing()
    session.handle(ContentsWanted([digest_of(b"y"), digest_of(b"unknown")]), 1.0)
    assert session.pop_outgoing() == [Contents([b"y"])]
    session.handle(ContentsWanted([digest_of(b"unknown")]), 1.0)
    assert session.pop_outgoing() == []


def test_many_contents_travel_in_several_messages() -> None:
    large = [bytes([number]) * (MESSAGE_BYTES // 2) for number in range(5)]
    session, own = joined(), environment(*large)
    session.use_environment(own)
    session.pop_outgoing()
    session.handle(ContentsWanted([digest_of(content) for content in large]), 1.0)
    sent = session.pop_outgoing()
    assert [len(message.payloads) for message in sent if isinstance(message, Contents)] == [2, 2, 1]


def test_an_environment_without_functions_is_forgotten() -> None:
    session, own = joined(), environment(b"x")
    session.use_environment(own)
    session.pop_outgoing()
    del own
    gc.collect()
    session.handle(ContentsWanted([digest_of(b"x")]), 1.0)
    assert session.pop_outgoing() == []


def test_functions_keep_the_environment_that_they_had() -> None:
    table, first, second = FunctionTable(lambda number: None), environment(b"1"), environment(b"2")
    plain = table.get(len)
    table.set_environment(first)
    before = table.get(len)
    assert table.get(len) is before and before is not plain and plain.environment == ""
    table.set_environment(second)
    after = table.get(len)
    assert (before.environment, after.environment) == (first.name, second.name)
    assert len({plain.number, before.number, after.number}) == 3
    table.set_environment(first)
    assert table.get(len) is before


def test_submitted_tasks_hold_the_contents_of_their_environment() -> None:
    session, table = joined(), FunctionTable(lambda number: None)
    own = environment(b"x")
    table.set_environment(own)
    session.use_environment(own)
    function = table.get(len)
    table.set_environment(environment(b"y"))
    del own
    gc.collect()
    session.pop_outgoing()
    session.handle(ContentsWanted([digest_of(b"x")]), 1.0)
    assert session.pop_outgoing() == [Contents([b"x"])] and function.holder is not None
