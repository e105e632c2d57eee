"""Functions that are pickled by value are pickled again when their captures have changed."""

from __future__ import annotations

import builtins
import functools
import gc
import multiprocessing
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import cloudpickle
import pytest

from scaler_client.pickling import captures, functions
from scaler_client.pickling.captures import captures_of
from scaler_client.pickling.functions import FunctionTable
from scaler_client.pickling.retry_policy import TaskPolicy


def call(payload: bytes, arguments: tuple[Any, ...]) -> Any:
    return cloudpickle.loads(payload)(*arguments)


class Notebook:
    """Cells that run one after another in their own `__main__`, a client's table of functions, and a worker."""

    def __init__(self, worker: ProcessPoolExecutor) -> None:
        self._worker = worker
        self.names: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
        self._table = FunctionTable(lambda number: None)

    def run(self, cell: str) -> None:
        exec(cell, self.names)

    def call(self, name: str, *arguments: Any) -> Any:
        """Return what a worker computes for a submit of this function."""
        return self._worker.submit(call, self.number(name).payload, arguments).result()

    def number(self, name: str) -> Any:
        return self._table.get(self.names[name])

    def call_retrying(self, name: str) -> Any:
        return cloudpickle.loads(self.number_retrying(name).payload)()

    def number_retrying(self, name: str) -> Any:
        return self._table.get_with_policy(self.names[name], TaskPolicy((OSError,)))


@pytest.fixture(scope="module")
def worker() -> Iterator[ProcessPoolExecutor]:
    # A process of its own: cloudpickle does not create a class again in the process that created it.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as worker:
        yield worker


@pytest.fixture
def notebook(worker: ProcessPoolExecutor) -> Notebook:
    return Notebook(worker)


CHANGES = [
    ("GG = 5\ndef h(): return GG", 5, "GG = 50", 50),
    ("GG = 1\ndef h(): return repr(GG)", "1", "GG = 1.0", "1.0"),
    ("GG = 1\ndef h(): return repr(GG)", "1", "GG = True", "True"),
    ("class Thing: pass\nGG = Thing()\ndef h(): return GG is None", False, "GG = None", True),
    ("GG = {1}\ndef h(): return GG", {1}, "GG = None", None),
    ("GG = [1]\ndef h(): return GG", [1], "GG.append(2)", [1, 2]),
    ("GG = {'a': [1]}\ndef h(): return GG", {"a": [1]}, "GG['a'][0] = 2", {"a": [2]}),
    ("GG = {'a': 1}\ndef h(): return GG", {"a": 1}, "GG['a'] = 2", {"a": 2}),
    ("GG = {1}\ndef h(): return GG", {1}, "GG.add(2)", {1, 2}),
    ("GG = bytearray(b'a')\ndef h(): return bytes(GG)", b"a", "GG[0] = 98", b"b"),
    *[
        (f"from collections import *\nfrom types import *\nGG = {made}\ndef h(): return {read}", 1, change, 7)
        for made, read, change in [
            ("{'a': {'b': {'c': 1}}}", "GG['a']['b']['c']", "GG['a']['b']['c'] = 7"),
            ("[[[[[[1]]]]]]", "GG[0][0][0][0][0][0]", "GG[0][0][0][0][0][0] = 7"),
            ("([1],)", "GG[0][0]", "GG[0][0] = 7"),
            ("{'a': ([1],)}", "GG['a'][0][0]", "GG['a'][0][0] = 7"),
            ("OrderedDict(a=1)", "GG['a']", "GG['a'] = 7"),
            ("OrderedDict(a=1, b=7)", "next(iter(GG.values()))", "GG.move_to_end('a')"),
            ("defaultdict(list, a=[1])", "GG['a'][0]", "GG['a'][0] = 7"),
            ("Counter('a')", "GG['a']", "GG['a'] = 7"),
            ("deque([1])", "GG[0]", "GG[0] = 7"),
            ("SimpleNamespace(a=1)", "GG.a", "GG.a = 7"),
            ("SimpleNamespace(a=[1])", "GG.a[0]", "GG.a[0] = 7"),
            ("[SimpleNamespace(a=[1])]", "GG[0].a[0]", "GG[0].a[0] = 7"),
            ("namedtuple('Pair', 'a')([1])", "GG.a[0]", "GG.a[0] = 7"),
            ("[object(), 1]", "GG[1]", "GG[1] = 7"),
            ("{'f': lambda: 1}", "GG['f']()", "GG['f'] = lambda: 7"),
            ("{'f': lambda: one()}\ndef one(): return 1", "GG['f']()", "def one(): return 7"),
            ("{'step': 1, 'data': list(range(5000))}", "GG['step']", "GG['step'] = 7"),
            ("[1]\nGG.append(GG)", "GG[1][1][0]", "GG[0] = 7"),
            ("[1, *range(255)]", "GG[0]", "GG[0] = 7"),
        ]
    ],
    *[
        (f"from dataclasses import dataclass, field\n@dataclass({options})\nclass C:\n rate: int = 1\n"
         " sizes: list = field(default_factory=lambda: [1])\nGG = C()\ndef h(): return GG.rate * GG.sizes[0]",
         1, change, 7)
        for options in ("", "slots=True", "eq=False")
        for change in ("GG.rate = 7", "GG.sizes[0] = 7")
    ],
    ("GG = list(range(5000))\ndef h(): return len(GG)", 5000, "GG.append(1)", 5001),
    ("def h(): return 'GG' in globals() and GG", False, "GG = 5", 5),
    ("def h(x=None): return len('ab')", 2, "def len(x): return 7", 7),
    ("def g(): return 1\ndef h(): return g()", 1, "def g(): return 2", 2),
    ("GG = 1\ndef g(): return GG\ndef h(): return g()", 1, "GG = 2", 2),
    ("GG = 1\ndef h(): return (lambda: [GG for _ in 'a'])()", [1], "GG = 2", [2]),
    ("GG = 1\nclass C:\n def run(self): return GG\ndef h(): return C().run()", 1, "GG = 2", 2),
    ("class C:\n rate = 1\ndef h(): return C.rate", 1, "C.rate = 2", 2),
    ("class C:\n rate = 1\ndef h(): return C.rate", 1, "class C:\n rate = 2", 2),
    ("class B:\n rate = 1\nclass C(B): pass\ndef h(): return C.rate", 1, "B.rate = 2", 2),
    ("GG = 1\nclass h:\n def __reduce__(self): return int, (GG,)\n def __new__(cls): return GG", 1, "GG = 2", 2),
    ("GG = 1\nclass C:\n @property\n def p(self): return GG\ndef h(): return C().p", 1, "GG = 2", 2),
    ("GG = 1\nclass C:\n @staticmethod\n def s(): return GG\ndef h(): return C.s()", 1, "GG = 2", 2),
    ("def outer():\n n = 1\n def h():\n  return n\n def to(x):\n  nonlocal n\n  n = x\n return h, to\nh, to = outer()",
     1, "to(2)", 2),
    ("def outer():\n n = [1]\n def h(): return n[0]\n return h, n\nh, n = outer()", 1, "n[0] = 2", 2),
    ("def h(x=1): return x", 1, "h.__defaults__ = (2,)", 2),
    ("def h(*, x=1): return x", 1, "h.__kwdefaults__ = {'x': 2}", 2),
    ("def h(x=[1]): return x", [1], "h.__defaults__[0].append(2)", [1, 2]),
    ("def h(): return 1\ndef g(): return 2", 1, "h.__code__ = g.__code__", 2),
    ("def h(): return h.rate\nh.rate = 1", 1, "h.rate = 2", 2),
    ("def h(): return getattr(h, 'rate', None)", None, "h.rate = 2", 2),
    ("import functools\nGG = 1\ndef g(x): return x + GG\nh = functools.partial(g, 1)", 2, "GG = 2", 3),
    ("import functools\nx = [1]\ndef g(x): return sum(x)\nh = functools.partial(g, x)", 1, "x.append(2)", 3),
    ("import functools\nGG = 1\n@functools.lru_cache\ndef h(): return GG", 1, "GG = 2", 2),
    ("import functools\nGG = 1\ndef wrap(f):\n @functools.wraps(f)\n def w(): return f()\n return w\n"
     "@wrap\ndef h(): return GG", 1, "GG = 2", 2),
]  # fmt: skip


@pytest.mark.parametrize("cell, before, change, after", CHANGES, ids=[change for _, _, change, _ in CHANGES])
def test_a_changed_capture_is_pickled_again(
    notebook: Notebook, cell: str, before: Any, change: str, after: Any
) -> None:
    notebook.run(cell)
    assert notebook.call("h") == before
    number = notebook.number("h")
    assert notebook.number("h") is number
    notebook.run(change)
    assert notebook.call("h") == after
    number = notebook.number("h")
    assert notebook.number("h") is number


def test_a_changed_capture_of_a_function_with_retry_on(notebook: Notebook) -> None:
    notebook.run("GG = 5\ndef h(): return GG")
    assert notebook.call_retrying("h") == 5
    notebook.run("GG = 50")
    assert notebook.call_retrying("h") == 50


def test_an_unchanged_function_is_not_pickled_again(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook.run("import math\nGG = 1\ncfg = {'a': [1]}\nclass C:\n rate = 1")
    notebook.run("def h(): return GG, cfg, C, math.pi, len, h")
    notebook.number("h")
    monkeypatch.setattr("scaler_client.pickling.serializer.dump_function", None)
    notebook.run("other = 1")
    notebook.number("h")


def test_the_old_value_gives_the_old_function(notebook: Notebook) -> None:
    notebook.run("GG = 5\ndef h(): return GG")
    first = notebook.number("h")
    notebook.run("GG = 50")
    second = notebook.number("h")
    notebook.run("GG = 5")
    assert notebook.number("h") is first is not second


def test_a_change_inside_an_object_is_not_seen(notebook: Notebook) -> None:
    """The page on tasks documents this."""
    notebook.run("class C: pass\nc = C()\nc.x = 1\ndef h(): return c.x")
    assert notebook.call("h") == 1
    notebook.run("c.x = 2")
    assert notebook.call("h") == 1
    notebook.run("d = C()\nd.x = 2\nc = d")
    assert notebook.call("h") == 2


@pytest.mark.parametrize("made", ["[[1], *range(256)]", "[list(range(250)), list(range(7)), [1]][::-1]"])
def test_of_large_containers_only_the_length_is_compared(notebook: Notebook, made: str) -> None:
    """The page on tasks documents this."""
    notebook.run(f"GG = {made}\ndef h(): return GG")
    before = notebook.call("h")
    notebook.run("last = GG[0] if len(GG) > 3 else GG[-1]\nlast[0] = 7")
    assert notebook.call("h") == before
    notebook.run("(GG if len(GG) > 3 else last).append(1)")
    assert notebook.call("h") == notebook.names["GG"] != before


def helper() -> int:
    return 1


@pytest.mark.parametrize("fn", [helper, len, dict, gc.collect, functools.partial(helper), Notebook, print])
def test_a_function_pickled_by_name_has_no_captures(fn: Callable[..., Any]) -> None:
    assert captures_of(fn) is None


def recursive(count: int) -> Callable[[], Any]:
    large = set(range(count))

    def function() -> Any:
        return large, function

    return function


def test_captures_keep_nothing_alive() -> None:
    table = FunctionTable(lambda number: None)
    function = recursive(3)
    gone = weakref.ref(function)
    table.get(function)
    del function
    gc.collect()
    assert gone() is None
    assert table._capturing == {} == table._by_identity


@pytest.fixture
def local_module() -> Iterator[types.ModuleType]:
    """Return a module that the worker does not have."""
    module = types.ModuleType("localmod")
    exec("rate = 1\ndef fn(): return rate", module.__dict__)
    sys.modules["localmod"] = module
    yield module
    del sys.modules["localmod"]
    if "localmod" in cloudpickle.list_registry_pickle_by_value():
        cloudpickle.unregister_pickle_by_value(module)


@pytest.mark.parametrize("cell", ["from localmod import fn as h", "import localmod\ndef h(): return localmod.fn()"])
def test_a_registered_module_is_pickled_by_value(notebook: Notebook, local_module: types.ModuleType, cell: str) -> None:
    notebook.run(cell)
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError):
            notebook.call("h")
        cloudpickle.register_pickle_by_value(local_module)
        assert notebook.call("h") == 1
        cloudpickle.unregister_pickle_by_value(local_module)
    cloudpickle.register_pickle_by_value(local_module)
    assert notebook.call("h") == 1
    local_module.rate = 7
    assert notebook.call("h") == 7


def test_a_function_with_retry_on_is_pickled_by_value_too(notebook: Notebook, local_module: types.ModuleType) -> None:
    notebook.run("from localmod import fn as h")
    by_name = notebook.number_retrying("h")
    cloudpickle.register_pickle_by_value(local_module)
    assert notebook.number_retrying("h") is not by_name
    assert notebook.call_retrying("h") == 1


def test_a_large_object_in_a_container_is_not_kept_alive() -> None:
    class Large:
        pass

    held = {"large": Large(), "steps": [1]}
    table = FunctionTable(lambda number: None)
    function = eval("lambda: held", {"held": held, "__name__": "__main__"})
    number = table.get(function)
    gone = weakref.ref(held["large"])
    held["large"] = None
    gc.collect()
    assert gone() is None
    assert table.get(function) is not number


def test_a_deleted_global_is_a_change(notebook: Notebook) -> None:
    notebook.run("GG = 5\ndef h(): return 'GG' in globals() and GG")
    assert notebook.call("h") == 5
    notebook.run("del GG")
    assert notebook.call("h") is False


def test_values_that_cannot_be_compared_count_as_changed(notebook: Notebook) -> None:
    notebook.run("class Odd:\n def __eq__(self, other): raise LookupError\nGG = [1]\ndef h(): return len(GG)")
    assert notebook.call("h") == 1
    notebook.run("GG[0] = Odd()\nGG.append(2)")
    assert notebook.call("h") == 2


def test_a_container_that_another_thread_changes(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(value: object) -> list[object]:
        raise RuntimeError("dictionary changed size during iteration")

    notebook.run("GG = {1: 2}\ndef h(): return GG")
    monkeypatch.setattr(captures, "_parts_of", change)
    first = notebook.number("h")
    pickled: list[object] = []
    real = functions.serializer.dump_function
    monkeypatch.setattr(functions.serializer, "dump_function", lambda *given: pickled.append(given) or real(*given))
    assert notebook.number("h") is first, "of equal bytes"
    assert len(pickled) == 1, "and yet looked at again"
