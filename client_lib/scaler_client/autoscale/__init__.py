"""How many hosts a scheduler's work needs: the policy of `scaler_autoscaler`, without sockets, processes or a clock.

Begin with `policy.py` (the decisions) and `demand.py` (what a snapshot says). `capacity.py` places work on pools,
`hosts.py` follows each host from its start to its end, `backoff.py` rests pools that fail.
May import: errors, commands, protocol, net, monitor.
"""

from .demand import AgentLoad, Demand, Need, demand_of
from .hosts import Host, HostState
from .policy import AutoscalePolicy, Decision, Drain, Kill, PoolCounts, Start
from .pools import Pool

__all__ = [
    "AgentLoad",
    "AutoscalePolicy",
    "Decision",
    "Demand",
    "Drain",
    "Host",
    "HostState",
    "Kill",
    "Need",
    "Pool",
    "PoolCounts",
    "Start",
    "demand_of",
]
