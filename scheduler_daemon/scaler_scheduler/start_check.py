"""What the scheduler refuses to start with though each option is right by itself: for `--check-config`."""

from __future__ import annotations

from typing import Iterator, Mapping

from .exposure import is_local, refusal
from .key_files import KeyAccessError, KeyFileError
from .options import Found


def start_complaints(found: Mapping[str, Found]) -> Iterator[str]:
    """A line for each complaint, as of `Command.check`. What only another user may read is taken to be right: the file
    may be looked at by somebody else than the scheduler's user."""
    keys = found.get("keys")
    if keys is not None and keys.value:
        from .gate import Gate  # here and not above: most starts check no file

        try:
            Gate(keys.value)
        except KeyAccessError:
            pass
        except KeyFileError as error:
            yield f"{keys.source}: {error}"
        return
    if "insecure" in found and found["insecure"].value:
        return
    for key in ("address", "monitor_address"):
        one = found.get(key)
        if one is not None and not is_local(one.value):
            yield f"{one.source}: {refusal(one.value)}"
