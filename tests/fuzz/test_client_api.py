"""The client's public API with arbitrary values: the fuzzer's target, with bytes from seeds."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Iterator

import pytest
from tests.fuzz.drawing import Drawing

if sys.implementation.name == "pypy":
    pytest.skip("the client's library is for CPython", allow_module_level=True)
pytest.importorskip("capnp", reason="pycapnp is compiled for CPython, from 3.10 on with the client's library")

from tests.fuzz import client_api
from tests.fuzz.client_api import ClientCalls

from scaler_client.pickling import functions
from scaler_client.protocol import encode, wire
from scaler_client.session import frame_limit

SEEDS = 300
BYTES = 160


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    yield
    client_api.close()


def run(seed: int) -> ClientCalls:
    calls = ClientCalls(Drawing(random.Random(seed).randbytes(BYTES)))
    # At the limit of recursion, which some values reach, a finalizer called by the garbage collector is a warning.
    gc.disable()
    try:
        calls.run()
    finally:
        gc.enable()
    return calls


def test_whatever_is_handed_over_fails_there_or_works() -> None:
    raised = set()
    for seed in range(SEEDS):
        try:
            raised.update(map(type, run(seed).raised))
        except BaseException as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
    assert {TypeError, ValueError} <= raised


def test_an_encoding_error_that_ends_the_thread_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without checks and escapes of text, and with uncaught errors in encoding, some seed fails."""
    monkeypatch.setattr(encode, "escaped", lambda text: text)
    monkeypatch.setattr(functions, "escaped", lambda text: text)
    monkeypatch.setattr(frame_limit.FrameLimit, "encode", lambda self, message: [wire.encode(message)])
    client_api.close()  # a new client has sent no function yet
    with pytest.raises(AssertionError, match="I/O thread"):
        for seed in range(SEEDS):
            run(seed)
    client_api.close()
