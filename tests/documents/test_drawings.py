"""The drawings of the documents show what the code says, and the page about values has the code's constants."""

from __future__ import annotations

import html
import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from tests.test_house import LAYERS

import scaler_client
from scaler_client.commands import object_files
from scaler_client.io import io_thread
from scaler_client.pickling import call_pickles
from scaler_scheduler.core.completion import takeover
from scaler_scheduler.core.data import input_delivery, spare_copies, transfers
from scaler_scheduler.core.placement import near_data
from scaler_worker.agent import downloads
from scaler_worker.objects import host_storage, kept_results

ROOT = Path(__file__).resolve().parents[2]
VALUES = (ROOT / "scheduler_daemon/docs/values.md").read_text("utf-8")
SVG = "{http://www.w3.org/2000/svg}"

CONSTANTS = {
    "16 MiB": [(io_thread, "LOCAL_BYTES", 16 << 20)],
    "64 KiB": [(object_files, "SHARED_BYTES", 64 << 10), (input_delivery, "SHARED_BYTES", 64 << 10)],
    "256 B": [(call_pickles, "SMALL_BYTES", 256), (input_delivery, "SMALL_BYTES", 256)],
    "16 KiB": [(input_delivery, "INLINE_BYTES", 16 << 10)],
    "4 KiB": [(kept_results, "SMALL_BYTES", 4 << 10)],
    "4, 4, 2": [(transfers, "MAX_IN", 4), (transfers, "MAX_OUT", 4), (transfers, "MAX_BETWEEN", 2)],
    "below 1 MiB": [(transfers, "WHOLE_BYTES", 1 << 20)],
    "an eighth": [(transfers, "LEAST_PART", 1 / 8), (spare_copies, "LEAST_FREE", 1 / 8)],
    "30 s": [(transfers, "QUEUE_SECONDS", 30)],
    "5 s, 15 s": [(downloads, "CONNECT_SECONDS", 5), (downloads, "SILENCE_SECONDS", 15)],
    "300 s": [(transfers, "UNREACHABLE_SECONDS", 300)],
    "80 %": [(host_storage, "SPILL_ABOVE", 0.8)],
    "70 %": [(host_storage, "SPILL_DOWN_TO", 0.7)],
    "60 %": [(host_storage, "RELEASE_ABOVE", 0.6)],
    "2 s": [(host_storage, "ROOM_SECONDS", 2)],
    "5 s, then": [(takeover, "HOST_SECONDS", 5)],
}
"""What the page says, and what it says it of."""


@pytest.fixture(scope="module")
def drawings() -> ModuleType:
    """The module that makes the drawings. It belongs to no package."""
    path = ROOT / "packaging/documents/drawings.py"
    spec = importlib.util.spec_from_file_location("drawings", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arrows(path: Path) -> dict[tuple[str, str], str]:
    """The arrows of a drawing, each with its label."""
    found = {}
    for group in ElementTree.parse(path).iter(f"{SVG}g"):
        title = group.find(f"{SVG}title")
        if group.get("class") == "edge" and title is not None:
            begin, end = html.unescape(title.text or "").split("->")
            found[begin, end] = " ".join(text.text or "" for text in group.iter(f"{SVG}text"))
    return found


def words(path: Path) -> str:
    return " ".join(text.text or "" for text in ElementTree.parse(path).iter(f"{SVG}text"))


def test_states_are_drawn_as_the_tables_have_them(drawings: ModuleType) -> None:
    for name, edges in drawings.state_drawings().items():
        wanted = {ends: ", ".join(actions) for ends, actions in edges.items()}
        assert arrows(drawings.FOLDER / f"{name}.svg") == wanted, "python packaging/documents/drawings.py"


def test_ports_are_drawn_and_their_options_exist(drawings: ModuleType) -> None:
    assert arrows(drawings.FOLDER / "ports.svg") == drawings.PORTS
    configuration = (ROOT / "scheduler_daemon/docs/configuration.md").read_text("utf-8")
    for option in set(drawings.PORTS.values()):
        name, _, command = option.partition(" of ")
        if command == "Client":
            assert name.rstrip("=") in inspect.signature(scaler_client.Client).parameters
        elif name != "ADDRESS":
            part = configuration.partition(f"## {command}\n")[2].partition("\n## ")[0]
            assert name in part, option


def test_layers_are_drawn_as_the_imports_are(drawings: ModuleType) -> None:
    shown = re.split(r"[, ]+", words(drawings.FOLDER / "layers.svg"))
    assert sorted(shown) == sorted([*LAYERS, *(room for layers in LAYERS.values() for each in layers for room in each)])
    assert len(arrows(drawings.FOLDER / "layers.svg")) == sum(len(layers) - 1 for layers in LAYERS.values())


def test_the_page_about_values_has_the_constants_of_the_code() -> None:
    for said, constants in CONSTANTS.items():
        assert said in VALUES
        for module, name, value in constants:
            assert getattr(module, name) == value
            assert re.search(rf"\b{name}\b", VALUES), name
    assert near_data.NearData.__name__ in VALUES


def test_the_page_about_values_names_files_that_exist() -> None:
    packages = ("scheduler_daemon/scaler_scheduler", "client_lib/scaler_client", "worker_lib/scaler_worker", ".")
    for name in re.findall(r"`([\w/]+/[\w/]*\w(?:\.py|/))`", VALUES):
        assert any((ROOT / package / name).exists() for package in packages), name
