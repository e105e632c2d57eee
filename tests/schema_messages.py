"""Messages by the schema alone, as a peer in another language would write and read them. CPython only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import capnp

import scaler_client

SCHEMA = capnp.SchemaParser().load(str(Path(scaler_client.__file__).parent / "protocol" / "scaler.capnp"))


def message_of(kind: str, /, **fields: Any) -> bytes:
    """A frame 0; without fields the union's member is Void."""
    message = SCHEMA.Message.new_message()
    if fields:
        body = message.init(kind)
        for name, value in fields.items():
            setattr(body, name, value)
    else:
        setattr(message, kind, None)
    data: bytes = message.to_bytes()
    return data
