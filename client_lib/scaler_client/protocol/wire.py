"""Bytes <-> messages of the protocol, for clients, workers and host agents.

Batches, which carry everything that happens per task, go through `columns`, or `single` where they have one row; all
other messages through pycapnp.
"""

from .columns import WireError
from .decode import OtherVersionError, decode, decode_published
from .encode import LARGE_PAYLOAD_BYTES, encode

__all__ = ["LARGE_PAYLOAD_BYTES", "OtherVersionError", "WireError", "decode", "decode_published", "encode"]
