"""What a task finds in its process: variables for its GPUs, and threads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scaler_worker.task_environment import THREAD_VARIABLES, TaskEnvironment, visible_devices


def test_variables_are_put_back() -> None:
    before = {"CUDA_VISIBLE_DEVICES": "0,1,2,3", "OMP_NUM_THREADS": "8", "HOME": "/"}
    environ = dict(before)
    environment = TaskEnvironment(environ, has_amd_devices=False)
    environment.enter("7 cpus=2 gpu=1.5:1+3")
    assert environ["CUDA_VISIBLE_DEVICES"] == environ["HIP_VISIBLE_DEVICES"] == environ["ROCR_VISIBLE_DEVICES"] == "1,3"
    assert {environ[name] for name in THREAD_VARIABLES} == {"2"}
    environment.enter("8 gpu=0.5:0")
    assert (environ["CUDA_VISIBLE_DEVICES"], environ["OMP_NUM_THREADS"]) == ("0", "8")
    environment.enter("")
    assert environ == before
    environment.enter("9 license=1")
    environment.leave()
    environment.leave()
    assert environ == before


@pytest.mark.parametrize(
    ("visible", "wanted"), [("4,5,6", "4,6"), ("GPU-a, GPU-b,GPU-c", "GPU-a,GPU-c"), ("", "0,2"), ("7", "7,2")]
)
def test_ids_count_the_devices_that_the_cluster_sees(visible: str, wanted: str) -> None:
    assert visible_devices((0, 2), {"CUDA_VISIBLE_DEVICES": visible})["CUDA_VISIBLE_DEVICES"] == wanted


def test_with_amds_driver_hip_counts_what_rocr_leaves() -> None:
    assert visible_devices((1, 3), {}, has_amd_devices=True) == {
        "CUDA_VISIBLE_DEVICES": "0,1",
        "HIP_VISIBLE_DEVICES": "0,1",
        "ROCR_VISIBLE_DEVICES": "1,3",
    }


@pytest.mark.main_environment
def test_the_threads_of_loaded_libraries_are_put_back() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    pytest.importorskip("numpy")

    def threads() -> list[int]:
        return [each["num_threads"] for each in threadpoolctl.threadpool_info()]

    before = threads()
    environment = TaskEnvironment({})
    environment.enter("7 cpus=1")
    assert set(threads()) <= {1}
    environment.leave()
    assert threads() == before


def test_a_suspended_task_keeps_its_directory_and_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCALER_TEST_KEPT", "before")
    monkeypatch.delenv("SCALER_TEST_NEW", raising=False)
    environment = TaskEnvironment()
    environment.note()
    environment.enter("7 gpu=1:3")
    environment.note()  # a function was loaded, which sets nothing
    (tmp_path / "own").mkdir()
    os.chdir("own")
    os.environ["SCALER_TEST_NEW"] = "\udc80 of the parent"
    del os.environ["SCALER_TEST_KEPT"]
    environment.leave()
    parent = environment.suspend()
    assert Path.cwd() == tmp_path
    assert (os.environ.get("SCALER_TEST_NEW"), os.environ.get("SCALER_TEST_KEPT")) == (None, "before")
    assert os.environ.get("CUDA_VISIBLE_DEVICES") is None
    environment.note()
    os.chdir("/")
    os.environ["SCALER_TEST_NEW"] = "of the child"
    environment.resume(parent)
    assert Path.cwd() == tmp_path / "own"
    assert (os.environ.get("SCALER_TEST_NEW"), os.environ.get("SCALER_TEST_KEPT")) == ("\udc80 of the parent", None)
    assert os.getenvb(b"SCALER_TEST_NEW") == b"\x80 of the parent"
    os.rmdir(tmp_path / "own")
    parent = environment.suspend()
    assert Path.cwd() == tmp_path
    environment.resume(parent)
    assert Path.cwd() == tmp_path, "its directory is gone"
