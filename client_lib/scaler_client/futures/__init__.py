"""Futures, and the open tasks of a graph that resolve them.

Begin with `future.py`: a `concurrent.futures.Future` that makes its condition only when a thread waits.
May import: errors, commands, protocol, pickling, nested.
"""
