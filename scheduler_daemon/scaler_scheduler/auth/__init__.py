"""Keys: the list of authorized keys, the key commands, and which addresses need keys.

Begin with `keyring.py`.
May import: commands, config, net.
"""
