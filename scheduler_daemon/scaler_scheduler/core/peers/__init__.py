"""Who is connected: hello, heartbeat, lease, admission, quotas; a peer that is lost, drains or joins again.

Begin with `peers.py`, then `peer_loss.py` and `reattach.py` (a worker joins again with tasks running).
May import: state, dispatch, report, completion.
"""
