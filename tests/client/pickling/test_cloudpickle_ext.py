"""More of what programs define in `__main__` travels by value, and code keeps the name of its source file."""

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
import abc, contextlib, dataclasses, functools, pickle, sys, typing, weakref
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


class Plugin:
    kinds = {}

    def __init_subclass__(cls, *, key):
        if key in Plugin.kinds:
            raise KeyError(key)
        Plugin.kinds[key] = cls


class First(Plugin, key="first"):
    pass


class Tagged(type):
    made = []

    def __new__(meta, name, bases, attributes, *, tag):
        made = super().__new__(meta, name, bases, attributes)
        made.tag = tag
        Tagged.made.append(name)
        return made

    def __init__(cls, name, bases, attributes, *, tag):
        super().__init__(name, bases, attributes)


class Labelled(metaclass=Tagged, tag="label"):
    pass


class SingleMeta(abc.ABCMeta):
    def __call__(cls):
        if not hasattr(cls, "only"):
            cls.only = super().__call__()
        return cls.only


class Single(metaclass=SingleMeta):
    pass


class Tree:
    every = weakref.WeakValueDictionary()
    kinds = weakref.WeakKeyDictionary()
    seen = weakref.WeakSet()

    def __init__(self, name):
        self.name, self.parts, self.parent = name, [], None
        Tree.every[name] = self
        Tree.seen.add(self)

    def add(self, part):
        self.parts.append(part)
        part.parent = weakref.ref(self)
        return self


TREE = Tree("top").add(Tree("part"))
Tree.kinds[TREE] = "root"


def tree():
    part = TREE.parts[0]
    return part.parent() is TREE, sorted(Tree.every), Tree.kinds[TREE], part in Tree.seen


@contextlib.contextmanager
def doubled():
    yield


@doubled()
def decorated(x):
    return 2 * x


class Failed(OSError):
    def __init__(self, code, *, path):
        super().__init__(f"code {code}")
        self.path = path


FAILED = Failed(5, path="/a")


CALLS = {
    "plugin": lambda: (Plugin.kinds["first"] is First, list(Plugin.kinds)),
    "metaclass": lambda: (Labelled.tag, Tagged.made, Single() is Single(), isinstance(3, Single)),
    "weak": tree,
    "decorated": lambda: (decorated(2), decorated(3)),
    "exception": lambda: (str(FAILED), FAILED.path, type(FAILED).__name__),
    "typevar": lambda: (T.__name__, typing.get_type_hints(call)["return"] is T),
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
try:
    import typing_extensions as te
except ImportError:
    pass
else:
    A, B, C = te.ParamSpec("A"), te.TypeVarTuple("B"), te.TypeVar("C", bound=int)
    E, F = te.TypeVar("E", default=int), te.ParamSpec("F", default=[int])
    Number, Count = te.NewType("Number", int), te.TypeAliasType("Count", "int")
    Several = te.TypeAliasType("Several", typing.List[C], type_params=(C,))

    def call_extended(fn: Callable[A, C], *args: A.args, **kwargs: A.kwargs) -> C:
        return fn(*args, **kwargs)

    def many_extended(*values: te.Unpack[B]) -> Number:
        return Number(len(values))

    def counted(value: Several[int], default: E = 0) -> Count:
        return value[0]

    CALLS["extensions"] = lambda: (
        call_extended(pow, 2, 3), many_extended(1, 2), counted([1]),
        typing.get_type_hints(many_extended)["return"] is Number, counted.__annotations__["return"] is Count,
        [each.__name__ for each in (A, B, C, E, F, Number, Count, Several)], C.__bound__, E.__default__, F.__default__,
        Count.__value__, Several.__type_params__ == (C,), Count.__module__, str(call_extended.__annotations__),
    )
if sys.version_info >= (3, 12):
    exec("""
type Json = dict[str, Json] | list[Json] | int
type Pair[X] = tuple[X, X]

def first[X: int](pair: Pair[X], text: Json = 0) -> X:
    return pair[0]

CALLS["aliases"] = lambda: (
    first((1, 2)), Json.__name__, Json.__value__.__args__[1].__args__[0].__name__,
    Pair.__type_params__ == Pair.__value__.__args__[:1], str(Pair[int]),
)
""", globals())
if sys.version_info >= (3, 13):
    D = TypeVar("D", default=int)

    class Defaulted(typing.Generic[D]):
        pass

    CALLS["default"] = lambda: (D.__default__, Defaulted.__parameters__ == (D,))
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
assert list(Plugin.kinds) == ["first"] and Tagged.made == ["Labelled"]
print("all right")
"""
    program.write_text(MAIN + dump.format("CALLS") + check)
    done = subprocess.run([sys.executable, str(program), str(data)], capture_output=True, text=True)
    assert done.stdout == "all right\n", done.stderr


def test_a_class_of_the_program_stays_as_it_is_when_an_object_comes_back(tmp_path: Path) -> None:
    """A pickle has the attributes and functions that the class had elsewhere."""
    program, elsewhere = tmp_path / "program.py", tmp_path / "elsewhere.py"
    program.write_text("""
import pickle, subprocess, sys
from scaler_client.pickling import cloudpickle_ext
factor = 2
class Shape:
    made = 0
    def __init__(self, size):
        Shape.made += 1
        self.size = size
    def area(self):
        return factor * self.size
def task():
    return Shape(3), Shape(4)
area = Shape.area
sent = cloudpickle_ext.dumps(task)
back = subprocess.run([sys.executable, sys.argv[1]], input=sent, check=True, capture_output=True).stdout
Shape.made, factor = 7, 10
found = pickle.loads(back)[1][1]
print(type(found) is Shape, Shape.area is area, Shape.made, found.area(), Shape.__subclasses__())
""")
    elsewhere.write_text("""
import pickle, sys
from scaler_client.pickling import cloudpickle_ext
task = pickle.load(sys.stdin.buffer)
sys.stdout.buffer.write(cloudpickle_ext.dumps([task() for _ in range(2)]))
""")
    done = subprocess.run([sys.executable, str(program), str(elsewhere)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True True 7 40 []\n", "")
