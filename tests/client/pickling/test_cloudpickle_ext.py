"""Cached functions (functools.lru_cache) that a worker can't import, and the names of source files."""

from __future__ import annotations

import functools
import operator
import subprocess
import sys
import types
from pathlib import Path
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


MAIN = '''
import dataclasses, functools, pickle, sys, typing
from typing import Callable, NamedTuple, NewType, ParamSpec, TypeVar

UserId = NewType("UserId", int)
P = ParamSpec("P")
T = TypeVar("T")


def next_of(user: UserId) -> UserId:
    return UserId(user + 1)


def call(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return fn(*args, **kwargs)


class Lazy:
    calls = 0

    @functools.cached_property
    def value(self) -> int:
        """A text."""
        self.calls += 1
        return 42


@functools.singledispatch
def kind_of(value):
    return "any"


@kind_of.register
def _(value: int):
    return "int"


@kind_of.register(list)
def _(value):
    return [kind_of(each) for each in value]


class Shown:
    @functools.singledispatchmethod
    def show(self, value):
        return "any"

    @show.register
    def _(self, value: int):
        return "int"


@dataclasses.dataclass(slots=True)
class Slotted:
    a: int
    b: list = dataclasses.field(default_factory=list)


class Point(NamedTuple):
    x: int
    y: int = 0


def lazy():
    found = Lazy()
    return found.value, found.value, found.calls, Lazy.value.__doc__


CALLS = {
    "newtype": lambda: (next_of(1), UserId.__name__, typing.get_type_hints(next_of)["user"] is UserId),
    "paramspec": lambda: (call(pow, 2, 3), P.__name__),
    "cached_property": lazy,
    "singledispatch": lambda: (kind_of(1), kind_of("a"), kind_of([1, [2.5]]), kind_of.__name__),
    "singledispatchmethod": lambda: (Shown().show(1), Shown().show("a")),
    "slots": lambda: (Slotted(1).b, hasattr(Slotted(1), "__dict__")),
    "namedtuple": lambda: Point(1)._asdict(),
    "slotted": lambda: Slotted(1, [2]),
}
if sys.version_info >= (3, 11):
    Ts = typing.TypeVarTuple("Ts")

    def many(*values: typing.Unpack[Ts]) -> int:
        return len(values)

    CALLS["typevartuple"] = lambda: (many(1, 2), Ts.__name__)
'''


def test_what_a_program_defines_in_main_travels_by_value(tmp_path: Path) -> None:
    """Another process, which does not have that `__main__`, calls each function. Instances come back."""
    program, there, data = tmp_path / "program.py", tmp_path / "there.py", tmp_path / "data"
    dump = (
        "from scaler_client.pickling import cloudpickle_ext\nopen(sys.argv[1], 'wb').write(cloudpickle_ext.dumps({}))\n"
    )
    load = "import pickle, sys\nvalue = pickle.loads(open(sys.argv[1], 'rb').read())\n"
    call = "value = {name: fn() for name, fn in value.items()}\n"
    there.write_text(load + call + dump.format("value"))
    check = f"""
import subprocess
subprocess.run([sys.executable, {str(there)!r}, sys.argv[1]], check=True)
found = pickle.loads(open(sys.argv[1], "rb").read())
for name, fn in CALLS.items():
    assert found[name] == fn(), (name, found[name], fn())
assert type(found["slotted"]) is Slotted
print("all right")
"""
    program.write_text(MAIN + dump.format("CALLS") + check)
    done = subprocess.run([sys.executable, str(program), str(data)], capture_output=True, text=True)
    assert done.stdout == "all right\n", done.stderr
