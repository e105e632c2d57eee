"""Exported functions, called with payloads of clients in any language."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Iterator

import pytest

from scaler_client.nested import task_host
from scaler_client.protocol.messages import Function, Outcome
from scaler_worker.fork_server.preload import PreloadError, error_summary
from scaler_worker.objects.cache import InputLostError
from scaler_worker.worker.executor import Executor
from scaler_worker.worker.exported_functions import ExportedFunctions, exported_kinds


def fail(text: str) -> None:
    raise ValueError(text)


@pytest.fixture
def failed() -> list[str]:
    """Lines that say why tasks have failed."""
    return []


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch, failed: list[str]) -> Iterator[ExportedFunctions]:
    module = types.ModuleType("pricing")
    module.__dict__.update(
        price=lambda currency, number: {"currency": currency, "sum": 2.5 * number},
        reverse=lambda data: data[::-1],
        collect=lambda *values: list(values),
        fail=fail,
        leave=lambda: sys.exit(3),
        nan=lambda: float("nan"),
        constant=7,
    )
    monkeypatch.setitem(sys.modules, "pricing", module)
    names = ("price", "reverse", "fail", "leave", "nan")
    places = {name: f"pricing:{name}" for name in names}
    exported = ExportedFunctions(places, report_failure=lambda line, _traceback: failed.append(line))
    exported.load()
    yield exported


@pytest.mark.parametrize(
    ("kind", "payload", "result"),
    [
        ("named json price", '["Zoë", 2]'.encode(), '{"currency":"Zoë","sum":5.0}'.encode()),
        ("named json price", memoryview(b'["EUR", 0]'), b'{"currency":"EUR","sum":0.0}'),
        ("named raw reverse", b"\0\xff", b"\xff\0"),
        ("named json reverse", b'["abc"]', b'"cba"'),
        pytest.param(
            "named msgpack price",
            b"\x92\xa1x\x02",
            b"\x82\xa8currency\xa1x\xa3sum\xcb\x40\x14\0\0\0\0\0\0",
            marks=pytest.mark.main_environment,
        ),
    ],
)
def test_values(exported: ExportedFunctions, kind: str, payload: bytes, result: bytes, failed: list[str]) -> None:
    if "msgpack" in kind:
        pytest.importorskip("msgpack")
    assert exported.find(kind)(payload) == (Outcome.VALUE, result)
    assert not failed


@pytest.mark.parametrize(
    ("kind", "payload", "outcome", "text"),
    [
        ("named json fail", b'["no such curve"]', Outcome.EXCEPTION, "ValueError: no such curve"),
        ("named json leave", b"[]", Outcome.EXCEPTION, "SystemExit: 3"),
        ("named json price", b"{", Outcome.EXCEPTION, "JSONDecodeError: Expecting"),
        ("named json price", b'{"a": 1}', Outcome.EXCEPTION, "TypeError: the arguments must be an array, not dict"),
        ("named json price", b"[1]", Outcome.EXCEPTION, "TypeError: "),
        ("named json nan", b"[]", Outcome.RESULT_FAILED, "the result of nan, of type float, can't be sent as json: "),
        ("named raw reverse", b"ab", Outcome.VALUE, "ba"),
        ("named raw fail", b"ab", Outcome.EXCEPTION, "ValueError: b'ab'"),
        ("named json gone", b"[]", Outcome.FUNCTION_FAILED, "this worker does not offer named json gone"),
        ("named xml price", b"", Outcome.FUNCTION_FAILED, "this worker does not offer named xml price"),
    ],
)
def test_failures_are_returned_as_text(
    exported: ExportedFunctions, failed: list[str], kind: str, payload: bytes, outcome: Outcome, text: str
) -> None:
    found, answer = exported.find(kind)(payload)
    assert found == outcome
    first, *more = bytes(answer).decode().splitlines()
    assert text in first
    assert [line for line in failed if text in line] == failed
    assert len(failed) == (outcome != Outcome.VALUE)
    assert "scaler_worker/worker/exported_functions.py" not in "".join(more), "the traceback is the user's"


def test_an_executor_runs_them_without_unpickling(exported: ExportedFunctions) -> None:
    functions = {1: Function(1, "price", "named json price", b""), 2: Function(2, "x", "named json x", b"")}
    executor = Executor(functions, exported=exported)
    assert executor.run(1, b'["EUR", 4]') == (Outcome.VALUE, b'{"currency":"EUR","sum":10.0}')
    assert executor.run(2, b"[]") == (Outcome.FUNCTION_FAILED, b"this worker does not offer named json x")
    assert Executor(functions).run(1, b"[]")[0] == Outcome.FUNCTION_FAILED


@pytest.mark.parametrize(
    ("kind", "payload", "inputs", "result"),
    [
        ("named json list", b"[1]", [b'"a"', b"[2, 3]"], b'[1,"a",[2,3]]'),
        ("named json list", memoryview(b"[]"), [b"null"], b"[null]"),
        ("named raw bytes", memoryview(b"ab"), [b"cd", b""], b"abcd"),
    ],
)
@pytest.mark.usefixtures("exported")
def test_inputs_are_further_arguments(kind: str, payload: bytes, inputs: list[bytes], result: bytes) -> None:
    exported = ExportedFunctions({"list": "pricing:collect", "bytes": "builtins:bytes"}, lambda: inputs)
    exported.load()
    assert exported.find(kind)(payload) == (Outcome.VALUE, result)


def test_an_input_that_is_lost(failed: list[str]) -> None:
    def lose() -> list[bytes]:
        raise InputLostError("object 7, which the task reads, is lost: a test")

    exported = ExportedFunctions({"bytes": "builtins:bytes"}, lose, lambda line, _traceback: failed.append(line))
    exported.load()
    text = b"bytes: object 7, which the task reads, is lost: a test"
    assert exported.find("named raw bytes")(b"") == (Outcome.INPUT_LOST, text)
    assert len(failed) == 1 and "object 7" in failed[0]


def test_an_input_that_the_codec_can_not_decode(failed: list[str]) -> None:
    exported = ExportedFunctions({"len": "builtins:len"}, lambda: [b"\x80"])
    exported.load()
    assert exported.find("named json len")(b"[]")[0] == Outcome.EXCEPTION


@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ("no_such_module:f", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("pricing:f", "AttributeError: module 'pricing' has no attribute 'f'"),
        ("pricing:constant", "TypeError: a int can't be called"),
    ],
)
def test_a_function_that_can_not_be_exported_is_one_line(
    exported: ExportedFunctions, place: str, complaint: str
) -> None:
    with pytest.raises(PreloadError) as caught:
        ExportedFunctions({"f": place}).load()
    line = error_summary(caught.value)
    assert line.startswith(f"--offer {place}: {complaint}") and line.count("PYTHONPATH") == (place[0] == "n")


def test_exported_kinds_have_all_codecs() -> None:
    kinds = exported_kinds(["a", "b c"])
    assert {"named json a", "named raw a", "named json b c", "named raw b c"} <= set(kinds)
    assert not exported_kinds([])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_process_forked_by_an_exported_function_ends() -> None:
    exported = ExportedFunctions({"leave": "sys:exit"})
    exported.load()
    pid = os.fork()
    if pid == 0:
        task_host.is_forked_by_task = True
        exported.find("named json leave")(b"[7]")
        os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
