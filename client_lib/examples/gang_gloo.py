"""Average numbers over a gang with torch.distributed (gloo). Needs torch in the environment of the workers.

    python gang_gloo.py [tcp://SCHEDULER:PORT]

Without an address it starts a scheduler and four workers on this machine.
"""

from __future__ import annotations

import sys

from scaler_client import Client, LocalCluster, current_task

SIZE = 4


def mean(values: list[float]) -> tuple[int, float]:
    """Return the rank, and the mean over all members, each of which knows one value."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")  # reads MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE
    try:
        value = torch.tensor(values[dist.get_rank()])
        dist.all_reduce(value)
        task = current_task()
        assert task is not None and task.gang is not None and task.gang.rank == dist.get_rank()
        return dist.get_rank(), float(value) / dist.get_world_size()
    finally:
        dist.destroy_process_group()


def run(client: Client) -> list[tuple[int, float]]:
    """Run the gang and return what its members say."""
    return client.submit_gang(mean, [1.0, 2.0, 6.0, 7.0], size=SIZE).result()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with Client(sys.argv[1]) as client:
            print(run(client))
    else:
        with LocalCluster(SIZE) as cluster, Client(cluster.address) as client:
            print(run(client))
