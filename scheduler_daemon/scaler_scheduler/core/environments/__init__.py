"""Environments of tasks: their way from clients to hosts, and which worker changes to which environment.

Begin with `worker_changes.py`. May import: all of `core` except `peers`, `submissions` and `scheduler`.
"""
