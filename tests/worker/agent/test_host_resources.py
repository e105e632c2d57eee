"""The resources of a host: what the operator says, GPUs that are found, and claims beyond the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaler_client.protocol.messages import HostResource
from scaler_worker.agent import host_resources
from scaler_worker.agent.host_resources import found_gpus, warnings


def make(root: Path, *paths: str) -> None:
    for path in paths:
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()


def test_gpus_of_nvidia(tmp_path: Path) -> None:
    make(tmp_path, "dev/nvidia0", "dev/nvidia1", "dev/nvidia11", "dev/nvidiactl", "dev/nvidia-uvm")
    assert found_gpus({}, str(tmp_path)) == 3


def test_gpus_of_nvidia_without_device_files(tmp_path: Path) -> None:
    make(tmp_path, "proc/driver/nvidia/gpus/0000:01:00.0/information", "proc/driver/nvidia/gpus/0000:02:00.0/registry")
    assert found_gpus({}, str(tmp_path)) == 2


def test_gpus_of_amd(tmp_path: Path) -> None:
    for node, simds in enumerate((0, 304, 304)):
        path = tmp_path / f"sys/class/kfd/kfd/topology/nodes/{node}/properties"
        make(tmp_path, str(path.relative_to(tmp_path)))
        path.write_text(f"cpu_cores_count {64 if not simds else 0}\nsimd_count {simds}\nmem_banks_count 1\n")
    assert found_gpus({}, str(tmp_path)) == 2


@pytest.mark.parametrize(
    ("visible", "count"),
    [("0,2", 2), ("1", 1), ("", 0), ("-1", 0), ("NoDevFiles", 0), ("GPU-8d3f,GPU-77aa", 2), ("0,1,2,3,4", 3)],
)
def test_only_visible_gpus_count(tmp_path: Path, visible: str, count: int) -> None:
    make(tmp_path, "dev/nvidia0", "dev/nvidia1", "dev/nvidia2")
    assert found_gpus({"CUDA_VISIBLE_DEVICES": visible}, str(tmp_path)) == count


def test_no_gpus(tmp_path: Path) -> None:
    assert found_gpus({"CUDA_VISIBLE_DEVICES": "0,1"}, str(tmp_path)) == 0


def test_the_operators_word_replaces_what_was_found() -> None:
    found = host_resources.host_resources({"memory": 5, "gpu": 2000}, 8)
    assert found == (HostResource("gpu", 2000, True), HostResource("memory", 5, False))
    assert host_resources.host_resources({}, 8) == (HostResource("gpu", 8000, True),)
    assert host_resources.host_resources({"gpu": 0}, 8) == ()


def test_claims_beyond_the_cgroup_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_resources, "usable_memory", lambda: 16 << 30)
    monkeypatch.setattr(host_resources, "usable_cores", lambda: 4)
    assert warnings({"memory": 16_000 << 30, "cpus": 4000, "license": 10**9}) == []
    assert warnings({"memory": 64_000 << 30, "cpus": 8500}) == [
        "--resources memory=64G is more than the 16G that this machine or the cgroup has: tasks may be killed",
        "--resources cpus=8.5 is more than the 4 cores that this process may use",
    ]
    assert warnings({"gpu": 4000}) == warnings({"gpu": 2000}, 2) == warnings({"gpu": 0}, 2) == []
    assert warnings({"gpu": 4000}, 2) == [
        "--resources gpu=4 is more than the 2 that this cluster can use: tasks may get ids of GPUs that are not there"
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("GPU", "gpu"), ("gpus", "gpu"), ("cpu", "cpus"), ("CPUS", "cpus"), ("Memory", "memory"), ("memroy", "memory")],
)
def test_names_that_are_probably_misspelt_are_warned_of(name: str, meant: str) -> None:
    assert warnings({name: 1000}) == [f"--resources {name}: tasks must ask for it by this name (did you mean {meant}?)"]


def test_the_operators_own_names_are_not_warned_of() -> None:
    assert warnings({"license": 1000, "fpga": 1000, "tpu-v4": 1000, "disk": 1000}) == []
