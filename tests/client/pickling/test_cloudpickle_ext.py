"""Cached functions (functools.lru_cache) that a worker can't import, and the names of source files."""

from __future__ import annotations

import functools
import operator
import subprocess
import sys
import types
from typing import Any

import cloudpickle
import pytest

from scaler_client.pickling import cloudpickle_ext
from scaler_client.pickling.serializer import loads


def through(value: Any) -> Any:
    return loads(cloudpickle_ext.dumps(value))


def test_a_cached_local_function() -> None:
    @functools.lru_cache(maxsize=3, typed=True)
    def half(x: int) -> float:
        """Of a number."""
        return x / 2

    half(4)
    back = through(half)
    assert back(4) == 2.0 and back.__doc__ == "Of a number."
    assert back.cache_parameters() == {"maxsize": 3, "typed": True}
    assert back.cache_info().misses == 1, "it has a cache of its own"


def test_a_recursive_cached_function() -> None:
    @functools.cache
    def fibonacci(n: int) -> int:
        return n if n < 2 else int(fibonacci(n - 1) + fibonacci(n - 2))

    assert through(fibonacci)(80) == 23416728348467685
    assert through(lambda n: fibonacci(n) + 1)(80) == 23416728348467686


def test_a_cached_function_of_a_module_is_pickled_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("scaler_test_module")
    exec("import functools\n\n@functools.lru_cache\ndef twice(x):\n    return 2 * x\n", module.__dict__)
    monkeypatch.setitem(sys.modules, "scaler_test_module", module)
    assert through(module.twice) is module.twice
    cloudpickle.register_pickle_by_value(module)
    try:
        assert through(module.twice) is not module.twice
        assert through(module.twice)(4) == 8
    finally:
        cloudpickle.unregister_pickle_by_value(module)
    hidden = functools.lru_cache(operator.neg)  # its name is that of what it caches
    assert through(hidden)(3) == -3


PROGRAM = """
import functools, pickle, subprocess, sys
from scaler_client.pickling import cloudpickle_ext

@functools.lru_cache
def square(x):
    return x * x

@functools.cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

def both(x):
    return square(x), fibonacci(x)

elsewhere = "import pickle, sys; print([fn(10) for fn in pickle.load(sys.stdin.buffer)])"
subprocess.run([sys.executable, "-c", elsewhere], input=cloudpickle_ext.dumps([square, fibonacci, both]), check=True)
"""


def test_code_keeps_the_name_of_its_source_file() -> None:
    def outer() -> Any:
        return lambda: "<dynamic-code>"

    assert through(outer).__code__.co_filename == __file__
    assert through(outer)().__code__.co_filename == __file__ and through(outer)()() == "<dynamic-code>"


def test_cached_functions_of_main_work_in_another_process() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("[100, 55, (100, 55)]\n", "")
