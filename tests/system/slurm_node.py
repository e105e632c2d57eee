"""A Slurm of one node in a booted machine: controller, node daemon and munge."""

from __future__ import annotations

import sys
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
SlurmdPort={node_port}
AuthType=auth/munge
CryptoType=crypto/munge
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory=1024 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class SlurmNode:
    """A Slurm node. After its construction it accepts jobs."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        ports = {"controller_port": free_port(), "node_port": free_port()}
        text = _CONFIGURATION.format(host=machine.run("hostname").strip(), cores=CORES, **ports)
        machine.write("/etc/slurm/slurm.conf", text)
        machine.run("install", "-d", "-o", "slurm", "/var/lib/slurm/slurmctld", "/var/lib/slurm/slurmd")
        for unit in ("munge", "slurmctld", "slurmd"):
            machine.run("systemctl", "restart", unit)
        wait_until(
            lambda: machine.run("sinfo", "--noheader", "--format=%T", status=None).strip() == "idle", 60.0, "a node"
        )

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
