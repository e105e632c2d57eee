"""Average numbers over a gang with MPI. Needs `mpi4py` and `mpich` (both from PyPI) in the environment of the workers.

    python gang_mpi.py [tcp://SCHEDULER:PORT]

Without an address it starts a scheduler and four workers on this machine.

A process can begin MPI only once, but a worker runs many tasks. So the gang starts processes for MPI. Rank 0 starts
MPICH's `mpiexec`, which prints the command that each host has to run. One member on each host runs it.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from scaler_client import Client, LocalCluster, current_task

SIZE = 4
NAMES_COMMAND = "HYDRA_LAUNCH:"
"""The beginning of the lines of `mpiexec -launcher manual` that name a host's command."""
LAST_LINE = "HYDRA_LAUNCH_END"

PROGRAM = """
import json, sys
from mpi4py import MPI

world = MPI.COMM_WORLD
value = json.loads(sys.argv[1])[world.rank]
mean = world.allreduce(value) / world.size
ranks = world.gather(world.rank)
if world.rank == 0:
    print(json.dumps([ranks, mean]))
"""


def mean(values: list[float]) -> tuple[list[int], float] | None:
    """Return the ranks of the MPI processes and the mean over all of them, each of which knows one value.

    Members other than rank 0 return None.
    """
    gang = current_task().gang  # type: ignore[union-attr]
    assert gang is not None
    hosts = list(dict.fromkeys(gang.hosts))
    if gang.rank:
        _run_on_host(gang.all_gather(None)[0], hosts)
        return None
    slots = ",".join(f"host{number}:{gang.hosts.count(host)}" for number, host in enumerate(hosts))
    command = [str(Path(sys.executable).parent / "mpiexec"), "-launcher", "manual"]
    command += ["-localhost", os.environ["MASTER_ADDR"], "-hosts", slots, "-n", str(gang.size)]
    command += [sys.executable, "-c", PROGRAM, json.dumps(values)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as mpiexec:
        try:
            assert mpiexec.stdout is not None
            commands = []
            for line in mpiexec.stdout:
                if line.startswith(LAST_LINE):
                    break
                commands.append(line.removeprefix(NAMES_COMMAND))
            if len(commands) != len(hosts):
                raise RuntimeError(f"mpiexec does not name a command for each of {len(hosts)} host(s)")
            _run_on_host(gang.all_gather(commands)[0], hosts)
            ranks, result = json.loads(mpiexec.stdout.read())
        except BaseException:  # also if the task is stopped, because another member has failed
            mpiexec.kill()
            raise
    return ranks, result


def _run_on_host(commands: list[str], hosts: list[str]) -> None:
    """Run the MPI processes of this host, in the first of its members."""
    gang = current_task().gang  # type: ignore[union-attr]
    assert gang is not None
    if gang.local_rank == 0:
        subprocess.run(shlex.split(commands[hosts.index(gang.hosts[gang.rank])]), check=True)


def run(client: Client) -> tuple[list[int], float]:
    """Run the gang and return what rank 0 says."""
    [answer, *_] = client.submit_gang(mean, [1.0, 2.0, 6.0, 7.0], size=SIZE).result()
    assert answer is not None
    return answer


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with Client(sys.argv[1]) as client:
            print(run(client))
    else:
        with LocalCluster(SIZE) as cluster, Client(cluster.address) as client:
            print(run(client))
