"""What a snapshot says about the work of a scheduler."""

from __future__ import annotations

import math

from tests.client.monitor.published_frames import Texts, snapshot_frame, table

from scaler_client.autoscale import AgentLoad, Demand, Need, demand_of
from scaler_client.autoscale.demand import capabilities_of, remaining_seconds
from scaler_client.monitor.reader import MonitorReader


def demand(**fields: object) -> Demand:
    reader = MonitorReader(0.0)
    reader.feed(snapshot_frame(1, 60.0, **fields), 0.0)
    assert reader.view is not None
    return demand_of(reader.view.snapshot)


def test_needs_with_limits() -> None:
    found = demand(
        waiting=10, dispatched=3, resolved=20,
        needs=[
            {"capabilities": "gpu=2 linux=1", "kind": "cloudpickle 3.11", "limits": ["db", "api"], "waiting": 8,
             "unknown": 2, "milliseconds": 1500},
            {"waiting": 2, "unknown": 2},
        ],
        limits=[{"name": "db", "most": 10, "running": 7}, {"name": "api", "perSecond": 5.0}],
    )  # fmt: skip
    assert found.needs == (
        Need(8, 1.5, 2, {"gpu": 2, "linux": 1}, kind="cloudpickle 3.11", most=3),
        Need(2, 0.0, 2),
    )
    assert (found.waiting, found.submitted) == (10, 33)


def test_needs_with_resources_and_full_shares() -> None:
    found = demand(
        needs=[{"waiting": 9, "unknown": 9, "held": 7, "resources": [{"name": "gpu", "amount": 500}]}],
    )
    assert found.needs == (Need(9, 0.0, 9, resources={"gpu": 0.5}, most=2),)


def test_loads_of_agents() -> None:
    texts = Texts()
    worker = {"agents": 7, "languages": texts("python 3.11.7"), "capabilities": texts("gpu=1")}
    runs = {"attempts": 1, "held": 1, "running": 1}
    workers = [
        {**worker, "incarnations": 1, **runs, "functions": 1, "runMilliseconds": 3000},  # 10 s are usual
        {**worker, "incarnations": 2, **runs, "functions": 2, "runMilliseconds": 1000},  # has never returned
        {**worker, "incarnations": 3, "held": 5},  # short ones
        {**worker, "incarnations": 4, "held": 1, "suspended": 1},  # waits for its children
        {**worker, "incarnations": 5},
        {"agents": 8, "incarnations": 6, "states": 16, "languages": texts("c++"), "capabilities": texts("")},
    ]
    agents = [
        {
            "incarnations": 7,
            "names": texts("big-0-abc123"),
            "memoryBytes": 5,
            "diskBytes": 6,
            "lastHeartbeatMilliseconds": 59_000,
        },
        {"incarnations": 8, "names": texts("other"), "lastHeartbeatMilliseconds": 30_000},
    ]
    functions = [{"numbers": 1, "done": 4, "runNanoseconds": 40_000_000_000}, {"numbers": 2}]
    found = demand(
        **table("workerColumns", *workers), **table("agentColumns", *agents), **table("functionColumns", *functions),
        texts=texts.field(), resources=[{"host": "h", "name": "gpu", "total": 4000, "booked": 1500, "agent": 8}],
    )  # fmt: skip
    remaining = (7.0, math.inf, 0.0, math.inf)
    assert found.agents == (
        AgentLoad("big-0-abc123", 5, remaining, {"gpu": 1}, "cloudpickle 3.11", value_bytes=11, silent_seconds=1.0),
        AgentLoad("other", 1, resources={"gpu": 4.0}, booked={"gpu": 1.5}, is_retiring=True, silent_seconds=30.0),
    )
    assert (found.done, found.run_seconds) == (4, 40.0)


def test_rest_of_a_running_task() -> None:
    assert remaining_seconds(None, 5.0) == math.inf
    assert remaining_seconds(10.0, 4.0) == 6.0
    assert remaining_seconds(10.0, 30.0) == 30.0  # it may run as long again


def test_capabilities_of_a_text() -> None:
    assert capabilities_of("") == {} and capabilities_of("gpu=2 a=b=1") == {"gpu": 2, "a=b": 1}
