"""Keys: the list of authorized keys, the key commands, and which addresses need keys.

Begin with `keyring.py` (the authorized keys), then `bind_policy.py` (which addresses need keys).
May import: commands, config, net.
"""
