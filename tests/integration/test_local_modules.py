"""Workers of a local cluster import what the program imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.commands import SCHEDULER_PYTHON, environment


def run_program(
    *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script with these arguments, and return what it has printed."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment() if env is None else env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
    )


PROGRAM = """
import sys

sys.path.insert(0, {folder!r})

import beside
import elsewhere

from scaler_client import Client, LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=1, scheduler_python={python!r}) as cluster, Client(cluster) as client:
        print(client.submit(beside.double, 4).result(60), client.submit(elsewhere.triple, 4).result(60))
"""


INTERPRETER = """
import os
import subprocess
import sys

from scaler_client import Client, LocalCluster


def path_of_another_python():
    program = "import os; print(os.environ.get('PYTHONPATH'))"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    with LocalCluster(n_workers=1, scheduler_python={python!r}) as cluster, Client(cluster) as client:
        print(client.submit(path_of_another_python).result(60))
"""


@pytest.mark.parametrize("path", [None, "/some/folder"])
def test_an_interpreter_started_by_a_task_has_the_path_of_the_program(tmp_path: Path, path: str | None) -> None:
    (tmp_path / "program.py").write_text(INTERPRETER.format(python=SCHEDULER_PYTHON))
    variables = environment() if path is None else environment(PYTHONPATH=path)
    if path is None:
        variables.pop("PYTHONPATH", None)
    run = run_program(str(tmp_path / "program.py"), env=variables)
    assert (run.stdout, run.stderr) == (f"{path}\n", "")


def test_modules_beside_the_script_and_on_its_path(tmp_path: Path) -> None:
    script, other, cwd = tmp_path / "script", tmp_path / "other", tmp_path / "cwd"
    for folder in (script, other, cwd):
        folder.mkdir()
    (script / "beside.py").write_text("def double(x):\n    return 2 * x\n")
    (other / "elsewhere.py").write_text("def triple(x):\n    return 3 * x\n")
    (script / "program.py").write_text(PROGRAM.format(folder=str(other), python=SCHEDULER_PYTHON))
    run = run_program(str(script / "program.py"), cwd=cwd)
    assert run.stdout == "8 12\n", run.stderr


SHADOWS = """
import os
import sys

sys.path.insert(0, "relative")
import near

from scaler_client import Client, LocalCluster

if __name__ == "__main__":
    os.chdir("elsewhere")
    with LocalCluster(n_workers=1, scheduler_python={python!r}) as cluster, Client(cluster) as client:
        sys.path.append(sys.argv[1])
        import late.part
        import resource
        import six

        functions = near.name, late.part.name, resource.name, six.name
        print(*[client.submit(each).result(60) for each in functions])
        print(client.submit(lambda: late.part.name()).result(60))
"""


def test_folders_with_odd_names_late_folders_and_modules_of_others(tmp_path: Path) -> None:
    script, late = tmp_path / "with:colon", tmp_path / "late"
    for folder in (script / "relative", script / "elsewhere", late / "late"):
        folder.mkdir(parents=True)
    text = "def name():\n    return __name__\n"
    shadows = [script / "resource.py", script / "six.py", script / "elsewhere" / "resource.py"]
    for path in (*shadows, script / "relative" / "near.py", late / "late" / "part.py"):
        path.write_text(text)
    (script / "program.py").write_text(SHADOWS.format(python=SCHEDULER_PYTHON))
    run = run_program(str(script / "program.py"), str(late), cwd=script)
    assert run.stdout == "near late.part resource six\nlate.part\n", run.stderr


FOLDER = """
import os

from scaler_client import LocalCluster, Client

if __name__ == "__main__":
    with LocalCluster(n_workers=1, scheduler_python={python!r}) as cluster, Client(cluster) as client:
        print(client.submit(os.getcwd).result(60))
"""


def test_the_current_folder_replaces_no_module_of_python(tmp_path: Path) -> None:
    """Programs do not search it, and neither do the processes that they start."""
    program, current = tmp_path / "program.py", tmp_path / "current"
    program.write_text(FOLDER.format(python=SCHEDULER_PYTHON))
    current.mkdir()
    for name in ("types", "enum", "runpy", "json", "socket", "zmq", "scaler_worker"):
        (current / f"{name}.py").write_text("raise RuntimeError('imported')")
    run = run_program(str(program), cwd=current)
    assert run.stdout == f"{current}\n", run.stderr


def test_a_module_beside_the_program_that_replaces_one_of_python_is_named(tmp_path: Path) -> None:
    (tmp_path / "json.py").touch()
    (tmp_path / "program.py").write_text("from scaler_client import Client")
    run = run_program(str(tmp_path / "program.py"), cwd=tmp_path)
    said = f"{tmp_path}/json.py has no 'loads'; if it replaces Python's module json by mistake, rename it"
    assert run.stderr.splitlines()[-1] == f"ImportError: scaler_client cannot load Client: {said}"


LATE = """
import sys
import zipfile

from scaler_client import Client, LocalCluster

sys.path.append(None)


def imports_in_its_body(name):
    import body
    return body.name(), __import__(name).name()


if __name__ == "__main__":
    with LocalCluster(n_workers=1, scheduler_python={python!r}) as cluster, Client(cluster) as client:
        print(type(client.submit(imports_in_its_body, "body").exception(60)).__name__)
        folder, archive = sys.argv[1:]
        sys.path.append(folder)
        import argument
        print(client.submit(lambda value: value.call(), argument.Late()).result(60))
        print(*client.submit(imports_in_its_body, "body").result(60))
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("packed.py", "def name():\\n    return __name__\\n")
        sys.path.insert(0, archive)
        import packed
        print(client.submit(packed.name).result(60), *client.submit(imports_in_its_body, "packed").result(60))
"""


def test_classes_imports_in_bodies_and_archives_on_a_path_that_is_extended_late(tmp_path: Path) -> None:
    late = tmp_path / "late"
    late.mkdir()
    (late / "argument.py").write_text("class Late:\n    def call(self):\n        return __name__\n")
    (late / "body.py").write_text("def name():\n    return __name__\n")
    (tmp_path / "program.py").write_text(LATE.format(python=SCHEDULER_PYTHON))
    run = run_program(str(tmp_path / "program.py"), str(late), str(tmp_path / "packed.zip"))
    assert run.stdout == "ModuleNotFoundError\nargument\nbody body\npacked body packed\n", run.stderr
