"""Tasks run the version of a module that their program has: after a reload, a new import, and in the next program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.integration.commands import SCHEDULER_PYTHON, environment

FIRST = """
import importlib
import pathlib
import subprocess
import sys

import depth
import shape

from scaler_client import Client, LocalCluster

here = pathlib.Path(__file__).parent


def area(square):
    return square.area(), shape.area()


def both(client):
    return client.submit(shape.area).result(60), *client.submit(area, shape.Square()).result(60)


if __name__ == "__main__":
    with LocalCluster(n_workers=1, scheduler_python={python!r}) as cluster, Client(cluster) as client:
        print(*both(client))
        (here / "depth.py").write_text("DEPTH = 'reloaded'\\n")
        importlib.reload(depth)
        importlib.reload(shape)
        print(*both(client))
        (here / "shape.py").write_text({new!r})
        del sys.modules["shape"]
        import shape
        print(*both(client))
        (here / "shape.py").write_text({new!r}.replace("imported", "of the next program"))
        second = subprocess.run([sys.executable, here / "second.py", cluster.address], capture_output=True, text=True)
        print(second.stdout + second.stderr, end="")
        (here / "shape.py").write_text("an error of syntax, after the import")
        print(str(client.submit(shape.Square).exception(60)).partition("\\n")[0])
"""

SECOND = """
import sys

import shape

from scaler_client import Client

if __name__ == "__main__":
    with Client(sys.argv[1]) as client:
        print(client.submit(shape.area).result(60))
"""

OLD = """
from depth import DEPTH

class Square:
    def area(self):
        return DEPTH

def area():
    return DEPTH
"""

NEW = OLD.replace("return DEPTH", "return 'imported'")


CLASSES = """
import importlib
import os
import pathlib
import signal
import sys

import aa
import kk

from scaler_client import Client, LocalCluster

here = pathlib.Path(__file__).parent


def save(name, value):
    text = f"CONST = {{value!r}}\\nclass K:\\n    def g(self):\\n        return CONST\\ndef f():\\n    return CONST\\n"
    (here / f"{{name}}.py").write_text(text)


def run(value):
    return value.g()


def const():
    import kk
    return kk.CONST


def each(client):
    stored = client.send_object(kk.K())
    return client.submit(run, kk.K()).result(60), *client.map(run, [(kk.K(),)]), client.submit(run, stored).result(60)


def new_worker(client):
    client.submit(os.kill, client.submit(os.getpid).result(60), signal.SIGKILL).exception(60)


def failure(future):
    return type(future.exception(60)).__name__, "module 'aa' of the program is another" in str(future.exception(60))


if __name__ == "__main__":
    with LocalCluster(n_workers=1, scheduler_python={python!r}) as cluster, Client(cluster) as client:
        print(*each(client))
        save("kk", "reloaded")
        importlib.reload(kk)
        print(*each(client))
        save("kk", "imported anew")
        del sys.modules["kk"]
        import kk
        print(*each(client))
        print(client.submit(const).result(60))
        save("kk", "for the body")
        importlib.reload(kk)
        print(client.submit(const).result(60))

        print(client.submit(aa.f).result(60))
        save("aa", "reloaded")
        importlib.reload(aa)
        print(client.submit(aa.f).result(60))
        save("aa", "a mere save")
        print(client.submit(aa.f).result(60))
        new_worker(client)
        print(client.submit(len, [1]).result(60), *each(client))
        print(*failure(client.submit(aa.f)), *failure(client.submit(run, aa.K())))
        importlib.reload(aa)
        print(client.submit(aa.f).result(60), client.submit(run, aa.K()).result(60))
"""


def run_program(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(path)],
        env=environment(PYTHONDONTWRITEBYTECODE="1"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_classes_imports_in_bodies_and_saves_without_a_reload(tmp_path: Path) -> None:
    for name in ("aa", "kk"):
        text = "CONST = 'old'\nclass K:\n    def g(self):\n        return CONST\ndef f():\n    return CONST\n"
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "program.py").write_text(CLASSES.format(python=SCHEDULER_PYTHON))
    run = run_program(tmp_path / "program.py")
    assert run.stdout.splitlines() == [
        "old old old",
        "reloaded reloaded reloaded",
        "imported anew imported anew imported anew",
        "imported anew",
        "for the body",
        "old",
        "reloaded",
        "reloaded",
        "1 for the body for the body for the body",
        "FunctionLoadError True ArgumentLoadError True",
        "a mere save a mere save",
    ], run.stderr


def test_tasks_run_the_version_of_their_program(tmp_path: Path) -> None:
    (tmp_path / "depth.py").write_text("DEPTH = 'old'\n")
    (tmp_path / "shape.py").write_text(OLD)
    (tmp_path / "first.py").write_text(FIRST.format(python=SCHEDULER_PYTHON, new=NEW))
    (tmp_path / "second.py").write_text(SECOND)
    run = run_program(tmp_path / "first.py")
    *lines, last = run.stdout.splitlines()
    assert lines == [
        "old old old",
        "reloaded reloaded reloaded",
        "imported imported imported",
        "of the next program",
    ], run.stderr
    assert f"ImportError: the module 'shape' of the program is another version than {tmp_path / 'shape.py'}" in last
