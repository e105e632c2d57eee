"""Checks the keys, and joins the scheduler as a client does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

from ...api.client import Client
from ...commands.addresses import Address
from ...commands.key_files import CLIENT, KEYS_VARIABLE, KeyFileError, key_error_text, unwanted_secrets
from ...errors import UnauthorizedError
from ...net.curve import is_local_address, load_keys
from .reachability import NEEDS_KEYS, Endpoint
from .report import Check, error, ok, warning

_NAME = "keys"


def check_keys(directory: str, address: Address | None, found: Endpoint) -> Check:
    """Check the folder of keys against what the scheduler wants.

    Args:
        directory: the folder of keys; empty: none.
        address: the scheduler's; None: it is not known.
        found: what is known of the scheduler.
    """
    if not directory:
        if found.mechanism == NEEDS_KEYS:
            advice = (
                f"name the folder of keys: --keys DIR or {KEYS_VARIABLE}, and Client(keys=...) in programs. The "
                "scheduler's operator makes it: `scaler_scheduler keygen DIR --as client`"
            )
            return error(_NAME, "the scheduler needs keys, and none were given", advice)
        return ok(_NAME, "none were given" + (", and the scheduler needs none" if found.may_be_scheduler else ""))
    try:
        keys = load_keys(directory, CLIENT)
    except KeyFileError as failure:
        text = key_error_text(directory, failure)
        return error(_NAME, text, "a client needs server.key, client.key and client.secret, readable by its user only")
    assert keys is not None
    if found.mechanism and found.mechanism != NEEDS_KEYS:
        advice = f"leave out --keys and {KEYS_VARIABLE}, or start the scheduler with --keys"
        return error(_NAME, f"the scheduler has no keys, but {directory} was given", advice)
    unwanted = unwanted_secrets(directory, CLIENT)
    if unwanted and address is not None and not is_local_address(address):
        text = f"{directory} has secrets that a client does not use: {', '.join(unwanted)}"
        return warning(
            _NAME, text, "remove them from this machine: a program that reads them can pretend to be the scheduler"
        )
    return ok(_NAME, f"the client key {keys.public.hex()[:16]}... of {os.path.abspath(directory)}")


def check_joining(
    address: Address, directory: str, seconds: float, stack: ExitStack, joined: list[Client]
) -> Iterator[Check]:
    """Join the scheduler.

    Args:
        address: the scheduler's.
        directory: the folder of keys; empty: none.
        seconds: how long to wait.
        stack: disconnects the client at the end.
        joined: gets the client.
    """
    name = "scheduler"
    try:
        client = stack.enter_context(Client(str(address), timeout_seconds=seconds, keys=directory))
    except UnauthorizedError as failure:
        advice = (
            "a key that was revoked must be authorized again; a copied folder may belong to another scheduler: compare "
            "server.key on both sides"
        )
        yield error(name, str(failure), advice)
    except ConnectionError as failure:
        text = str(failure)
        if "protocol version" in text:
            yield error(name, text, "install the same version of Scaler here and on the scheduler's host")
        else:
            advice = "is it Scaler's scheduler? Its log says whether it has rejected this client, and why"
            yield error(name, text, advice)
    except OSError as failure:
        yield error(name, str(failure), "raise the limit of open files: ulimit -n 65536")
    else:
        joined.append(client)
        yield ok(name, f"a scheduler of version {client._connection.scheduler_version} has accepted this client")
