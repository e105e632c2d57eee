"""A client and workers with different versions of a package, with real processes."""

from __future__ import annotations

import asyncio
import importlib
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest
from tests.integration.commands import Command, cluster_command, scheduler

from scaler_client import ArgumentLoadError, AsyncClient, Client, FunctionLoadError, ResultPickleError
from scaler_client.pickling import package_versions

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 30
NAME = "scaler_test_curves"


def install(folder: Path, version: str, source: str) -> Path:
    folder.mkdir()
    (folder / f"{NAME}.py").write_text(source)
    info = folder / f"{NAME}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version}\n")
    (info / "RECORD").write_text(f"{NAME}.py,,\n")
    return folder


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client with version 2 of the package; the worker has version 1."""
    folder = tmp_path_factory.mktemp("versions")
    there = install(folder / "there", "1.0", "class Old: pass\n")
    here = install(folder / "here", "2.0", "class New: pass\ndef fit(x): return x\n")
    with scheduler(folder) as started, pytest.MonkeyPatch.context() as patch:
        command = cluster_command("-n", "1", started.address)
        agent = Command(command, folder / "cluster.log", PYTHONPATH=str(there))
        patch.syspath_prepend(here)
        package_versions._distributions.cache_clear()
        try:
            with Client(started.address) as client:
                yield client
        finally:
            agent.end()
            package_versions._distributions.cache_clear()
            sys.modules.pop(NAME, None)


def table(error: BaseException) -> list[list[str]]:
    """The rows of the table in an error's text, without those of other packages."""
    lines = str(error).splitlines()
    assert "can't be unpickled" in lines[0]
    return [line.split() for line in lines[1:] if line.startswith(("what differs", NAME))]


def test_a_function_and_arguments_that_need_the_newer_version(client: Client) -> None:
    import scaler_test_curves as curves  # type: ignore[import-not-found]

    expected = [["what", "differs", "here", "there"], [NAME, "2.0", "1.0"]]
    with pytest.raises(FunctionLoadError) as failed:
        client.submit(curves.fit, 1).result(SECONDS)
    assert table(failed.value) == expected and isinstance(failed.value.__cause__, ImportError)
    for submit in (
        lambda: client.submit(abs, curves.New()).result(SECONDS),
        lambda: client.map(abs, [(curves.New(),)]),
    ):
        with pytest.raises(ArgumentLoadError) as refused:
            submit()
        assert table(refused.value) == expected and isinstance(refused.value.__cause__, AttributeError)
        assert f"pip install {NAME}==2.0" in str(refused.value) and "Client(environment=...)" in str(refused.value)


def test_a_result_of_the_older_version(client: Client) -> None:
    def make() -> object:
        # An import statement would name the module of this process, which must not be another one on workers.
        return [importlib.import_module(NAME).Old()]

    with pytest.raises(ResultPickleError) as failed:
        client.submit(make).result(SECONDS)
    assert table(failed.value) == [["what", "differs", "here", socket.gethostname()], [NAME, "2.0", "1.0"]]
    assert isinstance(failed.value.__cause__, AttributeError) and f"pip install {NAME}==1.0" in str(failed.value)

    async def ask() -> BaseException | None:
        async with AsyncClient(client.address) as other:
            (error,) = await asyncio.gather(other.submit(make), return_exceptions=True)
            return error

    error = asyncio.run(ask())
    assert isinstance(error, ResultPickleError) and table(error) == table(failed.value)
    with pytest.raises(ResultPickleError) as again:
        client.map(make, [()])
    assert table(again.value) == table(failed.value)
