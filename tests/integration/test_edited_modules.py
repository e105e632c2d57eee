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


def test_tasks_run_the_version_of_their_program(tmp_path: Path) -> None:
    (tmp_path / "depth.py").write_text("DEPTH = 'old'\n")
    (tmp_path / "shape.py").write_text(OLD)
    (tmp_path / "first.py").write_text(FIRST.format(python=SCHEDULER_PYTHON, new=NEW))
    (tmp_path / "second.py").write_text(SECOND)
    run = subprocess.run(
        [sys.executable, str(tmp_path / "first.py")],
        env=environment(PYTHONDONTWRITEBYTECODE="1"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    *lines, last = run.stdout.splitlines()
    assert lines == [
        "old old old",
        "reloaded reloaded reloaded",
        "imported imported imported",
        "of the next program",
    ], run.stderr
    assert f"ImportError: the module 'shape' of the program is another version than {tmp_path / 'shape.py'}" in last
