"""What a user sees of the library's names."""

from __future__ import annotations

import pickle
import types
from collections.abc import Callable
from typing import Any

import pytest

import scaler_client
from scaler_client import Client


def test_completion_offers_what_there_is_for_users_and_no_modules() -> None:
    offered = {name for name in dir(scaler_client) if not name.startswith("_")}
    assert offered == set(scaler_client.__all__)
    assert not [name for name in offered if isinstance(getattr(scaler_client, name), types.ModuleType)]
    assert "__version__" in dir(scaler_client)


@pytest.mark.parametrize(
    "call, method",
    [
        (lambda client: client.submit(), "submit"),
        (lambda client: client.map(pow, [1], [2]), "map"),
        (lambda client: client.options(speed=1), "options"),
        (lambda client: client.send_object(), "send_object"),
        (lambda client: client.get({}), "get"),
        (lambda client: client.clear(1), "clear"),
    ],
)
def test_a_wrong_call_is_told_of_the_class_that_was_called(call: Callable[[Any], object], method: str) -> None:
    with pytest.raises(TypeError, match=rf"^Client\.{method}\(\) "):
        call(object.__new__(Client))


def test_methods_are_found_by_the_names_that_they_show() -> None:
    for method in (Client.submit, Client.get, Client.clear):
        assert pickle.loads(pickle.dumps(method)) is method
