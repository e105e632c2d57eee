"""The modules of a program on the hosts of a cluster: real processes."""

from __future__ import annotations

import asyncio
import importlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from tests.integration.commands import SchedulerCommand, cluster, monitor, scheduler
from tests.waiting import wait_until

from scaler_client import AsyncClient, Client, FunctionLoadError, ModulesError

SECONDS = 60

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers can't import the tests

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[SchedulerCommand]:
    with scheduler(tmp_path) as daemon:
        yield daemon
        assert "Traceback" not in daemon.log()


@pytest.fixture
def address(tmp_path: Path, daemon: SchedulerCommand) -> Iterator[str]:
    """The address of a scheduler with two workers that have an empty cache."""
    with cluster(tmp_path, daemon.address, 2, "--environment-cache", str(tmp_path / "cache")) as agent:
        yield daemon.address
        assert "Traceback" not in agent.log(), agent.log()


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes files of modules into a folder, and returns the folder."""

    def write(folder: str = "project", **files: str) -> Path:
        for name, text in files.items():
            path = tmp_path / folder / (name.replace("__in__", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / folder

    return write


@pytest.fixture
def shop(write: Write, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with a package, which this process imports, too."""
    prices = "import uploaded_rates\n\n\ndef price(items):\n    return items * uploaded_rates.RATE\n"
    folder = write(uploaded_rates="RATE = 3", uploaded_shop__in__prices=prices)
    (folder / "uploaded_shop" / "__init__.py").write_text("from .prices import price\n")
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in [name for name in sys.modules if name.startswith("uploaded_")]:
        del sys.modules[name]


def reader(name: str, attribute: str = "VALUE") -> Callable[[], Any]:
    """A function that returns what a module has. It is pickled by value."""
    return lambda: getattr(__import__(name, fromlist=["*"]), attribute)


def test_tasks_import_what_was_uploaded(address: str, shop: Path, tmp_path: Path) -> None:
    price = importlib.import_module("uploaded_shop").price
    with Client(address, timeout_seconds=SECONDS, modules=[shop]) as client:
        assert client.submit(price, 14).result(SECONDS) == 42
        assert client.map(price, [(1,), (2,)]) == [3, 6]
        where = client.submit(reader("uploaded_rates", "__file__")).result(SECONDS)
        assert Path(where).is_relative_to(tmp_path / "cache" / "running")
    with Client(address, timeout_seconds=SECONDS) as client, pytest.raises(Exception, match="No module named"):
        client.submit(reader("uploaded_rates")).result(SECONDS)  # workers of another client do not have them


def test_the_same_modules_travel_once(address: str, daemon: SchedulerCommand, write: Write) -> None:
    folder = write(uploaded_one="VALUE = 1", uploaded_two="VALUE = 2")

    def run() -> None:
        with Client(address, timeout_seconds=SECONDS, modules=[folder]) as client:
            assert client.submit(reader("uploaded_two")).result(SECONDS) == value_in(folder / "uploaded_two.py")

    with monitor(daemon.monitor_address) as watch:
        run()
        first = watch.next()
        run()
        again = watch.next()
        for counts in ("received", "sent"):
            names = ("contents", "contents_wanted", "environment_ready", "change_worker")
            before, after = (getattr(snapshot, counts) for snapshot in (first, again))
            assert [after.get(name) for name in names] == [before.get(name) for name in names]
        write(uploaded_two="VALUE = 22")
        run()
        changed = watch.next()
        assert changed.received["contents"] == first.received["contents"] + 1


def value_in(path: Path) -> int:
    return int(path.read_text().partition("= ")[2])


def test_tasks_keep_the_modules_that_they_were_submitted_with(
    tmp_path: Path, daemon: SchedulerCommand, write: Write
) -> None:
    folder = write(uploaded_version="VALUE = 1")
    gate = str(tmp_path / "gate")

    def waits() -> int:
        import os
        import time

        while not os.path.exists(gate):
            time.sleep(0.01)
        return int(reader("uploaded_version")())

    with (
        cluster(tmp_path, daemon.address, 1, "--environment-cache", str(tmp_path / "cache")),
        Client(daemon.address, timeout_seconds=SECONDS, modules=[folder]) as client,
    ):
        running = client.submit(waits)
        wait_until(running.running, SECONDS, "the task runs")
        queued = client.submit(reader("uploaded_version"))
        write(uploaded_version="VALUE = 2")
        client.upload_modules()
        new = client.submit(reader("uploaded_version"))
        Path(gate).touch()
        assert [future.result(SECONDS) for future in (running, queued, new)] == [1, 1, 2]


def test_two_clients_with_different_versions_run_beside_one_another(address: str, tmp_path: Path, write: Write) -> None:
    folders = [write(f"version{number}", uploaded_version=f"VALUE = {number}") for number in (1, 2)]
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    place = str(meeting)

    def meets() -> int:
        import os
        import time

        import uploaded_version  # type: ignore[import-not-found]

        open(os.path.join(place, str(uploaded_version.VALUE)), "w").close()
        while len(os.listdir(place)) < 2:
            time.sleep(0.01)
        return int(uploaded_version.VALUE)

    with (
        Client(address, timeout_seconds=SECONDS, modules=[folders[0]]) as one,
        Client(address, timeout_seconds=SECONDS, modules=[folders[1]]) as two,
    ):
        futures = [one.submit(meets), two.submit(meets)]
        assert [future.result(SECONDS) for future in futures] == [1, 2]


def test_child_tasks_import_what_their_parent_imports(address: str, shop: Path) -> None:
    def parent() -> tuple[int, str]:
        from scaler_client import Client

        with Client(modules=["/does/not/exist"]) as client:
            future = client.submit(reader("uploaded_rates", "RATE"))
            try:
                client.upload_modules("/does/not/exist")
            except RuntimeError as error:
                return future.result(), str(error)
        return 0, ""

    with Client(address, timeout_seconds=SECONDS, modules=[shop]) as client:
        value, why = client.submit(parent).result(SECONDS)
    assert value == 3 and why.startswith("upload modules outside of tasks")


def test_an_asyncio_client(address: str, write: Write) -> None:
    async def run() -> list[int]:
        folder = write(uploaded_first="VALUE = 1")
        async with AsyncClient(address, timeout_seconds=SECONDS, modules=[folder]) as client:
            first = await client.submit(reader("uploaded_first"))
            await client.upload_modules(write("more", uploaded_second="VALUE = 2"))
            return [
                first,
                await client.submit(reader("uploaded_second")),
                await client.submit(reader("uploaded_first")),
            ]

    assert asyncio.run(run()) == [1, 2, 1]


def test_modules_that_cannot_be_read(address: str, tmp_path: Path, write: Write) -> None:
    with pytest.raises(ModulesError, match="missing: No such file or directory"):
        Client(address, timeout_seconds=SECONDS, modules=[tmp_path / "missing"])
    with Client(address, timeout_seconds=SECONDS) as client:
        with pytest.raises(ModulesError, match="No such file"):
            client.upload_modules(tmp_path / "missing")
        with pytest.raises(TypeError, match="is not the path of a file"):
            client.upload_modules(7)  # type: ignore[arg-type]
        assert client.submit(abs, -1).result(SECONDS) == 1


def test_modules_that_cannot_be_read_are_told_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = threading.active_count()
    with pytest.raises(ModulesError, match="missing: No such file or directory"):
        Client("tcp://127.0.0.1:1", timeout_seconds=SECONDS, modules=[tmp_path / "missing"])  # nobody answers there
    assert threading.active_count() == threads
    monkeypatch.delenv("SCALER_ADDRESS", raising=False)
    monkeypatch.setattr("scaler_client.api.client.LocalCluster", lambda: pytest.fail("a cluster was started"))
    with pytest.raises(ModulesError, match="missing: No such file or directory"):
        Client(modules=[tmp_path / "missing"])


def test_an_operator_who_allows_nothing(
    tmp_path: Path, daemon: SchedulerCommand, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write(uploaded_one="VALUE = 1")
    with cluster(tmp_path, daemon.address, 1, "--environments", "none"):
        with Client(daemon.address, timeout_seconds=SECONDS, modules=[folder]) as client:
            future = client.submit(reader("uploaded_one"))
            wait_until(lambda: "(scaler_cluster --environments modules)" in caplog.text, SECONDS, "the notice")
            assert not future.done()
        with Client(daemon.address, timeout_seconds=SECONDS) as client:
            assert client.submit(abs, -1).result(SECONDS) == 1


def test_a_cache_that_was_tampered_with(tmp_path: Path, daemon: SchedulerCommand, write: Write) -> None:
    folder = write(uploaded_one="VALUE = 1")
    cache = tmp_path / "cache"
    for expected in ("", "was changed: it is removed and got again"):
        with (
            cluster(tmp_path, daemon.address, 1, "--environment-cache", str(cache)) as agent,
            Client(daemon.address, timeout_seconds=SECONDS, modules=[folder]) as client,
        ):
            assert client.submit(reader("uploaded_one")).result(SECONDS) == 1
            assert expected in agent.log()
        for content in (cache / "contents").iterdir():
            content.write_text("VALUE = 'evil'")
        assert not list((cache / "running").iterdir()), "an agent removes its folders at its end"


def test_a_cache_that_cannot_be_used(tmp_path: Path, daemon: SchedulerCommand, write: Write) -> None:
    (tmp_path / "cache").write_text("")
    with (
        cluster(tmp_path, daemon.address, 1, "--environment-cache", str(tmp_path / "cache")),
        Client(daemon.address, timeout_seconds=SECONDS, modules=[write(uploaded_one="VALUE = 1")]) as client,
    ):
        with pytest.raises(Exception, match=r"could prepare the environment .*: host .*--environment-cache"):
            client.submit(reader("uploaded_one")).result(SECONDS)
        future = client.submit(reader("uploaded_one"))
        assert future.exception(SECONDS) is not None


def test_modules_after_a_restart_of_the_scheduler(tmp_path: Path, write: Write) -> None:
    folder = write(uploaded_one="VALUE = 1")
    with scheduler(tmp_path) as first:
        where = first.address
        agent = cluster(tmp_path, where, 1, "--environment-cache", str(tmp_path / "cache"))
        with agent, Client(where, timeout_seconds=SECONDS, modules=[folder]) as client:
            assert client.submit(reader("uploaded_one")).result(SECONDS) == 1
            first.process.send_signal(signal.SIGKILL)
            first.process.wait()
            future = client.submit(reader("uploaded_one"))
            with scheduler(tmp_path, address=where):
                assert future.result(SECONDS) == 1
                write(uploaded_one="VALUE = 2")
                client.upload_modules()
                assert client.submit(reader("uploaded_one")).result(SECONDS) == 2


def test_a_module_that_is_missing_says_what_to_type(address: str, shop: Path) -> None:
    price = importlib.import_module("uploaded_shop").price
    hidden = shop.rename(shop.with_name("hidden"))  # as on another machine
    with Client(address, timeout_seconds=SECONDS) as client:
        with pytest.raises(FunctionLoadError, match=r"(?s)No module named 'uploaded_shop'.*Client\(modules=\["):
            client.submit(price, 1).result(SECONDS)
        hidden.rename(shop)
        client.upload_modules(shop)
        assert client.submit(price, 1).result(SECONDS) == 3


def test_a_native_extension(address: str, tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if compiler is None or not header.exists():
        pytest.skip("no C compiler, or no headers of Python")
    source = tmp_path / "uploaded_native.c"
    source.write_text(
        "#include <Python.h>\n"
        'static struct PyModuleDef made = {PyModuleDef_HEAD_INIT, "uploaded_native", 0, -1, 0};\n'
        "PyMODINIT_FUNC PyInit_uploaded_native(void) {\n"
        "    PyObject *module = PyModule_Create(&made);\n"
        '    PyModule_AddIntConstant(module, "VALUE", 42);\n'
        "    return module;\n}\n"
    )
    library = tmp_path / "native" / f"uploaded_native{sysconfig.get_config_var('EXT_SUFFIX')}"
    library.parent.mkdir()
    subprocess.run([compiler, "-shared", "-fPIC", f"-I{header.parent}", str(source), "-o", str(library)], check=True)
    with Client(address, timeout_seconds=SECONDS, modules=[library]) as client:
        assert client.submit(reader("uploaded_native")).result(SECONDS) == 42
    assert os.path.exists(library)
