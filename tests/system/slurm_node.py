"""A Slurm of one or several nodes in a booted machine: controller, node daemons and munge."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.system.machine import Machine
from tests.system.roots import CHECKOUT
from tests.system.service import free_port
from tests.waiting import wait_until

CORES = 8
"""The CPUs that the node claims to have, so that jobs do not wait on a small machine."""

_CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
AuthType=auth/munge
CryptoType=crypto/munge
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd.%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd{pid}.pid
SlurmdTimeout=10
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0
ReturnToService=2
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def _unit(node: str) -> str:
    return f"slurmd-{node}"


class SlurmNode:
    """A Slurm node. After its construction it accepts jobs."""

    def __init__(self, machine: Machine, names: Sequence[str] = ()) -> None:
        """`names` are those of several nodes. Without them there is one node, run by Debian's unit."""
        self.machine = machine
        host = machine.run("hostname").strip()
        line = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cores} RealMemory=1024"
        nodes = [line.format(name=name, host=host, port=free_port(), cores=CORES) for name in names or [host]]
        text = _CONFIGURATION.format(
            host=host, controller_port=free_port(), nodes="\n".join(nodes), pid="-%n" if names else ""
        )
        machine.write("/etc/slurm/slurm.conf", text)
        folders = [f"/var/lib/slurm/slurmd.{name}" for name in names or [host]]
        machine.run("install", "-d", "-o", "slurm", "/var/lib/slurm/slurmctld", *folders)
        for unit in ("munge", "slurmctld"):
            machine.run("systemctl", "restart", unit)
        if names:
            machine.run("systemctl", "stop", "slurmd", status=None)
            for name in names:
                machine.run("systemd-run", f"--unit={_unit(name)}", "slurmd", "-D", "-N", name)
        else:
            machine.run("systemctl", "restart", "slurmd")
        wait_until(lambda: self.node_states() == {"idle"}, 60.0, "all nodes")

    def node_states(self) -> set[str]:
        """The states of all nodes."""
        return set(self.machine.run("sinfo", "--noheader", "--Node", "--format=%T", status=None).split())

    def kill_node(self, name: str) -> None:
        """Kill a node of several: its daemon and all that it runs."""
        self.machine.run("systemctl", "kill", "--signal=KILL", _unit(name))

    def submit(self, *arguments: str) -> str:
        """Submit a job by sbatch in the tests' environment, so that workers find their modules. Returns its id."""
        environment = (f"PATH={Path(sys.executable).parent}:/usr/bin:/bin", f"PYTHONPATH={CHECKOUT}")
        said = self.machine.run("env", "--chdir=/root", *environment, "sbatch", "--parsable", *arguments)
        return said.strip()

    def states(self, job: str) -> set[str]:
        """The states of the job's elements. Slurm forgets ended ones after some minutes."""
        shown = self.machine.run("scontrol", "--oneliner", "show", "job", job)
        return {word.removeprefix("JobState=") for word in shown.split() if word.startswith("JobState=")}

    def log(self, job: str) -> str:
        """The output of the job's elements."""
        return self.machine.run("sh", "-c", f"cat /root/scaler-cluster-{job}_*.log")

    def end(self) -> None:
        """Cancel the jobs, because they would delay the halt of the machine."""
        self.machine.run("scancel", "--user=root", status=None)
        wait_until(lambda: not self.machine.run("squeue", "--noheader", status=None).strip(), 30.0, "the jobs' end")
