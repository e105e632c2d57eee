"""The counted resources of this host: what the operator says, and the GPUs that are found."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping

from scaler_client.commands.machine import usable_cores, usable_memory
from scaler_client.commands.options import suggestion
from scaler_client.commands.resource_amounts import CPUS, UNIT, units_of
from scaler_client.protocol.messages import HostResource

GPU, MEMORY = "gpu", "memory"

WITH_IDS = frozenset([GPU])
"""Resources whose units have ids."""

_KNOWN = (CPUS, GPU, MEMORY)
"""Names that have a meaning; all others are the operator's own."""

_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


def host_resources(configured: Mapping[str, int], gpus: int) -> tuple[HostResource, ...]:
    """Return what the agent says that its host has.

    Args:
        configured: thousandths by name, as the operator gives them. 0: the host has none.
        gpus: the number of GPUs that were found; `gpu` of the operator replaces it.
    """
    amounts = {GPU: gpus * UNIT, **configured}
    return tuple([HostResource(name, amount, name in WITH_IDS) for name, amount in sorted(amounts.items()) if amount])


def found_gpus(environ: Mapping[str, str], root: str = "/") -> int:
    """Return the number of GPUs of NVIDIA or AMD that processes of this cluster can use.

    Args:
        environ: the environment. If it names the devices that are visible, these are counted.
        root: the folder with /dev, /proc and /sys.
    """
    nvidia = len([path for path in glob.glob(os.path.join(root, "dev/nvidia*")) if re.search(r"nvidia[0-9]+$", path)])
    nvidia = nvidia or len(glob.glob(os.path.join(root, "proc/driver/nvidia/gpus/*")))
    devices = nvidia or _amd_gpus(root)
    for name in _VISIBLE:
        given = environ.get(name)
        if devices and given is not None:
            visible = [each.strip() for each in given.split(",")]
            usable = [each for each in visible if each and each not in ("-1", "NoDevFiles")]
            devices = min(devices, len(usable)) if not usable or usable[0].isdigit() else len(usable)
    return devices


def _amd_gpus(root: str) -> int:
    """Nodes of AMD's driver that have compute units, and so are no processors."""
    count = 0
    for path in glob.glob(os.path.join(root, "sys/class/kfd/kfd/topology/nodes/*/properties")):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                found = re.search(r"^simd_count ([0-9]+)$", file.read(), re.MULTILINE)
        except OSError:
            continue
        count += found is not None and int(found[1]) > 0
    return count


def warnings(configured: Mapping[str, int], gpus: int = 0) -> list[str]:
    """Return a text for each resource of which the operator claims more than this process may use, and for each that
    is probably misspelt.

    Args:
        configured: thousandths by name, as the operator gives them.
        gpus: the number of GPUs that were found; 0: it is not known how many there are.
    """
    texts = []
    for name in configured:
        hint = "" if name in _KNOWN else suggestion(name.lower(), _KNOWN)
        if hint:
            texts.append(f"--resources {name}: tasks must ask for it by this name{hint}")
    if 0 < gpus * UNIT < configured.get(GPU, 0):
        texts.append(
            f"--resources gpu={units_of(configured[GPU])} is more than the {gpus} that this cluster can use: tasks may "
            "get ids of GPUs that are not there"
        )
    memory = usable_memory()
    if memory and configured.get(MEMORY, 0) > memory * UNIT:
        claimed = configured[MEMORY] / UNIT / 2**30
        texts.append(
            f"--resources memory={claimed:.4g}G is more than the {memory / 2**30:.4g}G that this machine or the "
            "cgroup has: tasks may be killed"
        )
    cores = usable_cores()
    if configured.get(CPUS, 0) > cores * UNIT:
        texts.append(
            f"--resources cpus={units_of(configured[CPUS])} is more than the {cores} cores that this process may use"
        )
    return texts
