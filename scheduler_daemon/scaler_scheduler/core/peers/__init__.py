"""The connected peers: hello, heartbeat, lease, admission, quotas; peers that are lost, retire or join again.

Begin with `hello.py` and `leases.py`, then `peer_loss.py` and `reattach.py` (a worker joins again with tasks running).
May import: state, dispatch, report, completion.
"""
