"""Keys: the list of authorized keys, the key commands, and which addresses need keys.

Begin with `keyring.py` (the authorized keys; a reload cuts off the peers of revoked ones), then `bind_policy.py` (which
addresses need keys). `UserCheck` of `net/router.py` drops messages of unauthorized keys.
May import: commands, config, net.
"""
