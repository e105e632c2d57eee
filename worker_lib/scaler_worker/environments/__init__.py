"""Environments on a host: the cache of contents, and the folders that workers import from.

Begin with `preparation.py`. May import: config, objects.
"""
