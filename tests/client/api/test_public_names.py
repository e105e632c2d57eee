"""The public names of the library, and their docstrings."""

from __future__ import annotations

import asyncio
import builtins
import inspect
import pickle
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import scaler_client
from scaler_client import (
    AsyncClient,
    Client,
    ClusterExecutor,
    LocalCluster,
    SchedulerClusterCombo,
    named,
    register_joblib,
)


def test_completion_offers_the_public_names_and_no_modules() -> None:
    offered = {name for name in dir(scaler_client) if not name.startswith("_")}
    assert offered == set(scaler_client.__all__)
    assert not [name for name in offered if isinstance(getattr(scaler_client, name), types.ModuleType)]
    assert "__version__" in dir(scaler_client)


@pytest.mark.parametrize(
    "call, method",
    [
        (lambda client: client.submit(), "submit"),
        (lambda client: client.map(pow, [1], [2]), "map"),
        (lambda client: client.map(pow), "map"),
        (lambda client: client.options(speed=1), "options"),
        (lambda client: client.send_object(), "send_object"),
        (lambda client: client.get({}), "get"),
        (lambda client: client.clear(1), "clear"),
    ],
)
def test_a_wrong_call_names_the_called_class(call: Callable[[Any], object], method: str) -> None:
    with pytest.raises(TypeError, match=rf"^Client\.{method}\(\) "):
        call(object.__new__(Client))


def test_map_of_several_iterables_suggests_the_right_call() -> None:
    with pytest.raises(TypeError) as error:
        object.__new__(Client).map(pow, [1], [2], [3])  # type: ignore[arg-type]
    assert "but 3 were given: " in str(error.value)
    assert str(error.value).endswith("client.executor().map(fn, xs, ys) or client.map(fn, zip(xs, ys))")
    with pytest.raises(TypeError, match=r"^AsyncClient\.map\(\) .* use client\.map\(fn, zip\(xs, ys\)\)$"):
        asyncio.run(object.__new__(AsyncClient).map(pow, [1], [2]))  # type: ignore[arg-type]


def test_public_methods_of_a_client() -> None:
    assert {name for name in dir(Client) if not name.startswith("_")} == {
        "address", "as_completed", "clear", "dask_get", "disconnect", "executor", "gather", "get", "imap",
        "imap_unordered", "map", "options", "send_object", "shutdown", "submit", "submit_gang", "submit_graph",
        "upload_modules", "wait",
    }  # fmt: skip


def public_members(value: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield a public name and, of a class, its public methods and properties that the library defines."""
    yield value.__name__, value
    for name in dir(value) if inspect.isclass(value) else ():
        owner = next(each for each in value.__mro__ if name in vars(each))
        member = inspect.getattr_static(value, name)
        member = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if not name.startswith("_") and owner.__module__.startswith("scaler_client") and callable(member):
            yield f"{value.__name__}.{name}", member


@pytest.mark.parametrize("name", scaler_client.__all__)
def test_every_public_name_has_a_docstring(name: str) -> None:
    members = public_members(getattr(scaler_client, name))
    assert [shown for shown, member in members if not (member.__doc__ or "").strip()] == []


@pytest.mark.parametrize(
    "value", [Client, AsyncClient, ClusterExecutor, LocalCluster, SchedulerClusterCombo, named, register_joblib]
)
def test_docstrings_name_every_argument_and_the_result(value: Any) -> None:
    for shown, member in public_members(value):
        if member is ClusterExecutor:
            continue  # Client.executor makes it
        text = inspect.getdoc(member) or ""
        signature = inspect.signature(member)
        wanted = [name for name in signature.parameters if name != "self" and not name.startswith("_")]
        documented = re.findall(r"^    (\w+): ", text.partition("Args:")[2], re.MULTILINE)
        assert [name for name in wanted if name not in documented] == [], shown
        if wanted and not inspect.isclass(member) and signature.return_annotation != "None":
            assert "Returns:" in text, shown


def test_errors_that_a_client_raises_can_be_imported() -> None:
    """The docstrings of `Client` and its public methods name only errors that can be imported."""
    members = [Client, *(getattr(Client, name) for name in dir(Client) if not name.startswith("_"))]
    text = " ".join(part for member in members for part in (inspect.getdoc(member) or "").partition("Raises:")[2:])
    errors = set(re.findall(r"(?<![.\w])\w+Error\b", text))
    assert {"KeyFileError", "AddressError"} <= errors
    assert [name for name in errors if not hasattr(builtins, name) and not hasattr(scaler_client, name)] == []
    assert scaler_client.KeyFileError is sys.modules["scaler_client.commands.key_files"].KeyFileError


def test_methods_can_be_pickled_by_their_names() -> None:
    for method in (Client.submit, Client.get, Client.clear):
        assert pickle.loads(pickle.dumps(method)) is method
