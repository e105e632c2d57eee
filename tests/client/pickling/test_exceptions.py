"""An exception arrives as it was raised, or an instance of its nearest base class stands for it."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
import threading
import traceback
import types
import urllib.error
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from scaler_client.pickling import serializer


class Coded(Exception):
    """Its args differ from what it takes."""

    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


class Strict(OSError):
    def __init__(self, path: str, *, reason: str) -> None:
        super().__init__(5, reason, path)
        self.reason = reason


class Refused(ConnectionRefusedError):
    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"{host}:{port} refuses")
        self.address = host, port


class Late(TimeoutError):
    def __init__(self, *, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def __str__(self) -> str:
        return f"later than {self.seconds} s"


class Missing(FileNotFoundError):
    def __new__(cls, path: Path) -> Missing:
        return super().__new__(cls, 2, "No such file", str(path))

    def __init__(self, path: Path) -> None:
        self.path = path


class Slotted(Exception):
    __slots__ = ("left", "right")

    def __init__(self, left: int, right: int) -> None:
        super().__init__("slotted")
        self.left, self.right = left, right


class Hooked(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(one + two)
        self.parts = one, two

    def __reduce__(self) -> Any:
        return Hooked, self.parts


class WrongHook(Exception):
    def __reduce__(self) -> Any:
        return WrongHook, (1, 2, 3), {"a": threading.Lock()}


class Quiet(Exception):
    """Its own pickle loses a part of its text."""

    def __init__(self, text: str, detail: str = "") -> None:
        super().__init__(text)
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.args[0]} {self.detail}"

    def __reduce__(self) -> Any:
        return Quiet, self.args


class Both(ValueError, OSError):
    def __init__(self, one: int, *, two: int) -> None:
        super().__init__(one)
        self.two = two


class Keyed(KeyError, AttributeError):
    def __init__(self, key: str) -> None:
        super().__init__(f"no {key}")


class OwnArgs(Exception):
    def __init__(self, one: int, two: int) -> None:
        self.one = one

    @property
    def args(self) -> Any:  # type: ignore[override]
        return ("another",)


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    code: int


class Closed(Exception):
    """Refuses attributes."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(name)


def http_error() -> urllib.error.HTTPError:
    headers = Message()
    headers["Retry-After"] = "5"
    return urllib.error.HTTPError("http://a/b", 503, "Busy", headers, open(__file__, "rb"))


def with_fields(error: Any, **fields: Any) -> Any:
    for name, value in fields.items():
        setattr(error, name, value)
    return error


def sent(error: BaseException) -> BaseException:
    found: BaseException = pickle.loads(serializer.dump_exception(error, "traceback"))[0]
    return found


def errors() -> list[BaseException]:
    return [
        Coded(5), Strict("/a", reason="no disk"), Refused("h", 80), Late(seconds=0.5), Missing(Path("/x")),
        Slotted(1, 2), Hooked(1, 2), Closed("a"), ValueError("x", 1), KeyError("k"), OSError("text"),
        OSError(2, "no file", "/p", None, "/q"),
        BlockingIOError(11, "again", 3), StopIteration(5), SystemExit(3), KeyboardInterrupt(),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), UnicodeEncodeError("ascii", "\xe4", 0, 1, "bad"),
        ImportError("no", name="m", path="/m.py"), SyntaxError("bad", ("f.py", 1, 2, "x y")),
        with_fields(ValueError("y"), extra=[1, 2]), with_fields(Coded(6), extra={"a": Coded(7).args}),
        ModuleNotFoundError("no m", name="m"), Quiet("a", "b"), Both(1, two=2), Keyed("k"), OwnArgs(1, 2), Frozen(3),
        NameError("no x", name="x"), with_fields(Hooked(1, 2), __notes__=["a note"]),
        UnicodeTranslateError("x", 0, 1, "r"),
    ]  # fmt: skip


@pytest.mark.parametrize("error", errors(), ids=lambda error: type(error).__name__)
def test_an_exception_arrives_equal(error: BaseException) -> None:
    found = sent(error)
    assert type(found) is type(error)
    assert (found.args, str(found), found.__dict__) == (error.args, str(error), error.__dict__)
    for name in ("errno", "strerror", "filename", "filename2", "characters_written", "value", "code", "name", "path",
                 "msg", "lineno", "offset", "text", "object", "start", "end", "reason", "left", "right",
                 "two", "one", "detail"):  # fmt: skip
        assert getattr(found, name, None) == getattr(error, name, None), name


def test_its_notes_and_its_cause_arrive() -> None:
    error, cause, first = Coded(1), Strict("/a", reason="full"), KeyError("k")
    error.__cause__, cause.__cause__ = cause, first
    if sys.version_info >= (3, 11):
        error.add_note("a note")
    found = sent(error)
    assert getattr(found, "__notes__", []) == getattr(error, "__notes__", [])
    assert isinstance(found.__cause__, Strict) and found.__cause__.filename == "/a"
    assert isinstance(found.__cause__.__cause__, KeyError) and found.__suppress_context__


def test_the_context_of_an_exception_without_cause_arrives() -> None:
    error, context = Coded(1), Hooked(1, 2)
    error.__context__ = context
    found = sent(error).__context__
    assert isinstance(found, Hooked) and found.parts == (1, 2)
    error.__suppress_context__ = True
    assert sent(error).__context__ is None


def test_exceptions_among_args_arrive_equal() -> None:
    found = sent(ValueError([Coded(1), {"a": Late(seconds=2)}]))
    assert str(found) == str(ValueError([Coded(1), {"a": Late(seconds=2)}]))


@pytest.mark.parametrize("error", errors(), ids=lambda error: type(error).__name__)
def test_an_exception_in_a_result_arrives_equal(error: BaseException) -> None:
    found = pickle.loads(serializer.dumps({"failed": [error]}))["failed"][0]
    if isinstance(error, Quiet):
        return  # its class decides
    notes = getattr(error, "__notes__", None) if isinstance(error, Hooked) else None
    state = {name: value for name, value in error.__dict__.items() if value is not notes}
    assert (type(found), found.args, str(found), found.__dict__) == (type(error), error.args, str(error), state)


def test_an_exception_in_a_result_loses_nothing_silently() -> None:
    with pytest.raises(TypeError, match="lock"):
        serializer.dumps([with_fields(Coded(1), lock=threading.Lock())])
    error = Coded(1)
    error.me = error  # type: ignore[attr-defined]
    found = pickle.loads(serializer.dumps(error))
    assert found.me is found


def test_a_chain_of_exceptions_that_refer_to_each_other_twice() -> None:
    """Without a memory of what was pickled, each link would triple the time."""
    error: Any = KeyError("first")
    for number in range(30):
        error, error.__cause__ = with_fields(Coded(number), lock=threading.Lock(), original=error), error
    found: Any = sent(error)
    assert found.code == 29 and found.original.code == 28 and found.original.original.args == ("code 27",)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no groups")
def test_the_members_of_a_group_arrive() -> None:
    group_class: Any = getattr(__builtins__, "ExceptionGroup", None) or __builtins__["ExceptionGroup"]  # type: ignore[index]
    group = group_class("several", [Coded(1), group_class("inner", [Late(seconds=2), http_error()])])
    found: Any = sent(group)
    assert type(found) is group_class and found.message == "several"
    first, inner = found.exceptions
    assert (first.code, first.args) == (1, ("code 1",))
    assert inner.exceptions[0].seconds == 2 and inner.exceptions[1].code == 503
    base_class: Any = type(group).__mro__[1]
    assert str(sent(base_class("b", [KeyboardInterrupt(), Coded(1)])).exceptions[1]) == "code 1"  # type: ignore[attr-defined]


def test_what_can_not_be_pickled_is_left_out_and_said() -> None:
    found = sent(http_error())
    assert isinstance(found, urllib.error.HTTPError)
    assert (found.code, found.msg, found.url) == (503, "Busy", "http://a/b")
    assert found.headers["Retry-After"] == "5" and str(found) == "HTTP Error 503: Busy"
    assert "could not be pickled" in "".join(traceback.format_exception(found)) or sys.version_info < (3, 11)
    error = with_fields(Coded(5), lock=threading.Lock(), kept=1)
    found = sent(error)
    assert isinstance(found, Coded) and found.code == 5
    assert found.__dict__["lock"] is None and found.__dict__["kept"] == 1
    assert "'lock'" in found.__dict__["__notes__"][-1]
    found = sent(ValueError("text", threading.Lock()))
    assert type(found) is ValueError and found.args[0] == "text" and "lock" in found.args[1]
    found = sent(WrongHook("w"))
    assert type(found) is WrongHook and found.args == ("w",)


def test_a_class_that_can_not_be_loaded_has_a_stand_in() -> None:
    module = types.ModuleType("gone_module")
    exec(
        "class Base(ConnectionError): pass\nclass Gone(Base):\n  def __init__(self, a, b): self.a = a", module.__dict__
    )
    sys.modules["gone_module"] = module
    try:
        data = serializer.dump_exception(module.Gone("x", 2), "traceback")
    finally:
        del sys.modules["gone_module"]
    found = pickle.loads(data)[0]
    assert type(found) is ConnectionError
    assert "this stands for an exception of class gone_module.Gone: ModuleNotFoundError" in str(found)


def sent_without(code: str, make: str) -> BaseException:
    """Return what arrives of an exception of a module that the receiver does not have."""
    module = types.ModuleType("gone_module")
    exec(code, module.__dict__)
    sys.modules["gone_module"] = module
    try:
        error = eval(make, module.__dict__)
        error.__notes__ = ["user note"]
        data = serializer.dump_exception(error, "traceback")
    finally:
        del sys.modules["gone_module"]
    found: BaseException = pickle.loads(data)[0]
    assert "this stands for an exception of class gone_module.Gone: ModuleNotFoundError" in str(found)
    return found


def test_a_stand_in_keeps_what_can_be_loaded() -> None:
    code = "class Gone(FileNotFoundError): pass\nerror = Gone(2, 'gone', '/data/a')\nerror.job = 17"
    found = sent_without(code, "error")
    assert type(found) is FileNotFoundError and found.errno == 2
    assert found.__dict__["job"] == 17 and "user note" in found.__dict__["__notes__"]
    found = sent_without("class Gone(SystemExit): pass", "Gone(3)")
    assert type(found) is SystemExit and found.code == 3
    for base in ("SyntaxError", "ImportError", "KeyError", "Exception"):
        assert type(sent_without(f"class Gone({base}): pass", "Gone('text')")).__name__ == base
    other = "class Other: pass\nclass Gone(ValueError):\n  def __init__(self): self.other = Other()"
    assert type(sent_without(other, "Gone()")) is ValueError, "an attribute that can't be loaded"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no groups")
def test_a_stand_in_of_a_group_keeps_its_members() -> None:
    code = "class Gone(ExceptionGroup): pass\nclass Member(LookupError): pass"
    found = sent_without(code, "Gone('g', [ConnectionError('lost'), Gone('inner', [ValueError('v'), Member('m')])])")
    assert type(found).__name__ == "ExceptionGroup"
    lost, inner = found.exceptions  # type: ignore[attr-defined]
    assert type(lost) is ConnectionError and str(lost) == "lost"
    assert list(map(type, inner.exceptions)) == [ValueError, LookupError]


def test_a_class_that_can_not_be_pickled_has_a_stand_in() -> None:
    class Local(LookupError):
        lock = threading.Lock()

    found = sent(Local("x"))
    assert type(found) is LookupError and "x (this stands for an exception of class" in str(found)


def test_causes_may_form_a_circle() -> None:
    first, second = Coded(1), Coded(2)
    first.__cause__, second.__cause__ = second, first
    found = sent(first)
    assert isinstance(found, Coded) and isinstance(found.__cause__, Coded) and found.__cause__.code == 2
    deep: BaseException = ValueError("first")
    for number in range(200):
        deep, deep.__cause__ = Coded(number), deep  # type: ignore[assignment]
    assert isinstance(sent(deep), Coded)


def test_an_exception_of_main_arrives(tmp_path: Path) -> None:
    program = """
from scaler_client.pickling import serializer
import pickle
class Mine(OSError):
    def __init__(self, a, *, b):
        super().__init__(a)
        self.b = b
print(type(pickle.loads(serializer.dump_exception(Mine(1, b=2), ""))[0]) is Mine)
"""
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout == b"True\n"
