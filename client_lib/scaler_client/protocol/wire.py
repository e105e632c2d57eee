"""Encodes and decodes messages, for clients, workers, host agents and monitors.

Everything that happens per task travels in batches. Batches are encoded by `columns`, and by `one_row_codec` if they
have one row. All other messages go through pycapnp.
"""

from .columns import WireError
from .decode import OtherVersionError, decode, decode_published
from .encode import LARGE_PAYLOAD_BYTES, encode

__all__ = ["LARGE_PAYLOAD_BYTES", "OtherVersionError", "WireError", "decode", "decode_published", "encode"]
