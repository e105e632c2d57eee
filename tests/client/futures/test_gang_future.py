"""Futures of gangs: the answer of all members, bad answers, ids, and what a gang can't be."""

from __future__ import annotations

import pickle
from struct import pack
from typing import Any, cast

import pytest
from tests.client.session.stand_ins import SinkRecorder, joined_session, sent_without_functions, submit

from scaler_client.api.task_options import TaskOptions, checked_gang
from scaler_client.futures.future import FutureOwner
from scaler_client.futures.gang_future import GangFunction, GangFuture
from scaler_client.pickling.functions import Function
from scaler_client.pickling.references import STAND_INS, InputCollector
from scaler_client.pickling.serializer import dump_exception, dumps
from scaler_client.protocol.messages import Options, Outcome


def packed(*values: Any) -> bytes:
    results = [dumps(value) for value in values]
    return pack(f"<{len(results)}I", *map(len, results)) + b"".join(results)


def future(size: int = 3) -> GangFuture[Any]:
    function, options = Function(1, "f", b"code"), Options(gang_size=size)
    return GangFuture(cast(FutureOwner, None), function, b"payload", options=options, parent=None)


def test_the_result_is_a_list_by_rank() -> None:
    gang = future()
    assert gang.row(0)[0].payload == b"code"
    gang.resolve(0, Outcome.VALUE, packed("a", None, [1] * 1000))
    assert gang.result() == ["a", None, [1] * 1000]


@pytest.mark.parametrize("answer", [b"", packed(1, 2), packed(1, 2, 3) + b"x", packed(1, 2, 3)[:-1], bytes(11)])
def test_an_answer_of_another_form(answer: bytes) -> None:
    gang = future()
    gang.resolve(0, Outcome.VALUE, answer)
    with pytest.raises(ValueError, match="is none of a gang of 3 tasks"):
        gang.result()


def test_the_failure_of_a_member_is_that_of_the_gang() -> None:
    gang = future()
    gang.resolve(0, Outcome.EXCEPTION, dump_exception(KeyError("k"), "a traceback"))
    with pytest.raises(KeyError):
        gang.result()


def test_a_result_that_can_not_be_unpickled() -> None:
    value, error = GangFunction(Function(1, "f", b"code"), 1).read_answer(0, pack("<I", 3) + b"bad")
    assert value is None and "result of f" in str(error)


def test_it_is_no_argument() -> None:
    with pytest.raises(TypeError, match="can't be an argument: pass its result"):
        STAND_INS[GangFuture](future(), InputCollector(None))
    with pytest.raises(TypeError, match="can't be pickled: pass its result"):
        pickle.dumps(future())


def test_members_have_the_ids_behind_that_of_the_gang() -> None:
    session = joined_session()
    gang = SinkRecorder(options=Options(gang_size=4))
    assert submit(session, SinkRecorder()) == 0
    assert [session.submit_with_options(gang, gang.function, b"x") for _ in range(2)] == [1, 5]
    assert submit(session, SinkRecorder()) == 9
    assert [message.ids for message in sent_without_functions(session)] == [[0], [1, 5], [9]]  # type: ignore[union-attr]


def test_bad_sizes_and_options() -> None:
    checked_gang(1, TaskOptions())
    checked_gang(1024, TaskOptions())
    for size in (0, -1, 1025):
        with pytest.raises(ValueError, match=f"size must be 1 to 1024, not {size}"):
            checked_gang(size, TaskOptions())
    for wrong in (True, 2.0, "2", None):
        with pytest.raises(TypeError, match="size must be a whole number"):
            checked_gang(wrong, TaskOptions())
    with pytest.raises(ValueError, match="can't have the option keep"):
        checked_gang(2, TaskOptions(keep=True))
    with pytest.raises(ValueError, match="can't have the option profiling"):
        checked_gang(2, TaskOptions(profiling=True))
